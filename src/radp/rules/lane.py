"""Lane: the body of the car stays inside the corridor of its route."""

from __future__ import annotations

import torch
from torch import Tensor

from radp.rules.context import EGO_WIDTH, RuleContext
from radp.rules.penalty import Term
from radp.rules.rule import PenaltyRule

CENTER_WEIGHT = 0.05
CENTER_SCALE = 2.0  # m


class Lane(PenaltyRule):
    """J(e + W/2 - w_left; 0.5) + J(-e + W/2 - w_right; 0.5) + 0.05 J(|e|; 2.0), e = signed lateral error."""

    name, unit, scale, weight = "lane", "m", 0.5, 0.8
    describes = "the lane boundary"

    def terms(self, trajectory: Tensor, context: RuleContext) -> list[Term]:
        match = context.match(trajectory)
        error = match.lateral(trajectory)
        return [
            Term(error - (match.left_width - EGO_WIDTH / 2), self.scale, match.valid),
            Term((EGO_WIDTH / 2 - match.right_width) - error, self.scale, match.valid),
            Term(error.abs(), CENTER_SCALE, match.valid, CENTER_WEIGHT),
        ]

    def violation(self, trajectory: Tensor, context: RuleContext) -> Tensor:
        match = context.match(trajectory)
        error = match.lateral(trajectory)
        over = torch.maximum(error - match.left_width, -error - match.right_width) + EGO_WIDTH / 2
        return over.masked_fill(~match.valid, -torch.inf)
