"""Kinematics: no more acceleration, braking or steering than a car can do."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from radp.rules.context import RuleContext
from radp.rules.motion import judged
from radp.rules.penalty import Term
from radp.rules.rule import PenaltyRule

MAX_ACCELERATION = 6.0  # m/s2
MAX_BRAKING = 8.0  # m/s2
MAX_LATERAL = 4.5  # m/s2
MAX_CURVATURE = 0.35  # 1/m
CURVATURE_SCALE = 0.05  # 1/m


@dataclass(frozen=True)
class Kinematics(PenaltyRule):
    """J(a - 6; 1) + J(-a - 8; 1) + J(|a_lat| - 4.5; 1) + J(|kappa| - 0.35; 0.05)."""

    name, unit, scale, weight = "kinematics", "m/s²", 1.0, 0.5
    describes = "what the car can do"
    asks_motion = True
    skipped: int = 0  # first steps that are not judged: those of the seam between motion and plan

    def terms(self, trajectory: Tensor, context: RuleContext) -> list[Term]:
        m = context.motion(trajectory)
        along = judged(m.a_valid, self.skipped)
        across = judged(torch.ones_like(m.a_valid), self.skipped) if self.skipped else None
        return [
            Term(m.a_lon - MAX_ACCELERATION, self.scale, along),
            Term(-m.a_lon - MAX_BRAKING, self.scale, along),
            Term(m.a_lat.abs() - MAX_LATERAL, self.scale, across),
            Term(m.curvature.abs() - MAX_CURVATURE, CURVATURE_SCALE, across),
        ]

    def violation(self, trajectory: Tensor, context: RuleContext) -> Tensor:
        """The largest of the four excesses, curvature in units of its own scale."""
        m = context.motion(trajectory)
        lon = torch.maximum(m.a_lon - MAX_ACCELERATION, -m.a_lon - MAX_BRAKING)
        lon = lon.masked_fill(~m.a_valid, -torch.inf)
        bend = (m.curvature.abs() - MAX_CURVATURE) / CURVATURE_SCALE
        worst = torch.maximum(torch.maximum(lon, m.a_lat.abs() - MAX_LATERAL), bend)
        return worst.masked_fill(~judged(torch.ones_like(m.a_valid), self.skipped), -torch.inf)
