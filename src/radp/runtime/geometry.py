"""The cheap geometry of a plan in numpy, for heads that look at it: what `radp.model.cheap_geometry` compiles.

It looks at what the encoder is given. The constants stand here, so that the runtime needs nothing above it; the rules
and the compiled geometry take them from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from radp.runtime.solver import DT

EVERY = 5  # steps between two moments
MOMENTS = 16
BESIDE = 1.0  # m beside the path within which an object stands in the way
FAR = 50.0  # m: nobody is near, no stop line is ahead
NEAREST_GAP, MOST_ERROR, MOST_OVER, MOST_SPEED = 5.0, 5.0, 3.0, 5.0  # m, m, m, m/s
SERIES = 8  # lateral error, beyond left, beyond right, over the limit, least gap, missing, closing, missing share
ONCE = 3  # missing progress, next red stop line, speed now
# of the rules
CLEARANCE = 0.5  # d_0 [m]
HEADWAY = 0.8  # t_head [s]
BRAKING = 4.0  # a_brake [m/s2]
NOMINAL_ACCELERATION = 0.5  # m/s2, of the reachable progress
SIDE_BY_SIDE = 15.0  # m, lanes further apart than this do not form one corridor
SAME_WAY = 0.8  # cosine of the angle between lanes of one corridor

BETWEEN = EVERY * DT
XY, LEFT, RIGHT, RED = slice(0, 2), slice(4, 6), slice(6, 8), 10  # columns of a lane
MOTION, VELOCITY = slice(0, 6), slice(4, 6)  # columns of an object: x, y, cos, sin, vx, vy, length, width


class Body(NamedTuple):
    """The ego's box [m]."""

    length: float
    width: float
    rear_axle_to_center: float

    @property
    def front(self) -> float:
        """From the rear axle to the front bumper."""
        return self.length / 2 + self.rear_axle_to_center


@np.errstate(all="ignore")  # a plan that is not finite is refused elsewhere
def cheap_geometry(
    plan: np.ndarray, scene: Mapping[str, np.ndarray], predictions: np.ndarray, body: Body
) -> np.ndarray:
    """plan (B, 80, 4), arrays of B scenes, predictions (B, K, 80, 4) of the first K neighbours -> (B, 131) float32.

    At 16 moments, every 0.5 s, the eight of SERIES, then the three of ONCE.
    """
    moments, lanes = _moments(plan), scene["route_lanes"]
    used = (lanes != 0).any((2, 3))
    series = (
        *_lane_series(moments, scene, used, body),
        *_clearance_series(moments, _objects(scene), predictions[:, : scene["neighbor_agents_past"].shape[1]], body),
    )
    speed = _norm(scene["ego_current_state"][:, VELOCITY])
    time = plan.shape[1] * DT
    wanted = speed * time + 0.5 * NOMINAL_ACCELERATION * time**2
    missing = (wanted - _length(plan)) / 5.0
    once = (np.copysign(np.log1p(np.abs(missing)), missing), _stop_line(lanes, used, body) / FAR, speed / 10.0)
    return np.concatenate((*series, np.stack(once, 1)), 1, dtype=np.float32)


def _norm(a: np.ndarray) -> np.ndarray:
    return np.hypot(a[..., 0], a[..., 1])


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a[..., 0] * b[..., 0] + a[..., 1] * b[..., 1]


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """How far b (..., 2) points to the left of a (..., 2)."""
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def _moments(plan: np.ndarray) -> np.ndarray:
    """Plans (B, 80, 4) -> poses (B, 17, 4) now and every 0.5 s, headings of length 1."""
    now = np.broadcast_to([0.0, 0.0, 1.0, 0.0], (len(plan), 1, 4))
    moments = np.concatenate((now, plan[:, EVERY - 1 : MOMENTS * EVERY : EVERY]), 1)
    size = _dot(moments[..., 2:], moments[..., 2:])[..., None]
    moments[..., 2:] = np.where(size >= 1e-12, moments[..., 2:] / np.sqrt(np.maximum(size, 1e-12)), [1.0, 0.0])
    return moments


def _length(plan: np.ndarray) -> np.ndarray:
    """Plans (B, 80, 4) -> (B,) metres of their way from where the ego is now."""
    steps = np.diff(plan[..., XY].astype(float), axis=1, prepend=0.0)
    return _norm(steps).sum(-1)


def _stop_line(lanes: np.ndarray, used: np.ndarray, body: Body) -> np.ndarray:
    """(B,) metres to the nearest red stop line ahead of the front bumper, at most FAR."""
    start = lanes[:, :, 0]
    red = used & (start[..., RED] > 0.5) & (start[..., 0] > body.front)
    return np.where(red, _norm(start[..., XY]), FAR).min(1, initial=FAR)


