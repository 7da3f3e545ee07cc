"""Comfort: bounded jerk and bounded change of steering."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from radp.rules.context import RuleContext
from radp.rules.motion import judged
from radp.rules.penalty import Term
from radp.rules.rule import PenaltyRule

MAX_JERK = 8.37  # m/s3, along and across
MAX_CURVATURE_RATE = 0.30  # 1/(m s)
CURVATURE_RATE_SCALE = 0.1  # 1/(m s)


@dataclass(frozen=True)
class Comfort(PenaltyRule):
    """J(|j_lon| - 8.37; 1) + J(|j_lat| - 8.37; 1) + J(|kappa'| - 0.30; 0.1)."""

    name, unit, scale, weight = "comfort", "m/s³", 1.0, 0.8
    describes = "smooth motion"
    asks_motion = True
    skipped: int = 0  # first steps that are not judged: those of the seam between motion and plan

    def terms(self, trajectory: Tensor, context: RuleContext) -> list[Term]:
        m = context.motion(trajectory)
        jerk, change = (judged(valid, self.skipped) for valid in (m.jerk_valid, m.change_valid))
        return [
            Term(m.jerk_lon.abs() - MAX_JERK, self.scale, jerk),
            Term(m.jerk_lat.abs() - MAX_JERK, self.scale, change),
            Term(m.curvature_rate.abs() - MAX_CURVATURE_RATE, CURVATURE_RATE_SCALE, change),
        ]

    def violation(self, trajectory: Tensor, context: RuleContext) -> Tensor:
        """The largest of the three excesses, curvature rate in units of its own scale."""
        m = context.motion(trajectory)
        lon = (m.jerk_lon.abs() - MAX_JERK).masked_fill(~judged(m.jerk_valid, self.skipped), -torch.inf)
        bend = (m.curvature_rate.abs() - MAX_CURVATURE_RATE) / CURVATURE_RATE_SCALE
        rest = torch.maximum(m.jerk_lat.abs() - MAX_JERK, bend)
        rest = rest.masked_fill(~judged(m.change_valid, self.skipped), -torch.inf)
        return torch.maximum(lon, rest)
