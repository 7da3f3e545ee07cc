"""Forward geometry along a plan for the attribution head's query: what is near, how far the borders are; no gradients.

`cheap` needs what the planner holds: lanes of the route with their borders, boxes, its own predictions. `full` also
needs the route's lanes in driving order, as the teacher does.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from radp.model.cheap_geometry import (
    MOMENTS,
    MOST_ERROR,
    MOST_OVER,
    MOST_SPEED,
    NEAREST_GAP,
    ONCE,
    SERIES,
    cheap_values,
)
from radp.rules.body import body_corners
from radp.rules.collision import CLEARANCE, Collision
from radp.rules.context import RuleContext
from radp.scene.scene import Scene

WINDOWS = 8
PER_WINDOW = 10
AT_END = 4


def geometry_count(kind: str) -> int:
    """Values of a kind of geometry; none without a name."""
    return {"": 0, "cheap": MOMENTS * SERIES + ONCE, "full": WINDOWS * PER_WINDOW + AT_END}[kind]


@torch.no_grad()
def plan_geometry(kind: str, trajectory: Tensor, scene: Scene, predictions: Tensor | None = None) -> Tensor:
    """trajectory (B, 80, 4), predictions (B, K, 80, 4) of the first K agents of the scene -> (B, G)."""
    made: dict[str, Callable[..., Tensor]] = {"cheap": cheap_geometry, "full": full_geometry}
    return made[kind](trajectory, scene, predictions)


def cheap_geometry(trajectory: Tensor, scene: Scene, predictions: Tensor | None = None) -> Tensor:
    """(B, 131): at 16 moments, every 0.5 s, lateral error, body beyond the left and right border of the corridor, speed
    over the limit, least gap to any box, and of the box in the way that lacks most clearance how much, its closing
    speed and the missing share; then missing progress, distance to the next red stop line, speed now."""
    return torch.from_numpy(cheap_values(trajectory, scene, predictions)).to(trajectory.device)


def full_geometry(trajectory: Tensor, scene: Scene, predictions: Tensor | None = None) -> Tensor:
    """(B, 84): extremes in 8 windows of 1 s of what the rules of `v2` look at, then the end of the plan."""
    context = RuleContext.from_scene(scene, predictions, horizon=trajectory.shape[1])
    context = context.bind(trajectory, corners=True)
    match, edges = context.match(trajectory), context.corner_match(trajectory)
    error, at_corner = match.lateral(trajectory), edges.lateral(body_corners(trajectory).flatten(1, 2))
    left, right = at_corner - edges.left_width, -at_corner - edges.right_width
    outer = [side.unflatten(1, (-1, 4)).amax(-1).clamp(-MOST_OVER, MOST_OVER) * match.valid for side in (left, right)]
    size = (error.abs().clamp(max=MOST_ERROR)) * match.valid
    speed = context.motion(trajectory).speed
    over = (speed - match.speed_limit).clamp(-MOST_SPEED, MOST_SPEED) * match.has_speed_limit
    largest = [_windows(series).amax(-1) for series in (*outer, size, over)]
    near = [_windows(series).amax(-1) for series in _gated(trajectory, context)]
    progress = torch.cat((context.progress_now(trajectory), match.progress(trajectory)), 1)
    back = torch.relu(progress[:, :-1] - progress[:, 1:]).amax(-1)
    missing = (context.target - progress[:, -1]) * match.valid[:, -1]
    ends = [_compressed(missing / 5.0), _compressed(size[:, -1] / 0.5), _compressed(back), context.target / 20.0]
    parts = torch.stack((*largest, _windows(size).mean(-1), *near), 1)  # (B, 10, 8)
    return torch.cat((parts.flatten(1), torch.stack(ends, -1)), -1).float()


def _compressed(values: Tensor) -> Tensor:
    return values.sign() * values.abs().log1p()


def _windows(series: Tensor) -> Tensor:
    """(B, H) -> (B, 8, H / 8)."""
    return series.unflatten(1, (WINDOWS, -1))


def _gated(trajectory: Tensor, context: RuleContext) -> list[Tensor]:
    """Five (B, H): minus the least separation, gated violation, missing share, closing speed, and the sum of gates."""
    rule = Collision(from_now=4.0)
    pairs = rule.pairs(trajectory, context)
    gate = rule.gate(pairs)
    batch, horizon = trajectory.shape[:2]
    place = pairs.scene * horizon + pairs.step
    share = (pairs.violation / (pairs.violation + pairs.separation).clamp(min=CLEARANCE)).clamp(0, 1)
    worst = (
        (-NEAREST_GAP, -pairs.separation.clamp(max=NEAREST_GAP)),
        (0.0, gate * _compressed(pairs.violation.clamp(min=0.0))),
        (0.0, gate * share),
        (0.0, gate * _compressed(pairs.closing)),
    )
    empty = trajectory.new_zeros(batch * horizon)
    series = [(empty + none).scatter_reduce(0, place, values, "amax") for none, values in worst]
    series.append(empty.index_add(0, place, gate).log1p())
    return [one.view(batch, horizon) for one in series]
