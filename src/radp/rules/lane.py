"""Lane: the body of the car stays inside the corridor of its route."""

from __future__ import annotations

import torch
from torch import Tensor

from radp.rules.context import EGO_WIDTH, RuleContext
from radp.rules.penalty import mean_penalty
from radp.rules.rule import Rule

CENTER_WEIGHT = 0.05
CENTER_SCALE = 2.0  # m


class Lane(Rule):
    """J(e + W/2 - w_left; 0.5) + J(-e + W/2 - w_right; 0.5) + 0.05 J(|e|; 2.0), e = signed lateral error."""

    name, unit, scale, weight = "lane", "m", 0.5, 0.8
    describes = "the lane boundary"

    def cost(self, trajectory: Tensor, context: RuleContext) -> Tensor:
        match = context.match(trajectory)
        error = match.lateral(trajectory)
        left = error + EGO_WIDTH / 2 - match.left_width
        right = -error + EGO_WIDTH / 2 - match.right_width
        return (
            mean_penalty(left, self.scale, match.valid)
            + mean_penalty(right, self.scale, match.valid)
            + CENTER_WEIGHT * mean_penalty(error.abs(), CENTER_SCALE, match.valid)
        )

    def violation(self, trajectory: Tensor, context: RuleContext) -> Tensor:
        match = context.match(trajectory)
        error = match.lateral(trajectory)
        over = torch.maximum(error - match.left_width, -error - match.right_width) + EGO_WIDTH / 2
        return over.masked_fill(~match.valid, -torch.inf)
