"""Lane: the body of the car stays inside the corridor of its route."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from radp.rules.body import EGO_WIDTH, body_corners
from radp.rules.context import RuleContext
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


@dataclass(frozen=True)
class BodyLane(PenaltyRule):
    """J(o + margin; 0.5), o = how far the outermost of the four body corners is beyond the corridor's border.

    Every corner is matched with the route on its own. There is no term for the centre line, so the gradient speaks of
    the border alone.
    """

    name, unit, scale, weight = "lane", "m", 0.5, 0.8
    describes = "the lane boundary"
    asks_corners = True
    margin: float = 0.3  # m to the border that the body should keep

    def terms(self, trajectory: Tensor, context: RuleContext) -> list[Term]:
        over, valid = self._over(trajectory, context)
        return [Term(over + self.margin, self.scale, valid)]

    def violation(self, trajectory: Tensor, context: RuleContext) -> Tensor:
        over, valid = self._over(trajectory, context)
        return over.masked_fill(~valid, -torch.inf)

    def _over(self, trajectory: Tensor, context: RuleContext) -> tuple[Tensor, Tensor]:
        """(B, H) signed distance of the outermost corner beyond the border [m], and where there is a route."""
        match = context.corner_match(trajectory)
        error = match.lateral(body_corners(trajectory).flatten(1, 2))
        over = torch.maximum(error - match.left_width, -error - match.right_width)
        return over.unflatten(1, (-1, 4)).amax(-1), match.valid.unflatten(1, (-1, 4)).all(-1)
