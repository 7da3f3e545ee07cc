"""All rules at once: costs, and their gradients in one backward pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from radp.rules.context import RuleContext
from radp.rules.penalty import Term, mean_penalties
from radp.rules.rule import PenaltyRule, Rule, default_rules
from radp.scene.scene import Scene


def rule_costs(trajectory: Tensor, scene: Scene | RuleContext, rules: Sequence[Rule] | None = None) -> Tensor:
    """trajectory (B, H, 4), ego frame, metres -> (B, M) costs J_i, not weighted, not normalised. Differentiable."""
    context = scene if isinstance(scene, RuleContext) else RuleContext.from_scene(scene, horizon=trajectory.shape[1])
    rules = rules or default_rules()
    context = context.bind(trajectory, corners=any(rule.asks_corners for rule in rules))
    if any(rule.asks_motion for rule in rules):
        context = replace(context, bound_motion=context.motion(trajectory))
    return _costs(rules, [trajectory] * len(rules), [context] * len(rules))[0]


def rule_gradients(
    trajectory: Tensor, context: RuleContext, rules: Sequence[Rule] | None = None
) -> tuple[Tensor, Tensor]:
    """(B, H, 4) -> costs (B, M), gradients (B, M, H, 4) of each cost with respect to its own plan."""
    once = rule_pass(trajectory, context, rules)
    return once.cost, once.gradient


@dataclass(frozen=True)
class RulePass:
    """What one pass over B plans gives."""

    cost: Tensor  # (B, M)
    gradient: Tensor  # (B, M, H, 4)
    agent_cost: dict[str, Tensor]  # rules about other road users: part of each of the N in the cost, (B, N)


def rule_pass(trajectory: Tensor, context: RuleContext, rules: Sequence[Rule] | None = None) -> RulePass:
    """Costs and gradients of all rules in one forward and one backward pass.

    Each rule gets its own copy of the plan as a leaf; scenes do not mix and rules do not share copies, so the gradient
    of the one sum over everything holds all M gradients of all B scenes. The motion of all copies that need it, and
    the penalties of all rules, are computed in one go each: at batch 1 the number of operations is what costs time.
    """
    rules = rules or default_rules()
    context = context.bind(trajectory, corners=any(rule.asks_corners for rule in rules))
    contexts = [context] * len(rules)
    moving = [i for i, rule in enumerate(rules) if rule.asks_motion]
    with torch.enable_grad():
        leaves = [trajectory.detach().clone().requires_grad_() for _ in rules]
        if moving:
            for i, motion in zip(moving, context.motions(torch.stack([leaves[i] for i in moving]))):
                contexts[i] = replace(context, bound_motion=motion)
        cost, by_agent = _costs(rules, leaves, contexts)
        gradients = torch.autograd.grad(cost.sum(), leaves, materialize_grads=True)
    return RulePass(cost.detach(), torch.stack(gradients, 1), {name: part.detach() for name, part in by_agent.items()})


def _costs(
    rules: Sequence[Rule], plans: Sequence[Tensor], contexts: Sequence[RuleContext]
) -> tuple[Tensor, dict[str, Tensor]]:
    """Costs (B, M) of M rules, each on its own plan and context; parts (B, N) of other road users by rule."""
    terms: list[Term] = []
    whole: list[Tensor] = []  # costs of rules that are not sums of penalties
    of_terms, of_whole, by_agent = [], [], {}
    for i, (rule, plan, context) in enumerate(zip(rules, plans, contexts)):
        if isinstance(rule, PenaltyRule):
            mine = rule.terms(plan, context)
            terms += mine
            of_terms += [i] * len(mine)
            continue
        parts = rule.agent_costs(plan, context)
        whole.append(rule.cost(plan, context) if parts is None else parts.sum(1))
        of_whole.append(i)
        if parts is not None:
            by_agent[rule.name] = parts
    pieces = [mean_penalties(terms)] if terms else []
    pieces += [torch.stack(whole)] if whole else []
    values = torch.cat(pieces)
    owner = torch.tensor(of_terms + of_whole, device=values.device)
    return values.new_zeros(len(rules), values.shape[1]).index_add(0, owner, values).T, by_agent
