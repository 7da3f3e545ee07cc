"""Motion of a plan by finite differences over [current state, X_1 .. X_H] at 0.1 s.

Square roots and divisions are guarded inside, so that a standing car has finite gradients.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from radp.geometry.frames import wrap_angle

STEP = 0.1  # s
MIN_DISPLACEMENT = 0.1  # m, below which curvature is measured as if the car had moved this far
_TINY = 1e-12


@dataclass(frozen=True)
class Motion:
    """All (B, H), step h from the state before to X_h; *_valid (B, H) bool where the first elements are unknown."""

    speed: Tensor  # m/s
    a_lon: Tensor  # m/s2
    a_lat: Tensor  # m/s2
    curvature: Tensor  # 1/m
    jerk_lon: Tensor  # m/s3
    jerk_lat: Tensor  # m/s3
    curvature_rate: Tensor  # 1/(m s)
    a_valid: Tensor  # a_lon
    jerk_valid: Tensor  # jerk_lon
    change_valid: Tensor  # jerk_lat and curvature_rate: known from the second step on


def heading_of(trajectory: Tensor) -> Tensor:
    """(B, H, 4) -> (B, H) rad; a zero vector counts as heading 0 and has gradient 0."""
    cos, sin = trajectory[..., 2], trajectory[..., 3]
    degenerate = cos.square() + sin.square() < _TINY
    return torch.atan2(torch.where(degenerate, 0.0, sin), torch.where(degenerate, 1.0, cos))


def motion_of(trajectory: Tensor, speed_now: Tensor, accel_now: Tensor, known: Tensor) -> Motion:
    """trajectory (B, H, 4); speed_now, accel_now (B,) at the origin; known (B,) bool: whether these two are real."""
    origin = torch.zeros_like(trajectory[:, :1])
    origin[..., 2] = 1.0
    states = torch.cat((origin, trajectory), 1)
    displacement = states[:, 1:, :2] - states[:, :-1, :2]
    distance = (displacement.square().sum(-1) + _TINY).sqrt()
    speed = distance / STEP
    turn = wrap_angle(torch.diff(heading_of(states), dim=1))
    before = torch.where(known, speed_now, speed[:, 0].detach()).unsqueeze(1)
    a_lon = torch.diff(speed, dim=1, prepend=before) / STEP
    a_lat = speed * turn / STEP
    curvature = turn / distance.clamp(min=MIN_DISPLACEMENT)
    seed = torch.where(known, accel_now, a_lon[:, 0].detach()).unsqueeze(1)
    always = torch.ones_like(speed, dtype=torch.bool)
    later = always.clone()
    later[:, 0] = False
    from_known = later | known.unsqueeze(1)
    return Motion(
        speed=speed,
        a_lon=a_lon,
        a_lat=a_lat,
        curvature=curvature,
        jerk_lon=torch.diff(a_lon, dim=1, prepend=seed) / STEP,
        jerk_lat=torch.diff(a_lat, dim=1, prepend=a_lat[:, :1].detach()) / STEP,
        curvature_rate=torch.diff(curvature, dim=1, prepend=curvature[:, :1].detach()) / STEP,
        a_valid=from_known,
        jerk_valid=from_known,
        change_valid=later,
    )
