"""Drivable: all four corners of the body stay on the drivable area."""

from __future__ import annotations

import torch
from torch import Tensor

from radp.rules.body import body_corners
from radp.rules.context import RuleContext
from radp.rules.penalty import Term
from radp.rules.rule import PenaltyRule

MARGIN = 0.2  # m to the border that corners should keep
TOLERANCE = 0.3  # m that a corner may be off before the rule is broken, as in nuPlan


class Drivable(PenaltyRule):
    """J(0.2 - d; 0.3), d = signed distance of the outermost corner to the border, positive on the road.

    Broken where a corner is more than 0.3 m off the road. Silent where the scene does not know the border.
    """

    name, unit, scale, weight = "drivable", "m", 0.3, 1.5
    describes = "the edge of the road"
    asks_road = True

    def terms(self, trajectory: Tensor, context: RuleContext) -> list[Term]:
        inside, valid = self._inside(trajectory, context)
        return [Term(MARGIN - inside, self.scale, valid)]

    def violation(self, trajectory: Tensor, context: RuleContext) -> Tensor:
        inside, valid = self._inside(trajectory, context)
        return (-TOLERANCE - inside).masked_fill(~valid, -torch.inf)

    def kept_words(self, margin: float, whom: str = "", gap: float | None = None) -> str:
        inside = margin - TOLERANCE
        return f"{inside:.1f} m to the edge of the road" if inside >= 0 else "the edge of the road"

    def _inside(self, trajectory: Tensor, context: RuleContext) -> tuple[Tensor, Tensor]:
        """(B, H) d, and where it is known."""
        border = context.around(trajectory).border
        offset = body_corners(trajectory).flatten(1, 2) - border.foot
        inside = (offset * border.normal).sum(-1).masked_fill(~border.valid, torch.inf)
        valid = border.valid.unflatten(1, (-1, 4)).any(-1)
        return torch.where(valid, inside.unflatten(1, (-1, 4)).amin(-1), 0.0), valid
