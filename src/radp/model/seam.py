"""The seam between the ego's motion and the plan: where a plan starts with another speed than the ego has."""

from __future__ import annotations

import torch
from torch import Tensor

from radp.scenario import DT
from radp.scene.scene import COS_SIN, XY

STANDSTILL = 1e-3  # m: shorter steps have no direction of their own


def close_seam(trajectory: Tensor, speed: Tensor, fade: float) -> Tensor:
    """Plans (B, H, 4) in the ego frame, the ego's speed now (B,) -> plans on the same paths that start at that speed.

    With u_h the plan's own speed in step h = 0, 1, ..., the new one is max(0, u_h + (speed - u_0) exp(-0.1 h / fade));
    the poses are read off the path at the new distances. A path that is too short goes on straight.
    """
    start = trajectory.new_tensor([0.0, 0.0, 1.0, 0.0]).expand(len(trajectory), 1, 4)
    poses = torch.cat((start, trajectory), 1)
    lengths = poses[:, 1:, XY].sub(poses[:, :-1, XY]).norm(dim=-1)  # (B, H)
    own = lengths / DT
    fading = torch.exp(-DT / fade * torch.arange(own.shape[1], device=own.device, dtype=own.dtype))
    wanted = (own + (speed.to(own)[:, None] - own[:, :1]) * fading).clamp(min=0.0)
    return read_off(poses, lengths, (wanted * DT).cumsum(1))


def read_off(poses: Tensor, lengths: Tensor, distance: Tensor) -> Tensor:
    """Path (B, 1 + H, 4) of steps (B, H) -> its poses at distances (B, H) from its start."""
    ends = torch.nn.functional.pad(lengths.cumsum(1), (1, 0))  # (B, 1 + H)
    after = torch.searchsorted(ends, distance.contiguous(), right=True).clamp(1, lengths.shape[1])
    step = lengths.gather(1, after - 1)
    share = torch.where(step > STANDSTILL, (distance - ends.gather(1, after - 1)) / step.clamp(min=STANDSTILL), 0.0)
    rows = torch.arange(len(poses), device=poses.device).unsqueeze(1)
    first, last = poses[rows, after - 1], poses[rows, after]
    inside = share.clamp(max=1.0).unsqueeze(-1)
    turned = first[..., COS_SIN] + inside * (last[..., COS_SIN] - first[..., COS_SIN])
    heading = turned / turned.norm(dim=-1, keepdim=True).clamp(min=1e-6)
    beyond = (distance - ends[:, -1:]).clamp(min=0.0).unsqueeze(-1)
    xy = first[..., XY] + inside * (last[..., XY] - first[..., XY]) + beyond * heading
    return torch.cat((xy, heading), -1)
