"""All rules at once: costs, and their gradients in one backward pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from radp.rules.context import RuleContext
from radp.rules.rule import Rule, default_rules
from radp.scene.scene import Scene


def rule_costs(trajectory: Tensor, scene: Scene | RuleContext, rules: Sequence[Rule] | None = None) -> Tensor:
    """trajectory (B, H, 4), ego frame, metres -> (B, M) costs J_i, not weighted, not normalised. Differentiable."""
    context = scene if isinstance(scene, RuleContext) else RuleContext.from_scene(scene, horizon=trajectory.shape[1])
    context = context.bind(trajectory)
    return torch.stack([rule.cost(trajectory, context) for rule in rules or default_rules()], -1)


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
    of the one sum over everything holds all M gradients of all B scenes.
    """
    rules = rules or default_rules()
    context = context.bind(trajectory)
    costs, by_agent = [], {}
    with torch.enable_grad():
        copies = trajectory.detach().unsqueeze(0).repeat(len(rules), 1, 1, 1).requires_grad_()
        for rule, copy in zip(rules, copies.unbind(0)):
            terms = rule.agent_terms(copy, context)
            costs.append(rule.cost(copy, context) if terms is None else terms.sum((1, 2)))
            if terms is not None:
                by_agent[rule.name] = terms.detach().sum(1)
        cost = torch.stack(costs, -1)
        (gradient,) = torch.autograd.grad(cost.sum(), copies)
    return RulePass(cost.detach(), gradient.transpose(0, 1), by_agent)
