"""What a planner answers with."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

STEP_SECONDS = 0.1


@dataclass(frozen=True)
class Plan:
    """B plans of H poses: trajectory (B, H, 4) = x, y, cos, sin of the REAR AXLE [m], in the ego frame of now.

    times (B, H): seconds from now, increasing; None means 0.1, 0.2, ... A first time of 0 is the plan's own idea of
    the present pose; otherwise the current pose is put in front of the plan before it is tracked.
    """

    trajectory: Tensor
    times: Tensor | None = None
    predictions: Tensor | None = None  # (B, N, H, 4) box centres of the neighbours, same frame and times
    pressure: Tensor | None = None  # (B, M) rule pressures that the planner tells with its plan

    def time_grid(self) -> Tensor:
        """(B, H) seconds, float64."""
        if self.times is not None:
            return self.times.to(torch.float64)
        batch, horizon = self.trajectory.shape[:2]
        grid = torch.arange(1, horizon + 1, dtype=torch.float64) * STEP_SECONDS
        return grid.expand(batch, horizon)