def _lane_series(
    moments: np.ndarray, scene: Mapping[str, np.ndarray], used: np.ndarray, body: Body
) -> tuple[np.ndarray, ...]:
    """Four (B, 16): lateral error, body beyond the left and right border, speed over the limit; 0 without lanes."""
    batch = len(moments)
    if not used.any():
        return (np.zeros((batch, MOMENTS)),) * 4
    poses = moments[:, 1:]
    points = np.concatenate((poses[:, :, None, XY], _corners(poses, body)), 2)  # (B, 16, 5, 2): rear axle, corners
    found = _match(points.reshape(batch, -1, 2), scene["route_lanes"], used)
    lane, error, left, right = (value.reshape(batch, MOMENTS, 5) for value in found)
    limit, has_limit = (
        np.take_along_axis(scene[f"route_lanes_{name}"][..., 0], lane[..., 0], 1)
        for name in ("speed_limit", "has_speed_limit")
    )
    speed = _norm(np.diff(moments[..., XY], axis=1)) / BETWEEN
    values = (
        np.clip(error[..., 0], -MOST_ERROR, MOST_ERROR),
        np.clip((error - left)[..., 1:].max(-1), -MOST_OVER, MOST_OVER),
        np.clip((-error - right)[..., 1:].max(-1), -MOST_OVER, MOST_OVER),
        np.where(has_limit, np.clip(speed - limit, -MOST_SPEED, MOST_SPEED), 0.0),
    )
    return tuple(np.where(used.any(1, keepdims=True), value, 0.0) for value in values)


def _corners(poses: np.ndarray, body: Body) -> np.ndarray:
    """Poses (B, M, 4) of the rear axle -> (B, M, 4, 2) corners of the body."""
    forward = poses[:, :, None, 2:]
    left = np.stack((-forward[..., 1], forward[..., 0]), -1)
    rear, half = body.front - body.length, body.width / 2
    along = np.array([body.front, body.front, rear, rear])[:, None]
    return poses[:, :, None, XY] + along * forward + np.array([half, -half, half, -half])[:, None] * left


