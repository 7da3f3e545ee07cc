"""The rules as terms of the alignment loss: which rules, in which context, behind which gate, in which shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from radp.rules import Rule, RuleContext, rule_costs, rule_set
from radp.rules.contact import MARGIN, WITHIN, avoidable, first_contact, first_off_road, time_to_stop
from radp.rules.scales import RuleScales
from radp.runs.errors import BadInput
from radp.scene.scene import COS_SIN, XY, Scene
from radp.training.rule_weighting import RuleWeighting
from radp.training.settings import AlignConfig

COMPRESSED_SCALES = (0.01, 10.0)
COLLISION, LANE = "collision", "lane"


@dataclass(frozen=True)
class JudgedPlans:
    """What the rules say of C plans: costs (C, M) in their own units, which of them count (C, M), terms (C, M)."""

    costs: Tensor
    counted: Tensor
    terms: Tensor  # normalised or compressed, 0 where not counted

    @property
    def opened(self) -> Tensor:
        """(C,) bool: whether any rule counts."""
        return self.counted.any(-1)


def rules_of_loss(config: AlignConfig) -> tuple[Rule, ...]:
    """Those of the rule set that are not left out; BadInput if none is."""
    known = rule_set(config.avoid.rule_set)
    for names, what in ((config.avoid.without, "to leave out"), (config.avoid.steer, "to steer")):
        for name in set(names) - {rule.name for rule in known}:
            raise BadInput(f"no rule {name!r} {what}; expected one of {', '.join(r.name for r in known)}")
    rules = tuple(rule for rule in known if rule.name not in config.avoid.without)
    if not rules:
        raise BadInput("all rules are left out; --no-rules says the same")
    return rules


class RuleTerms:
    """sum_i w_i f(J_i / s_i), with f and the gate of the settings; `memory` holds the running scales s."""

    def __init__(self, config: AlignConfig) -> None:
        self.config, self.avoid = config, config.avoid
        self.rules = rules_of_loss(config)
        self.memory = RuleScales(len(self.rules))
        self.weighting = RuleWeighting(config.weighting, self.rules, self.memory)
        self.weights = self.weighting.weights

    def contexts(self, scene: Scene, horizon: int, draws: int = 1) -> list[RuleContext]:
        """One or two contexts of B * draws plans of B scenes, draws of one scene in a row."""
        wanted = {"executed": (True,), "constant": (False,), "both": (True, False)}[self.avoid.contexts]
        reach = self.avoid.way == "pushed"  # a heavier goal asks for what can be reached, not for what was executed
        made = [
            RuleContext.from_scene(scene, logged=w, expert_target=True, reachable=reach, horizon=horizon)
            for w in wanted
        ]
        if self.avoid.gate:
            made = [avoidable(context) for context in made]
        return [context.repeat_interleave(draws) for context in made]

    def judge(self, plan: Tensor, contexts: Sequence[RuleContext], counted: Tensor | None = None) -> JudgedPlans:
        """Plans (C, H, 4) in metres -> mean over the contexts; plans that are not `counted` (C,) have no say."""
        parts = []
        for context in contexts:
            costs, opens = self.costs(plan, context), self.opens(plan.detach(), context)
            parts.append((costs, opens if counted is None else opens & counted[:, None]))
        taken = torch.ones(len(plan), dtype=torch.bool) if counted is None else counted
        if self.config.rules and bool(taken.any()):
            self.memory.update(torch.stack([costs for costs, _ in parts]).mean(0)[taken])
        terms = [self.shaped(costs) * opens for costs, opens in parts]
        opened = torch.stack([opens for _, opens in parts]).any(0)
        return JudgedPlans(torch.stack([costs for costs, _ in parts]).mean(0), opened, torch.stack(terms).mean(0))

    def costs(self, plan: Tensor, context: RuleContext) -> Tensor:
        """(C, H, 4) -> (C, M); with `along`, gradients keep to the plan's way but for the rules that may steer."""
        if not self.avoid.along:
            return rule_costs(plan, context, self.rules)
        kept = rule_costs(along_the_way(plan), context, self.rules)
        if not self.avoid.steer:
            return kept
        steers = torch.tensor([rule.name in self.avoid.steer for rule in self.rules])
        return torch.where(steers, rule_costs(plan, context, self.rules), kept)

    def opens(self, plan: Tensor, context: RuleContext) -> Tensor:
        """(C, M) bool: which rules count for each plan; without a gate all of them."""
        if not self.avoid.gate:
            return torch.ones(len(plan), len(self.rules), dtype=torch.bool)
        meets, leaves = to_mend(plan, context, self.avoid.urgent)
        if LANE in self.avoid.without:
            leaves = torch.zeros_like(leaves)
        chosen = {COLLISION: meets, LANE: leaves}
        return torch.stack([chosen.get(rule.name, meets | leaves) for rule in self.rules], -1)

    def normalised(self, costs: Tensor) -> Tensor:
        """(C, M) -> J_i / s_i, or J_i as they are."""
        return self.memory(costs) if self.config.normalise else costs

    def shaped(self, costs: Tensor) -> Tensor:
        """(C, M) -> (C, M). A violation z costs about (z / sigma)^2, so its logarithm is the Cauchy loss of robust
        fitting: its pull is strongest at a small violation and fades for one that nothing can mend. The root's is even.
        """
        if not (self.config.compress or self.avoid.root):
            return self.normalised(costs)
        scale = self.memory.scale.clamp(*COMPRESSED_SCALES) if self.config.normalise else 1.0
        return torch.sqrt(1 + costs / scale) - 1 if self.avoid.root else torch.log1p(costs / scale)

    def total(self, judged: JudgedPlans, log_weights: Tensor | None = None, output: Tensor | None = None) -> Tensor:
        """The scalar that is added to the loss: lambda times the weighted mean over all plans.

        log_weights (C, M) of their samples, if these have their own; `output`: the network's answer behind the plans.
        """
        return self.config.strength * self.weighting(judged.terms, judged.costs, log_weights, output)

    def records(self, judged: JudgedPlans) -> dict[str, float]:
        """What is written to log.jsonl."""
        costs, normalised = judged.costs.detach(), self.normalised(judged.costs.detach())
        values: dict[str, float] = {}
        for i, rule in enumerate(self.rules):
            values[f"cost/{rule.name}"] = costs[:, i].mean().item()
            values[f"scale/{rule.name}"] = self.memory.scale[i].item()
            values[f"normalised/{rule.name}"] = normalised[:, i].mean().item()
        return values | self.weighting.records()


def along_the_way(plan: Tensor) -> Tensor:
    """The same plans (C, H, 4), through which gradients flow only along the heading of each pose."""
    fixed = plan.detach()
    heading = torch.nn.functional.normalize(fixed[..., COS_SIN], dim=-1)
    ahead = ((plan - fixed)[..., XY] * heading).sum(-1, keepdim=True)
    return torch.cat((fixed[..., XY] + ahead * heading, fixed[..., COS_SIN]), -1)


def to_mend(plan: Tensor, context: RuleContext, urgent: bool = False) -> tuple[Tensor, Tensor]:
    """(C, H, 4) -> (C,) bool each: comes within 0.3 m of somebody within 4 s; a corner leaves the road within 4 s.

    If only what is urgent counts, contact does within the time that it takes to stop.
    """
    within = time_to_stop(context) if urgent else WITHIN
    return first_contact(plan, context, MARGIN) <= within, first_off_road(plan, context) <= WITHIN
