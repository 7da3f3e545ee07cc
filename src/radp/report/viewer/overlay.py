"""What the rules look at, for drawing on the map: the corridor along each plan, speeds above the limit, and where each
rule would move the plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from radp.attribution.afterwards import Judged
from radp.report.viewer.explain import Explanation
from radp.report.viewer.frames import to_world
from radp.report.viewer.pack import Grid, pack
from radp.sim.rollout import Rollout

EVERY = 5  # steps of a plan between two places that are drawn
OVER_STEP = 0.1  # m/s
ARROW = 127  # length of the longest arrow of a rule in one plan


def overlay_data(
    rollout: Rollout, judged: Judged, why: Explanation, rules: Sequence[str], grid: Grid
) -> dict[str, Any]:
    """JSON-ready, for K plans at P places: borders (K, P, 4) left and right; over (K, P); arrows (K, N, P, 2) of N
    rules, `of` their places in `rules`."""
    plans, last = judged.plans, judged.plans.shape[1] // EVERY * EVERY
    places = slice(EVERY - 1, last, EVERY)
    left, right = _borders(judged, plans[:, places, :2])
    over = _overspeed(judged)[:, places].numpy()
    drawn = loudest(why, rules)
    borders = np.concatenate((to_world(rollout.ego, left), to_world(rollout.ego, right)), -1)
    return {
        "points": last // EVERY,
        "every": EVERY,
        "borders": pack(grid.positions(borders.reshape(len(plans), -1, 2))),
        "over": pack(np.clip(np.round(over / OVER_STEP), 0, 255).astype(np.uint8)),
        "of": drawn,
        "arrows": pack(_arrows(rollout, judged, [rules[i] for i in drawn], last)),
    }


def loudest(why: Explanation, rules: Sequence[str]) -> list[int]:
    """Rules whose arrows can be drawn: those that press most in some sample, among all or with jumps left out."""
    values, jumps = np.nan_to_num(why.columns(rules), nan=-1.0), why.jumps(rules)
    calm = values if jumps is None else np.where(jumps, -1.0, values)
    return sorted({*values.argmax(1).tolist(), *calm.argmax(1).tolist()})


def _borders(judged: Judged, points: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """(K, P, 2) places on the corridor's left and right border beside the points, ego frame; NaN without a route."""
    match = judged.context.route.match(points)
    foot = match.anchor + ((points - match.anchor) * match.tangent).sum(-1, keepdim=True) * match.tangent
    normal = torch.stack((-match.tangent[..., 1], match.tangent[..., 0]), -1)
    known = match.valid.unsqueeze(-1)
    left = torch.where(known, foot + match.left_width.unsqueeze(-1) * normal, torch.nan)
    right = torch.where(known, foot - match.right_width.unsqueeze(-1) * normal, torch.nan)
    return left.double().numpy(), right.double().numpy()


def _overspeed(judged: Judged) -> torch.Tensor:
    """(K, H) m/s above the limit, 0 where it is kept or not known."""
    match = judged.context.match(judged.plans)
    over = judged.context.motion(judged.plans).speed - match.speed_limit
    return torch.where(match.has_speed_limit, over, 0.0).clamp(min=0)


def _arrows(rollout: Rollout, judged: Judged, rules: Sequence[str], last: int) -> np.ndarray:
    """(K, N, P, 2) int8, world: where each rule would move each half second of the plan; the longest is ARROW."""
    why = judged.why
    pieces = why.direction[:, :, :last, :2].double().unflatten(2, (-1, EVERY)).sum(3).numpy()
    heading = rollout.ego[: len(pieces), 2][:, None, None]
    c, s = np.cos(heading), np.sin(heading)
    turned = np.stack((c * pieces[..., 0] - s * pieces[..., 1], s * pieces[..., 0] + c * pieces[..., 1]), -1)
    longest = np.linalg.norm(turned, axis=-1).max(-1)[..., None, None]
    unit = np.round(ARROW * turned / np.maximum(longest, 1e-30)).astype(np.int8)
    out = np.zeros((len(unit), len(rules), *unit.shape[2:]), dtype=np.int8)
    for i, name in enumerate(rules):
        if name in why.rules:
            out[:, i] = unit[:, why.rules.index(name)]
    return out
