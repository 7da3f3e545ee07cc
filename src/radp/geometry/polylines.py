"""Polylines, batched torch: stations along a line, the segment nearest to a point, the frame of a segment."""

from __future__ import annotations

import torch
from torch import Tensor

_TINY = 1e-9


def directions(lines: Tensor) -> Tensor:
    """(..., P, 2) -> (..., P, 2) unit direction to the next point, the last as the one before; (1, 0) if undefined."""
    steps = torch.diff(lines, dim=-2)
    steps = torch.cat((steps, steps[..., -1:, :]), -2)
    length = steps.norm(dim=-1, keepdim=True)
    ahead = torch.zeros_like(steps)
    ahead[..., 0] = 1.0
    return torch.where(length > _TINY, steps / length.clamp(min=_TINY), ahead)


def stations(lines: Tensor) -> Tensor:
    """(..., P, 2) -> (..., P) arc length of each point from the first one."""
    steps = torch.diff(lines, dim=-2).norm(dim=-1)
    return torch.nn.functional.pad(steps.cumsum(-1), (1, 0))


def nearest_vertex(points: Tensor, lines: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
    """points (B, H, 2), lines (B, R, P, 2), valid (B, R): index, distance (B, H, R) in each line, inf if not valid."""
    batch, rows, count = lines.shape[:3]
    distance = torch.cdist(points, lines.reshape(batch, rows * count, 2), compute_mode="donot_use_mm_for_euclid_dist")
    nearest, index = distance.view(batch, -1, rows, count).min(-1)
    return index, nearest.masked_fill(~valid.unsqueeze(1), torch.inf)


def nearer_segment(points: Tensor, before: Tensor, vertex: Tensor, after: Tensor) -> Tensor:
    """(..., 2) each -> (...) bool: True where vertex-after is nearer to the point than before-vertex."""
    return _segment_distance(points, vertex, after) <= _segment_distance(points, before, vertex)


def _segment_distance(points: Tensor, start: Tensor, end: Tensor) -> Tensor:
    along = end - start
    t = (((points - start) * along).sum(-1) / along.square().sum(-1).clamp(min=_TINY)).clamp(0, 1)
    return (points - start - t.unsqueeze(-1) * along).norm(dim=-1)
