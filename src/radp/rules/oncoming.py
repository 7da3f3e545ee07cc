"""Oncoming: do not drive against the direction of the lane that the car is on."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from radp.rules.body import REAR_TO_CENTER, shifted
from radp.rules.context import RuleContext
from radp.rules.motion import with_origin
from radp.rules.penalty import Term
from radp.rules.rule import PenaltyRule

ALLOWED = 2.0  # m against the lane within the window, as in nuPlan
WINDOW = 10  # steps: one second


class Oncoming(PenaltyRule):
    """J(metres driven against the lane within one second - 2; 2.0), where the car is on an oncoming lane."""

    name, unit, scale, weight = "oncoming", "m", 2.0, 1.5
    describes = "the direction of the lane"
    asks_road = True

    def terms(self, trajectory: Tensor, context: RuleContext) -> list[Term]:
        z, there = self._against(trajectory, context)
        return [Term(z, self.scale, there)]

    def violation(self, trajectory: Tensor, context: RuleContext) -> Tensor:
        z, there = self._against(trajectory, context)
        return z.masked_fill(~there, -torch.inf)

    def _against(self, trajectory: Tensor, context: RuleContext) -> tuple[Tensor, Tensor]:
        """z (B, H), and where the car is on an oncoming lane (B, H)."""
        way, there = context.around(trajectory).against
        moved = torch.diff(shifted(with_origin(trajectory), REAR_TO_CENTER), dim=1)
        back = (-(moved * way).sum(-1)).clamp(min=0) * there
        total = pad(back.cumsum(1), (WINDOW, 0))
        return total[:, WINDOW:] - total[:, :-WINDOW] - ALLOWED, there
