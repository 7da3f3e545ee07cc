"""Planar frames and angles, batched torch. A frame is (..., 4): x, y, cos, sin of its origin outside."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def wrap_angle(angle: Tensor) -> Tensor:
    """(...) rad -> (...) rad in [-pi, pi)."""
    return torch.remainder(angle + math.pi, 2 * math.pi) - math.pi


def rotate(vectors: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """(..., 2) vectors turned counter-clockwise by the angle with (...) cos and sin."""
    x, y = vectors[..., 0], vectors[..., 1]
    return torch.stack((x * cos - y * sin, x * sin + y * cos), -1)


def rotate_back(vectors: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """(..., 2) vectors turned clockwise: the inverse of `rotate`."""
    return rotate(vectors, cos, -sin)


def points_to_frame(points: Tensor, frame: Tensor) -> Tensor:
    """(..., 2) points of the outer frame -> (..., 2) in the frame (..., 4)."""
    return rotate_back(points - frame[..., :2], frame[..., 2], frame[..., 3])


def points_from_frame(points: Tensor, frame: Tensor) -> Tensor:
    """(..., 2) points in the frame (..., 4) -> (..., 2) of the outer frame."""
    return rotate(points, frame[..., 2], frame[..., 3]) + frame[..., :2]


def heading_vector(heading: Tensor) -> Tensor:
    """(...) rad -> (..., 2) cos, sin."""
    return torch.stack((heading.cos(), heading.sin()), -1)


def pose_frame(pose: Tensor) -> Tensor:
    """(..., 3) x, y, heading [rad] -> (..., 4) x, y, cos, sin."""
    return torch.cat((pose[..., :2], heading_vector(pose[..., 2])), -1)


def heading_angle(vector: Tensor) -> Tensor:
    """(..., 2) cos, sin (any length) -> (...) rad in (-pi, pi]."""
    return torch.atan2(vector[..., 1], vector[..., 0])


def shift_forward(poses: Tensor, distance: float | Tensor) -> Tensor:
    """(..., 4) poses moved along their own heading: rear axle to centre, or back."""
    return torch.cat((poses[..., :2] + distance * poses[..., 2:], poses[..., 2:]), -1)
