"""PLUTO's losses: imitation of one candidate, its score, the others' futures, off-road cost and contrast."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from radp.planners.zoo.batch import Batch
from radp.planners.zoo.pluto import UNLIKELY
from radp.planners.zoo.tokens import FUTURE, PAST
from radp.scenario.vehicle import PACIFICA

METRES_PER_MODE = 10.0  # of progress along the reference line
PIXEL = 0.2  # m of a cost map
CIRCLES = tuple(-PACIFICA.rear_length + PACIFICA.length / 6 * k for k in (1, 3, 5))  # m ahead of the rear axle
RADIUS = 0.5 * math.hypot(PACIFICA.width, PACIFICA.length / 3) - 0.2
INSIDE = 0.95  # share of the cost map in which a circle counts
TEMPERATURE = 0.1


def pluto_loss(output: Batch, batch: Batch, contrast: bool = False) -> Batch:
    """Six terms of equal weight and their sum; without cost maps nothing is off the road.

    With `contrast` the batch is anchors, positives and negatives, a third each, `data_n_valid_mask` (B / 3,) says which
    negatives count, and only the first two thirds are imitated.
    """
    size = len(batch["current_state"])
    count = size // 3 * 2 if contrast else size
    target, valid = _targets(batch)
    target, valid = target[:count], valid[:count]
    line, mode = best_candidate(batch, count, output["probability"].shape[2])
    plan = output["trajectory"][torch.arange(count), line, mode]
    lines = batch["reference_line/valid_mask"][:count].any(-1)
    logits = output["probability"][:count].masked_fill(~lines[..., None], UNLIKELY).flatten(1)
    parts = {
        "reg_loss": _masked(plan, target[:, 0], valid[:, 0]),
        "cls_loss": F.cross_entropy(logits, line * output["probability"].shape[2] + mode),
        "ref_free_reg_loss": _masked(output["ref_free_trajectory"][:count], target[:, 0, :, :4], valid[:, 0]),
        "collision_loss": plan.new_zeros(()),
        "prediction_loss": _masked(output["prediction"][:count], target[:, 1:], valid[:, 1:]),
        "contrastive_loss": plan.new_zeros(()),
    }
    if "cost_maps" in batch:
        parts["collision_loss"] = collision_loss(plan, batch["cost_maps"][:count, ..., 0].float())
    if contrast:
        parts["contrastive_loss"] = contrastive_loss(output["hidden"], batch["data_n_valid_mask"])
    return {"loss": torch.stack(list(parts.values())).sum(), **parts}


def _targets(batch: Batch) -> tuple[Tensor, Tensor]:
    """(B, A, 80, 6) displacement, cos and sin of the turn, velocity; (B, A, 80) where it is known."""
    place, future = batch["agent/target"], slice(PAST, PAST + FUTURE)
    turn = place[..., 2:]
    velocity = batch["agent/velocity"][:, :, future]
    return torch.cat((place[..., :2], turn.cos(), turn.sin(), velocity), -1), batch["agent/valid_mask"][:, :, future]


def _masked(output: Tensor, target: Tensor, valid: Tensor) -> Tensor:
    """Smooth L1, summed over the channels, mean over the valid steps; 0 where there is none."""
    error = F.smooth_l1_loss(output, target, reduction="none").sum(-1)
    return (error * valid).sum() / valid.sum().clamp(min=1)


def best_candidate(batch: Batch, count: int, modes: int) -> tuple[Tensor, Tensor]:
    """(count,) reference line nearest to where the ego drove, and the mode of its progress along it."""
    steps = batch["agent/valid_mask"][:count, 0, PAST : PAST + FUTURE].sum(-1)
    second = (steps // 10).clamp(0, 7)
    rows = torch.arange(count)
    projected = batch["reference_line/future_projection"][:count].transpose(1, 2)[rows, second]  # (count, R, 2)
    missing = ~batch["reference_line/valid_mask"][:count].any(-1)
    line = (projected[..., 1] - UNLIKELY * missing).argmin(1)
    mode = (projected[rows, line, 0] / METRES_PER_MODE).long().clamp(0, modes - 1)
    return line, mode


def collision_loss(plan: Tensor, cost_map: Tensor) -> Tensor:
    """plan (B, 80, >= 4), cost_map (B, H, W) m to the nearest non-drivable place, ego in the middle, x to the right:
    how deep three circles along the ego reach off the road, the mean over those that do. A map in whose middle one
    cannot drive does not count."""
    height, width = cost_map.shape[1:]
    offsets = plan.new_tensor(CIRCLES)[:, None]
    centre = plan[:, :, None, :2] + offsets * plan[:, :, None, 2:4]  # (B, 80, 3, 2)
    scale = plan.new_tensor([width / 2, -height / 2]) * PIXEL
    grid = centre / scale
    away = F.grid_sample(cost_map[:, None], grid, align_corners=False)[:, 0]
    cost = RADIUS - away
    drivable = cost_map[:, height // 2, width // 2] > 0
    counts = (cost > 0) & (grid.abs() < INSIDE).all(-1) & drivable[:, None, None]
    return (cost * counts).sum() / (counts.sum() + 1e-6)


def contrastive_loss(hidden: Tensor, valid: Tensor) -> Tensor:
    """hidden (3 n, d), valid (n,): the anchor should be nearer to its positive than to its negative."""
    anchor, positive, negative = F.normalize(hidden, dim=-1).chunk(3)
    if not bool(valid.any()):
        return hidden.sum() * 0.0
    near, far = (anchor * positive).sum(-1), (anchor * negative).sum(-1)
    logits = torch.stack((near, far), -1)[valid] / TEMPERATURE
    return F.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long, device=logits.device))
