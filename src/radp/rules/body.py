"""The ego's body on a plan."""

from __future__ import annotations

import torch
from torch import Tensor

from radp.rules.motion import unit_heading
from radp.scenario.vehicle import PACIFICA

EGO_WIDTH, EGO_LENGTH = PACIFICA.width, PACIFICA.length
REAR_TO_CENTER, FRONT = PACIFICA.rear_axle_to_center, PACIFICA.front_length
REAR = EGO_LENGTH - FRONT  # m from the rear axle to the rear bumper


def body_corners(trajectory: Tensor) -> Tensor:
    """(B, H, 4) -> (B, H, 4, 2) corners of the ego's body: front left, front right, rear right, rear left [m]."""
    forward = unit_heading(trajectory)
    left = torch.stack((-forward[..., 1], forward[..., 0]), -1)
    along = trajectory.new_tensor([FRONT, FRONT, FRONT - EGO_LENGTH, FRONT - EGO_LENGTH])
    aside = trajectory.new_tensor([1.0, -1.0, -1.0, 1.0]) * (EGO_WIDTH / 2)
    offset = along[:, None] * forward.unsqueeze(-2) + aside[:, None] * left.unsqueeze(-2)
    return trajectory[..., None, :2] + offset


def shifted(trajectory: Tensor, metres: float) -> Tensor:
    """(B, H, 4) -> (B, H, 2) points so many metres ahead of the rear axle."""
    return trajectory[..., :2] + metres * unit_heading(trajectory)
