"""Red light: the front bumper stays a metre behind the stop line of a red light."""

from __future__ import annotations

import torch
from torch import Tensor

from radp.rules.body import FRONT
from radp.rules.context import RuleContext
from radp.rules.penalty import Term
from radp.rules.rule import PenaltyRule
from radp.rules.stopping import KEPT, past_line


class RedLight(PenaltyRule):
    """J(f - (s_stop - 1.0); 1.0) at the next red stop line, if the car can still stop before it."""

    name, unit, scale, weight = "red_light", "m", 1.0, 2.0
    describes = "the red light"

    def terms(self, trajectory: Tensor, context: RuleContext) -> list[Term]:
        z, counts = self._past(trajectory, context)
        return [Term(z, self.scale, counts)]

    def violation(self, trajectory: Tensor, context: RuleContext) -> Tensor:
        z, counts = self._past(trajectory, context)
        return z.masked_fill(~counts, -torch.inf)

    def kept_words(self, margin: float, whom: str = "", gap: float | None = None) -> str:
        return f"{margin + KEPT:.1f} m to the line of the red light"

    def _past(self, trajectory: Tensor, context: RuleContext) -> tuple[Tensor, Tensor]:
        """z (B, H), and whether it counts (B, H)."""
        line = context.route.red_line(minimum=FRONT).to(trajectory.dtype)
        z, counts = past_line(trajectory, context, line.unsqueeze(1))
        return z.squeeze(2), counts.expand(-1, trajectory.shape[1])
