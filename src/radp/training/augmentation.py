"""State perturbation: start training samples a little off the logged pose, with a future that returns to the log.

Applied to a batch before normalisation. The ego's state is disturbed, the first two seconds of its future are
replaced by a quintic from the disturbed state to the logged one at 2.1 s, and everything is then expressed in
the disturbed ego frame.

In the published program the quintic starts towards the log's place 1.1 s ahead, whatever the ego's heading, and
accelerates at both ends even where the log brakes. In bends that teaches to cut in by a tenth of a metre within half a
second and to straighten out then. The way called "own" is the log's motion plus a deviation that fades out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from radp.geometry.frames import heading_angle, heading_vector, points_to_frame, rotate_back, wrap_angle
from radp.scenario import DT
from radp.scene.scene import (
    AGENT_VELOCITY,
    COS_SIN,
    LANE_GEOMETRY,
    LANE_LIGHT,
    OBJECT_VELOCITY,
    POSE,
    XY,
    EgoColumn,
    FutureColumn,
    RoadView,
    RuleView,
    Scene,
    present,
)
from radp.training.settings import WayBack

MIN_SPEED = 2.0  # m/s, slower samples are left alone
# x, y (m), yaw (rad), vx, vy (m/s), ax, ay (m/s^2), steering (rad), yaw rate (rad/s): noise is uniform within +-
REACH = (0.0, 0.75, 0.35, 1.0, 0.5, 0.2, 0.1, 0.0, 0.0)
MAX_YAW_RATE = 0.85
STANDSTILL = 0.2  # m/s, below it steering and yaw rate are zero
WHEEL_BASE = 3.089  # m

JOIN = 20  # future index (2.1 s) where the new start meets the log
CREEP = 0.5  # m/s, below it the direction of a step is no heading
BEARING = 10  # future index towards which the new start points

VELOCITY = slice(EgoColumn.VX, EgoColumn.AX)
ACCELERATION = slice(EgoColumn.AX, EgoColumn.STEERING)


@dataclass(frozen=True)
class Draws:
    """Random numbers in [0, 1): flag (B,) decides who is disturbed, noise (B, 9) by how much."""

    flag: Tensor
    noise: Tensor

    @staticmethod
    def make(batch: int, generator: torch.Generator | None = None) -> Draws:
        return Draws(torch.rand(batch, generator=generator), torch.rand(batch, len(REACH), generator=generator))


def augment(scene: Scene, draws: Draws, probability: float, way: WayBack = "published") -> Scene:
    """Scene of B in metres with the ego's future -> the same, partly disturbed, in the new ego frames."""
    if scene.ego_agent_future is None:
        raise ValueError("augmentation needs scenes with the ego's future")
    ego = scene.ego_current_state
    chosen = (draws.flag >= 1 - probability) & (ego[:, EgoColumn.VX].abs() >= MIN_SPEED)
    disturbed = disturb_state(ego, draws.noise)
    logged = scene.ego_agent_future
    future = return_to_log(disturbed, logged) if way == "published" else own_return(ego, disturbed, logged)
    scene = replace(
        scene,
        ego_current_state=torch.where(chosen[:, None], disturbed, ego),
        ego_agent_future=torch.where(chosen[:, None, None], future, scene.ego_agent_future),
    )
    return in_ego_frame(scene)


def disturb_state(ego: Tensor, uniform: Tensor) -> Tensor:
    """ego (B, 10), uniform (B, 9) in [0, 1) -> (B, 10). Velocity and acceleration are disturbed in the old axes."""
    noise = ego.new_tensor(REACH) * (2 * uniform - 1)
    xy = ego[:, XY] + noise[:, :2]
    heading = heading_vector(heading_angle(ego[:, COS_SIN]) + noise[:, 2])
    rest = ego[:, VELOCITY.start :] + noise[:, 3:]
    speed = rest[:, :1].clamp(min=0.0)
    yaw_rate = rest[:, -1:].clamp(-MAX_YAW_RATE, MAX_YAW_RATE)
    moving = speed >= STANDSTILL
    yaw_rate = yaw_rate * moving
    steering = torch.atan(yaw_rate * WHEEL_BASE / speed.clamp(min=STANDSTILL))
    return torch.cat((xy, heading, speed, rest[:, 1:4], steering, yaw_rate), -1)


