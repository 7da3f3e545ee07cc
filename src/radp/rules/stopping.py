"""Stopping before a line: when the front bumper must stay behind it, and by how much it does not."""

from __future__ import annotations

import torch
from torch import Tensor

from radp.rules.body import FRONT, shifted
from radp.rules.context import RuleContext

KEPT = 1.0  # d [m] before the line
BRAKING = 2.8  # b [m/s2]
REACTION = 0.5  # t [s]


def front_progress(trajectory: Tensor, context: RuleContext) -> Tensor:
    """(B, H, 4) -> f (B, H) progress of the front bumper along the route, by the matched piece of the rear axle."""
    return context.match(trajectory).progress(shifted(trajectory, FRONT))


def past_line(trajectory: Tensor, context: RuleContext, line: Tensor) -> tuple[Tensor, Tensor]:
    """Progress of lines (B, N) -> z = f - (line - d) (B, H, N), and whether each still counts (B, N).

    It counts if the front bumper has not passed it now, and the car could still stop: v t + v^2 / (2 b) <= distance.
    """
    now = context.progress_now(trajectory)  # (B, 1)
    speed = context.speed_now.to(trajectory.dtype).unsqueeze(1)
    distance = line - now - FRONT
    counts = torch.isfinite(line) & (distance > 0) & (REACTION * speed + speed.square() / (2 * BRAKING) <= distance)
    counts &= context.match(trajectory).valid.any(1, keepdim=True)
    behind = torch.where(counts, line - KEPT, 0.0)
    return front_progress(trajectory, context).unsqueeze(2) - behind.unsqueeze(1), counts
