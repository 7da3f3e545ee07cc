"""Target spaces: what the diffusion runs on, and the way from and to metres.

"waypoint" (published): normalised x, y, cos, sin. "velocity": the step (dx, dy) from the previous waypoint over
0.1 s and `velocity_scale`, and cos, sin; waypoints are the running sum from the current pose. Step 0 is the
normalised current pose in both.
"""

from __future__ import annotations

import torch
from torch import Tensor

from radp.model.config import ModelConfig
from radp.scenario import DT
from radp.scene.normaliser import Normaliser
from radp.scene.scene import COS_SIN, XY


class TargetSpace:
    """Trajectories are (C, P, 81, 4): step 0 the current pose, then the future at 0.1 s, x, y, cos, sin."""

    def __init__(self, config: ModelConfig, normaliser: Normaliser) -> None:
        self.velocity = config.target_space == "velocity"
        self.metres_per_unit = config.velocity_scale * DT
        self.state = normaliser.state

    def from_metres(self, metres: Tensor) -> Tensor:
        """Trajectories in metres -> in target space."""
        waypoints = self.state.normalise(metres)
        if not self.velocity:
            return waypoints
        steps = metres[..., XY].diff(dim=-2) / self.metres_per_unit
        future = torch.cat((steps, metres[..., 1:, COS_SIN]), -1)
        return torch.cat((waypoints[..., :1, :], future), -2)

    def to_metres(self, x: Tensor) -> Tensor:
        """Trajectories in target space -> in metres."""
        waypoints = self.state.denormalise(x)
        if not self.velocity:
            return waypoints
        current = waypoints[..., :1, :]
        positions = current[..., XY] + (x[..., 1:, XY] * self.metres_per_unit).cumsum(-2)
        return torch.cat((current, torch.cat((positions, x[..., 1:, COS_SIN]), -1)), -2)

    def gradient_from_metres(self, gradient: Tensor) -> Tensor:
        """Gradient by trajectories in metres -> gradient by trajectories in target space (chain rule of to_metres)."""
        scaled = gradient * self.state.std
        if not self.velocity:
            return scaled
        later = gradient[..., 1:, XY].flip(-2).cumsum(-2).flip(-2)  # a step moves all later waypoints
        current = torch.cat(
            (gradient[..., XY].sum(-2, keepdim=True) * self.state.std[..., XY], scaled[..., :1, COS_SIN]), -1
        )
        future = torch.cat((later * self.metres_per_unit, gradient[..., 1:, COS_SIN]), -1)
        return torch.cat((current, future), -2)