def return_to_log(ego: Tensor, future: Tensor) -> Tensor:
    """ego (B, 10), future (B, T, 3) in one frame -> (B, T, 3): steps before JOIN replaced by a quintic."""
    start_xy, end = ego[:, XY], future[:, JOIN]
    start_heading = heading_angle(future[:, BEARING, XY] - start_xy)
    start = _boundary(
        start_heading,
        ego[:, VELOCITY].norm(dim=-1),
        ego[:, ACCELERATION].norm(dim=-1),
        ego[:, EgoColumn.YAW_RATE],
    )
    last = future[:, JOIN - 2 : JOIN + 1]
    moved = last[..., XY].diff(dim=1) / DT  # (B, 2, 2)
    turned = wrap_angle(last[:, 2, FutureColumn.HEADING] - last[:, 1, FutureColumn.HEADING]) / DT
    finish = _boundary(
        end[:, FutureColumn.HEADING], moved[:, 1].norm(dim=-1), moved.diff(dim=1)[:, 0].norm(dim=-1) / DT, turned
    )
    points = quintic(start_xy, *start, end[:, XY], *finish, steps=JOIN + 1)[:, :JOIN]
    step = torch.diff(torch.cat((start_xy[:, None], points), 1), dim=1)
    new = torch.cat((points, heading_angle(step).unsqueeze(-1)), -1)
    return torch.cat((new, future[:, JOIN:]), 1)


def own_return(before: Tensor, ego: Tensor, future: Tensor) -> Tensor:
    """before, ego (B, 10): the state of the log and the disturbed one; future (B, T, 3) -> (B, T, 3): the log's own
    motion plus a deviation that starts as the ego was disturbed and has faded out, with its speed, at JOIN.

    A cubic: it turns back at once. A planner that plans anew at every step follows only the start of its plans, so a
    way that turns back later (a quintic that keeps the acceleration) would never do so.
    """
    span = (JOIN + 1) * DT
    shift = (ego[:, XY] - before[:, XY])[:, None]
    drift = (_velocity(ego) - _velocity(before))[:, None]
    s = (DT / span * torch.arange(1, future.shape[1] + 1, dtype=ego.dtype, device=ego.device)).clamp(max=1.0)[:, None]
    xy = future[..., XY] + shift * (1 - 3 * s**2 + 2 * s**3) + span * drift * s * (1 - s) ** 2
    step = torch.diff(torch.cat((ego[:, None, XY], xy), 1), dim=1)
    logged = future[..., FutureColumn.HEADING]
    turned = (s[:, 0] < 1) & (step.norm(dim=-1) >= DT * CREEP)
    heading = torch.where(turned, heading_angle(step), logged)
    return _keep_padding(torch.cat((xy, heading.unsqueeze(-1)), -1), future)


def _velocity(ego: Tensor) -> Tensor:
    return ego[:, EgoColumn.VX, None] * ego[:, COS_SIN]


def _boundary(heading: Tensor, speed: Tensor, acceleration: Tensor, yaw_rate: Tensor) -> tuple[Tensor, Tensor]:
    """(B,) each -> velocity and acceleration (B, 2) of a body that moves along its heading and turns."""
    along = heading_vector(heading)
    across = torch.stack((-along[:, 1], along[:, 0]), -1)
    return speed[:, None] * along, acceleration[:, None] * along + (speed * yaw_rate)[:, None] * across


def quintic(p0: Tensor, v0: Tensor, a0: Tensor, p1: Tensor, v1: Tensor, a1: Tensor, steps: int) -> Tensor:
    """Boundary values (B, 2) -> (B, steps, 2): the quintic from (p0, v0, a0) to (p1, v1, a1) after each step of DT."""
    span = steps * DT
    gap = p1 - p0 - v0 * span - a0 * span**2 / 2  # what c3..c5 must still add to position,
    slope = (v1 - v0 - a0 * span) * span  # to velocity
    bend = (a1 - a0) * span**2  # and to acceleration at the end, in units of the span
    c3 = 10 * gap - 4 * slope + bend / 2
    c4 = -15 * gap + 7 * slope - bend
    c5 = 6 * gap - 3 * slope + bend / 2
    time = DT * torch.arange(1, steps + 1, dtype=p0.dtype, device=p0.device)[:, None]
    s = time / span
    p0, v0, a0, c3, c4, c5 = (value[:, None] for value in (p0, v0, a0, c3, c4, c5))
    return p0 + v0 * time + a0 * time**2 / 2 + s**3 * (c3 + s * (c4 + s * c5))


