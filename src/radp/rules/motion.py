"""Motion of a plan by finite differences over [current state, X_1 .. X_H] at 0.1 s.

Square roots and divisions are guarded inside, so that a standing car has finite gradients.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from radp.geometry.frames import wrap_angle
from radp.sim.plan import STEP_SECONDS

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

    def plans(self, first: int, last: int) -> Motion:
        """That of the plans first..last - 1 of the batch."""
        return Motion(*(getattr(self, field.name)[first:last] for field in fields(self)))


def judged(valid: Tensor, skipped: int) -> Tensor:
    """valid (B, H) bool -> the same without the first `skipped` steps."""
    if not skipped:
        return valid
    return valid & (torch.arange(valid.shape[1], device=valid.device) >= skipped)


def heading_of(trajectory: Tensor) -> Tensor:
    """(B, H, 4) -> (B, H) rad; a zero vector counts as heading 0 and has gradient 0."""
    cos, sin = trajectory[..., 2], trajectory[..., 3]
    degenerate = cos.square() + sin.square() < _TINY
    return torch.atan2(torch.where(degenerate, 0.0, sin), torch.where(degenerate, 1.0, cos))


def unit_heading(trajectory: Tensor) -> Tensor:
    """(B, H, 4) -> (B, H, 2) cos, sin of length 1; a zero vector counts as heading 0 and has gradient 0."""
    vector = trajectory[..., 2:]
    square = vector.square().sum(-1, keepdim=True)
    return torch.where(square < _TINY, vector.new_tensor([1.0, 0.0]), vector / square.clamp(min=_TINY).sqrt())


def with_origin(trajectory: Tensor) -> Tensor:
    """(B, H, 4) -> (B, H + 1, 4): the state now, which is the origin, before the plan."""
    origin = trajectory.new_tensor([0.0, 0.0, 1.0, 0.0])
    return torch.cat((origin.expand(len(trajectory), 1, 4), trajectory), 1)


def way_length(trajectory: Tensor) -> Tensor:
    """(B, H, 4) -> (B,) metres driven from where the ego is."""
    return torch.diff(with_origin(trajectory)[..., :2], dim=1).norm(dim=-1).sum(-1)


def motion_of(trajectory: Tensor, speed_now: Tensor, accel_now: Tensor, known: Tensor) -> Motion:
    """trajectory (B, H, 4); speed_now, accel_now (B,) at the origin; known (B,) bool: whether these two are real."""
    states = with_origin(trajectory)
    distance = (torch.diff(states[..., :2], dim=1).square().sum(-1) + _TINY).sqrt()
    speed = distance / STEP_SECONDS
    turn = wrap_angle(torch.diff(heading_of(states), dim=1))
    before = torch.where(known, speed_now, speed[:, 0].detach()).unsqueeze(1)
    a_lon = torch.diff(speed, dim=1, prepend=before) / STEP_SECONDS
    a_lat = speed * turn / STEP_SECONDS
    curvature = turn / distance.clamp(min=MIN_DISPLACEMENT)
    three = torch.stack((a_lon, a_lat, curvature))
    seed = three[..., :1].detach().clone()
    seed[0, :, 0] = torch.where(known, accel_now, seed[0, :, 0])
    jerk_lon, jerk_lat, curvature_rate = (torch.diff(three, prepend=seed) / STEP_SECONDS).unbind(0)
    later = torch.ones_like(speed, dtype=torch.bool)
    later[:, 0] = False
    from_known = later | known.unsqueeze(1)
    return Motion(
        speed=speed,
        a_lon=a_lon,
        a_lat=a_lat,
        curvature=curvature,
        jerk_lon=jerk_lon,
        jerk_lat=jerk_lat,
        curvature_rate=curvature_rate,
        a_valid=from_known,
        jerk_valid=from_known,
        change_valid=later,
    )
