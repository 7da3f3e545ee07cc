"""Oriented boxes, batched torch. A box is (..., 6): x, y, cos, sin of its centre, length, width (m)."""

from __future__ import annotations

import torch
from torch import Tensor

from radp.geometry.frames import points_from_frame, rotate_back

# corners in units of half length and half width, counter-clockwise from the front left
_CORNER_SIGNS = ((1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0), (1.0, -1.0))


def make_boxes(poses: Tensor, length: Tensor | float, width: Tensor | float) -> Tensor:
    """(..., 4) poses of the centres, (...) or one length and width -> (..., 6) boxes."""
    sides = [torch.as_tensor(side, dtype=poses.dtype, device=poses.device) for side in (length, width)]
    return torch.cat((poses, *(side.expand(poses.shape[:-1]).unsqueeze(-1) for side in sides)), -1)


def box_corners(boxes: Tensor) -> Tensor:
    """(..., 6) -> (..., 4, 2) corners: front left, rear left, rear right, front right."""
    signs = boxes.new_tensor(_CORNER_SIGNS)
    return points_from_frame(signs * boxes[..., None, 4:6] / 2, boxes[..., None, :4])


def axis_gaps(a: Tensor, b: Tensor) -> Tensor:
    """(..., 6), (..., 6), broadcast -> (..., 8) gaps (m) between the boxes' shadows on the four box axes.

    On a unit axis u the shadows' centres lie p = u . (centre_b - centre_a) apart and reach h_a, h_b to
    each side; the gaps are p - h_a - h_b and -p - h_a - h_b. The boxes are apart if and only if some gap is positive.
    """
    a, b = torch.broadcast_tensors(a, b)
    axes = torch.stack([axis for box in (a, b) for axis in _axes(box)], -2)  # (..., 4, 2)
    offset = ((b[..., :2] - a[..., :2]).unsqueeze(-2) * axes).sum(-1)
    reach = _reach(a, axes) + _reach(b, axes)
    return torch.cat((offset - reach, -offset - reach), -1)


def separation(a: Tensor, b: Tensor) -> Tensor:
    """(..., 6), (..., 6) -> (...) signed separation by separating axes (m): the largest gap.

    Negative: depth of the overlap. Positive: a lower bound of the distance, exact unless corner faces corner.
    """
    return separation_of(a[..., :4], a[..., 4:6], b[..., :4], b[..., 4:6])


def separation_of(poses_a: Tensor, size_a: Tensor, poses_b: Tensor, size_b: Tensor) -> Tensor:
    """Poses (..., 4) with headings of length 1, sizes (..., 2) of length and width -> (...): the same as `separation`.

    Of the two gaps on an axis the larger one is |offset| - reach. With c, s = |cos|, |sin| of the angle between the
    boxes, a box of half sides l, w reaches c l + s w along the other one's axis, and s l + c w across it.
    """
    half_a, half_b = size_a / 2, size_b / 2
    offset = poses_b[..., :2] - poses_a[..., :2]
    turn = rotate_back(poses_b[..., 2:4], poses_a[..., 2], poses_a[..., 3]).abs()
    on_a = rotate_back(offset, poses_a[..., 2], poses_a[..., 3]).abs() - half_a - _reach_across(half_b, turn)
    on_b = rotate_back(offset, poses_b[..., 2], poses_b[..., 3]).abs() - half_b - _reach_across(half_a, turn)
    return torch.cat((on_a, on_b), -1).amax(-1)


def _reach_across(half: Tensor, turn: Tensor) -> Tensor:
    """half sides (..., 2), |cos| and |sin| (..., 2) -> (..., 2) reach along and across the other box."""
    c, s = turn[..., :1], turn[..., 1:]
    return c * half + s * half.flip(-1)


def _axes(box: Tensor) -> tuple[Tensor, Tensor]:
    along = box[..., 2:4]
    return along, torch.stack((-box[..., 3], box[..., 2]), -1)


def _reach(box: Tensor, axes: Tensor) -> Tensor:
    """Half extent of the box (..., 6) on the axes (..., 4, 2) -> (..., 4)."""
    along, across = _axes(box)
    return (
        box[..., 4:5] / 2 * (axes * along.unsqueeze(-2)).sum(-1).abs()
        + box[..., 5:6] / 2 * (axes * across.unsqueeze(-2)).sum(-1).abs()
    )