def in_ego_frame(scene: Scene) -> Scene:
    """Scene whose ego stands at any pose -> the same scene in that ego's frame; rows of zeros stay zero."""
    frame = scene.ego_current_state[:, POSE]
    ego = scene.ego_current_state
    speeds = [_turned(ego[:, pair], frame) for pair in (VELOCITY, ACCELERATION)]
    future = scene.ego_agent_future
    return replace(
        scene,
        ego_current_state=torch.cat((_posed(ego[:, POSE], frame), *speeds, ego[:, ACCELERATION.stop :]), -1),
        neighbor_agents_past=_boxes(scene.neighbor_agents_past, AGENT_VELOCITY, frame[:, None, None]),
        static_objects=_static(scene.static_objects, frame[:, None]),
        lanes=_lanes(scene.lanes, frame[:, None, None]),
        route_lanes=_lanes(scene.route_lanes, frame[:, None, None]),
        ego_agent_future=None if future is None else _keep_padding(_future(future, frame[:, None]), future),
        neighbor_agents_future=_futures(scene.neighbor_agents_future, frame),
        rules=None if scene.rules is None else _rule_view(scene.rules, frame),
    )


def _rule_view(view: RuleView, frame: Tensor) -> RuleView:
    return replace(
        view,
        objects=_boxes(view.objects, OBJECT_VELOCITY, frame[:, None]),
        route_lanes=_lanes(view.route_lanes, frame[:, None, None]),
        object_futures=_futures(view.object_futures, frame),
        road=None if view.road is None else _road_view(view.road, frame),
    )


def _road_view(view: RoadView, frame: Tensor) -> RoadView:
    """The border stays known as far as it was, less the way that the ego was moved."""
    one, border, reach = frame[:, None], view.border, view.border_reach
    if border is not None and reach is not None:
        ends = points_to_frame(border.unflatten(-1, (2, 2)), one[:, None])
        border, reach = _keep_padding(ends.flatten(-2), border), reach - frame[:, XY].norm(dim=-1, keepdim=True)
    past, crossing, lanes = view.object_past, view.object_crossing, view.lanes
    entry = torch.cat((points_to_frame(crossing[..., XY], one), crossing[..., 2:]), -1)
    centre = torch.cat((points_to_frame(lanes[..., XY], one[:, None]), lanes[..., 2:]), -1)
    return replace(
        view,
        object_past=_keep_padding(points_to_frame(past, one), past),
        object_crossing=_keep_padding(entry, crossing),
        lanes=_keep_padding(centre, lanes),
        border=border,
        border_reach=reach,
    )


def _turned(vectors: Tensor, frame: Tensor) -> Tensor:
    return rotate_back(vectors, frame[..., 2], frame[..., 3])


def _posed(poses: Tensor, frame: Tensor) -> Tensor:
    """(..., 4) poses in the outer frame -> in the frame."""
    return torch.cat((points_to_frame(poses[..., XY], frame), _turned(poses[..., COS_SIN], frame)), -1)


def _boxes(boxes: Tensor, velocity: slice, frame: Tensor) -> Tensor:
    """Rows that begin with pose and velocity."""
    turned = _turned(boxes[..., velocity], frame)
    return _keep_padding(torch.cat((_posed(boxes[..., POSE], frame), turned, boxes[..., velocity.stop :]), -1), boxes)


def _static(objects: Tensor, frame: Tensor) -> Tensor:
    return _keep_padding(torch.cat((_posed(objects[..., POSE], frame), objects[..., POSE.stop :]), -1), objects)


def _lanes(lanes: Tensor, frame: Tensor) -> Tensor:
    """The point moves and turns; the step to the next point and to both boundaries only turn."""
    x, ahead, left, right = lanes[..., LANE_GEOMETRY].unflatten(-1, (4, 2)).unbind(-2)
    turned = [_turned(pair, frame) for pair in (ahead, left, right)]
    moved = torch.cat((points_to_frame(x, frame), *turned, lanes[..., LANE_LIGHT]), -1)
    return _keep_padding(moved, lanes[..., LANE_GEOMETRY])


def _future(future: Tensor, frame: Tensor) -> Tensor:
    heading = wrap_angle(future[..., FutureColumn.HEADING] - heading_angle(frame[..., COS_SIN]))
    return torch.cat((points_to_frame(future[..., XY], frame), heading.unsqueeze(-1)), -1)


def _futures(futures: Tensor | None, frame: Tensor) -> Tensor | None:
    """(B, N, T, 3), frame (B, 4)."""
    return None if futures is None else _keep_padding(_future(futures, frame[:, None, None]), futures)


def _keep_padding(moved: Tensor, rows: Tensor) -> Tensor:
    return moved.masked_fill(~present(rows).unsqueeze(-1), 0.0)
