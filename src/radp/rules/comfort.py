"""Comfort: bounded jerk and bounded change of steering."""

from __future__ import annotations

import torch
from torch import Tensor

from radp.rules.context import RuleContext
from radp.rules.penalty import Term
from radp.rules.rule import PenaltyRule

MAX_JERK = 8.37  # m/s3, along and across
MAX_CURVATURE_RATE = 0.30  # 1/(m s)
CURVATURE_RATE_SCALE = 0.1  # 1/(m s)


class Comfort(PenaltyRule):
    """J(|j_lon| - 8.37; 1) + J(|j_lat| - 8.37; 1) + J(|kappa'| - 0.30; 0.1)."""

    name, unit, scale, weight = "comfort", "m/s³", 1.0, 0.8
    describes = "smooth motion"
    asks_motion = True

    def terms(self, trajectory: Tensor, context: RuleContext) -> list[Term]:
        m = context.motion(trajectory)
        return [
            Term(m.jerk_lon.abs() - MAX_JERK, self.scale, m.jerk_valid),
            Term(m.jerk_lat.abs() - MAX_JERK, self.scale, m.change_valid),
            Term(m.curvature_rate.abs() - MAX_CURVATURE_RATE, CURVATURE_RATE_SCALE, m.change_valid),
        ]

    def violation(self, trajectory: Tensor, context: RuleContext) -> Tensor:
        """The largest of the three excesses, curvature rate in units of its own scale."""
        m = context.motion(trajectory)
        lon = (m.jerk_lon.abs() - MAX_JERK).masked_fill(~m.jerk_valid, -torch.inf)
        bend = (m.curvature_rate.abs() - MAX_CURVATURE_RATE) / CURVATURE_RATE_SCALE
        rest = torch.maximum(m.jerk_lat.abs() - MAX_JERK, bend).masked_fill(~m.change_valid, -torch.inf)
        return torch.maximum(lon, rest)