def _directions(lanes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lanes (B, R, P, 12) -> unit directions (B, R, P, 2) to the next points, mean distance of the points (B, R)."""
    steps = np.diff(lanes[..., XY], axis=2)
    sizes = _norm(steps)[..., None]
    ways = np.where(sizes > 1e-9, steps / np.maximum(sizes, 1e-9), np.array([1, 0], lanes.dtype))
    return np.concatenate((ways, ways[:, :, -1:]), 2), sizes[..., 0].mean(-1, dtype=float)


def _segment_distance(points: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """(..., 2) each -> (...) metres."""
    step, away = end - start, points - start
    share = np.clip(_dot(away, step) / np.maximum(_dot(step, step), 1e-9), 0.0, 1.0)
    return _norm(away - share[..., None] * step)


def _match(points: np.ndarray, lanes: np.ndarray, used: np.ndarray) -> tuple[np.ndarray, ...]:
    """Points (B, Q, 2) on the lanes -> four (B, Q): the nearest lane, the signed lateral error, and the widths of the
    corridor to both sides."""
    ways, spacing = _directions(lanes)
    away = lanes[:, None, :, :, XY] - points[:, :, None, None]
    squares = _dot(away, away)  # (B, Q, R, P)
    nearest = squares.argmin(-1)
    lane = np.where(used[:, None], squares.min(-1), np.inf).argmin(-1)
    scene, last = np.arange(len(lanes))[:, None], lanes.shape[2] - 1
    k = np.take_along_axis(nearest, lane[..., None], 2)[..., 0]
    before, after = np.maximum(k - 1, 0), np.minimum(k + 1, last)
    behind, here, ahead = (lanes[scene, lane, index, XY] for index in (before, k, after))
    forward = _segment_distance(points, here, ahead) <= _segment_distance(points, behind, here)
    forward = (forward & (k < last)) | (k == 0)
    first, second = np.where(forward, k, before), np.where(forward, after, k)
    start, end, tangent = lanes[scene, lane, first], lanes[scene, lane, second], ways[scene, lane, first]
    away = points - start[..., XY]
    size = np.maximum(_norm((end - start)[..., XY]), 1e-6)
    share = np.clip(_dot(away, tangent) / size, 0.0, 1.0)[..., None]
    foot = start + share * (end - start)
    rows = scene[..., None], np.arange(lanes.shape[1]), nearest
    left, right = _corridor(foot, tangent, lanes[rows], ways[rows], used[:, None], spacing[:, None])
    return lane, _cross(tangent, away), left, right


def _corridor(
    foot: np.ndarray, tangent: np.ndarray, there: np.ndarray, way: np.ndarray, used: np.ndarray, spacing: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Widths (B, Q) to the left and right of a foot (B, Q, 12) on its lane; `there` (B, Q, R, 12) and `way` are the
    nearest points of all lanes, of which those side by side with it count."""
    own = _cross(tangent, foot[..., LEFT]), -_cross(tangent, foot[..., RIGHT])
    gap, tangent = there[..., XY] - foot[:, :, None, XY], tangent[:, :, None]
    ahead, cos = _dot(gap, tangent), _dot(way, tangent)
    offset = _cross(tangent, gap) - ahead * _cross(tangent, way) / np.maximum(cos, SAME_WAY)
    beside = used & (np.abs(ahead) <= spacing) & (cos >= SAME_WAY) & (np.abs(offset) <= SIDE_BY_SIDE)
    reach = offset + _cross(tangent, there[..., LEFT]), -offset - _cross(tangent, there[..., RIGHT])
    left, right = (np.maximum(mine, np.where(beside, all_, -np.inf).max(-1)) for mine, all_ in zip(own, reach))
    return left, right


def _objects(scene: Mapping[str, np.ndarray]) -> np.ndarray:
    """(B, N, 8) x, y, cos, sin, vx, vy, length, width: neighbours, static objects, and one row for nobody."""
    agents, still = scene["neighbor_agents_past"][:, :, -1], scene["static_objects"]
    objects = np.zeros((len(agents), agents.shape[1] + still.shape[1] + 1, 8), agents.dtype)
    objects[:, : agents.shape[1]] = agents[..., [0, 1, 2, 3, 4, 5, 7, 6]]
    objects[:, agents.shape[1] : -1, [0, 1, 2, 3, 6, 7]] = still[..., [0, 1, 2, 3, 5, 4]]
    return objects


def _object_poses(objects: np.ndarray, predictions: np.ndarray) -> np.ndarray:
    """(B, N, 17, 4) at the moments: the first as predicted, the others with the velocity of now."""
    time = np.arange(MOMENTS + 1)[:, None] * BETWEEN
    poses = np.repeat(objects[:, :, None, :4].astype(float), MOMENTS + 1, 2)
    poses[..., XY] += time * objects[:, :, None, VELOCITY]
    ahead = predictions[:, :, EVERY - 1 : MOMENTS * EVERY : EVERY]
    poses[:, : ahead.shape[1], 1:, XY] = ahead[..., XY]
    size = np.maximum(_norm(ahead[..., 2:])[..., None], 1e-12)
    poses[:, : ahead.shape[1], 1:, 2:] = ahead[..., 2:] / size
    return poses


def _clearance_series(
    moments: np.ndarray, objects: np.ndarray, predictions: np.ndarray, body: Body
) -> tuple[np.ndarray, ...]:
    """Four (B, 16): least gap to any box, and of the box in the way that lacks most clearance how much, its closing
    speed and the missing share. Boxes are projected on the ego's own axes."""
    others, there = _object_poses(objects, predictions), (objects[..., MOTION] != 0).any(-1)[..., None]
    forward = moments[:, None, :, 2:]
    line = others[..., XY] - (moments[:, None, :, XY] + body.rear_axle_to_center * forward)  # (B, N, 17, 2)
    distance = np.maximum(_norm(line), 1e-3)
    closing = np.maximum(-np.diff(distance, axis=-1) / BETWEEN, 0.0)
    line, forward, heading = line[:, :, 1:], forward[:, :, 1:], others[:, :, 1:, 2:]
    same, across = np.abs(_dot(heading, forward)), np.abs(_cross(heading, forward))
    half, wide = objects[..., 6, None] / 2, objects[..., 7, None] / 2
    along = np.abs(_dot(line, forward)) - body.length / 2 - (same * half + across * wide)
    beside = np.abs(_cross(line, forward)) - body.width / 2 - (across * half + same * wide)
    gap = np.where(there, np.maximum(along, beside), FAR)
    lacks = CLEARANCE + HEADWAY * closing + closing**2 / (2 * BRAKING) - gap
    lacks = np.where(there & (beside < BESIDE), lacks, -FAR)
    worst = lacks.argmax(1)[:, None]
    most, fast, room = (np.take_along_axis(values, worst, 1)[:, 0] for values in (lacks, closing, gap))
    most, fast, room = np.maximum(most, 0.0), np.where(most > 0, fast, 0.0), np.maximum(room, 0.0)
    least = np.minimum(gap.min(1), NEAREST_GAP) / NEAREST_GAP
    return least, np.log1p(most), np.log1p(fast), most / np.maximum(most + room, 1e-6)
