"""PDM-Open and PDM-Offset (Dauner et al., CoRL 2023): MLPs over the ego's past, a centre line and perhaps a plan.

PDM-Offset is the learned half of PDM-Hybrid: it corrects the plan of PDM-Closed. Parameter names are as published.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from radp.planners.zoo.batch import Batch

PAST, LINE, POSES = 11, 120, 16  # samples every 0.2 s, points every 1 m, poses every 0.5 s; x, y, heading each
POSE_STEP = 0.5  # s
EGO = ("ego_position", "ego_velocity", "ego_acceleration")


@dataclass(frozen=True)
class PDMConfig:
    """`offset`: the network corrects a plan instead of making one."""

    hidden: int = 512
    dropout: float = 0.1
    offset: bool = False


class PDMOpen(nn.Module):
    """ego_position, ego_velocity, ego_acceleration (B, 11, 3), planner_centerline (B, 120, 3) -> (B, 16, 3).

    With `offset` also planner_trajectory (B, 16, 3), to which the output is added. Raw metres and radians throughout.
    """

    def __init__(self, config: PDMConfig | None = None) -> None:
        super().__init__()
        self.config = config = config or PDMConfig()
        size = config.hidden
        self.state_encoding = nn.Sequential(nn.Linear(3 * 3 * PAST, size), nn.ReLU())
        self.centerline_encoding = nn.Sequential(nn.Linear(3 * LINE, size), nn.ReLU())
        if config.offset:
            self.trajectory_encoding = nn.Sequential(nn.Linear(3 * POSES, size), nn.ReLU())
        self.planner_head = nn.Sequential(
            nn.Linear((3 if config.offset else 2) * size, size),
            nn.Dropout(config.dropout),
            nn.ReLU(),
            nn.Linear(size, size),
            nn.ReLU(),
            nn.Linear(size, 3 * POSES),
        )

    def forward(self, batch: Batch) -> Tensor:
        state = torch.cat([batch[name].flatten(1) for name in EGO], 1)
        codes = [self.state_encoding(state), self.centerline_encoding(batch["planner_centerline"].flatten(1))]
        if not self.config.offset:
            return self.planner_head(torch.cat(codes, 1)).unflatten(1, (POSES, 3))
        plan = batch["planner_trajectory"]
        codes.append(self.trajectory_encoding(plan.flatten(1)))
        return plan + self.planner_head(torch.cat(codes, 1)).unflatten(1, (POSES, 3))


def l1_loss(output: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
    """(B, 16, 3) each: mean absolute error, the heading's is not wrapped; weight (B,) of each sample, by default 1."""
    error = (output - target).abs()
    return (error if weight is None else error * weight[:, None, None]).mean()
