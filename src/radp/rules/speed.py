"""Speed: not above the legal limit of the route lane that the plan is on."""

from __future__ import annotations

import torch
from torch import Tensor

from radp.rules.context import RuleContext
from radp.rules.penalty import Term
from radp.rules.rule import PenaltyRule


class Speed(PenaltyRule):
    """J(v - v_lim; 1.0); steps without a known limit are left out."""

    name, unit, scale, weight = "speed", "m/s", 1.0, 0.8
    describes = "the speed limit"
    asks_motion = True

    def terms(self, trajectory: Tensor, context: RuleContext) -> list[Term]:
        match = context.match(trajectory)
        return [Term(context.motion(trajectory).speed - match.speed_limit, self.scale, match.has_speed_limit)]

    def violation(self, trajectory: Tensor, context: RuleContext) -> Tensor:
        match = context.match(trajectory)
        over = context.motion(trajectory).speed - match.speed_limit
        return over.masked_fill(~match.has_speed_limit, -torch.inf)
