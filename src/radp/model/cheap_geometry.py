"""The cheap geometry, compiled: a planner asks for it with every plan, so at batch 1 it may cost next to nothing.

Lanes are matched as `radp.rules.route` matches them, but not put in driving order. The tests compare it with the same
in plain torch; `radp.runtime.geometry` is the same in numpy, for exported planners.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from torch import Tensor

from radp.rules.body import EGO_LENGTH, EGO_WIDTH, FRONT, REAR_TO_CENTER
from radp.rules.context import of_first_agents
from radp.runtime.geometry import (
    BESIDE,
    BRAKING,
    CLEARANCE,
    EVERY,
    FAR,
    HEADWAY,
    MOMENTS,
    MOST_ERROR,
    MOST_OVER,
    MOST_SPEED,
    NEAREST_GAP,
    NOMINAL_ACCELERATION,
    ONCE,
    SAME_WAY,
    SERIES,
    SIDE_BY_SIDE,
)
from radp.scene.scene import EgoColumn, LaneColumn, ObjectColumn, RuleView, Scene
from radp.sim.plan import STEP_SECONDS

BETWEEN = EVERY * STEP_SECONDS
REAR = FRONT - EGO_LENGTH
X, Y, RED = int(LaneColumn.X), int(LaneColumn.Y), int(LaneColumn.IS_RED)
LX, LY, RX, RY = (int(c) for c in (LaneColumn.LEFT_X, LaneColumn.LEFT_Y, LaneColumn.RIGHT_X, LaneColumn.RIGHT_Y))
VX, VY, LENGTH, WIDTH = (int(c) for c in (ObjectColumn.VX, ObjectColumn.VY, ObjectColumn.LENGTH, ObjectColumn.WIDTH))


def cheap_values(trajectory: Tensor, scene: Scene, predictions: Tensor | None = None) -> np.ndarray:
    """trajectory (B, 80, 4), predictions (B, K, 80, 4) of the first K agents -> (B, 131) float32."""
    view = RuleView.of(scene)
    tracks = None
    if predictions is not None:
        predictions, tracks = of_first_agents(scene, predictions)
    plans, objects = _array(trajectory), _array(view.objects)
    forecast = np.zeros((len(plans), 0, 80, 4), plans.dtype) if predictions is None else _array(predictions)
    speed = _array(scene.ego_current_state[:, EgoColumn.VX : EgoColumn.AX].norm(dim=-1))
    out = np.zeros((len(plans), SERIES * MOMENTS + ONCE), np.float32)
    _fill(
        out, plans, speed, _array(view.route_lanes), _array(view.route_lanes_speed_limit)[..., 0],
        _array(view.route_lanes_has_speed_limit)[..., 0], objects, forecast, _who(view, forecast, tracks),
    )  # fmt: skip
    return out


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().cpu().contiguous().numpy()


def _who(view: RuleView, forecast: np.ndarray, tracks: Tensor | None) -> np.ndarray:
    """(B, N) which of the forecasts each object has, -1: none."""
    batch, count = view.objects.shape[:2]
    who = np.full((batch, count), -1)
    if tracks is None or view.object_tracks is None:
        known = min(forecast.shape[1], view.road_users)
        who[:, :known] = np.arange(known)
        return who
    mine, theirs = _array(tracks), _array(view.object_tracks)
    scene, row, thing = np.nonzero((mine[:, :, None] == theirs[:, None]) & (mine >= 0)[:, :, None])
    who[scene, thing] = row
    return who


@numba.njit(nogil=True, cache=True)
def _fill(out, plans, speed, lanes, limit, has_limit, objects, forecast, who):  # type: ignore[no-untyped-def]
    batch, rows, points = lanes.shape[:3]
    for b in range(batch):
        used = np.zeros(rows, numba.boolean)
        spacing = np.zeros(rows)
        ways = np.zeros((rows, points, 2))
        stop = FAR
        for r in range(rows):
            used[r] = np.any(lanes[b, r] != 0)
            if not used[r]:
                continue
            spacing[r] = _directions(lanes[b, r], ways[r])
            if lanes[b, r, 0, RED] > 0.5 and lanes[b, r, 0, X] > FRONT:
                stop = min(stop, math.hypot(lanes[b, r, 0, X], lanes[b, r, 0, Y]))
        moments, length = _moments(plans[b])
        _lane_series(out[b], moments, lanes[b], used, ways, spacing, limit[b], has_limit[b])
        _clearance_series(out[b], moments, objects[b], forecast[b], who[b])
        time = plans.shape[1] * STEP_SECONDS
        once = SERIES * MOMENTS
        out[b, once] = compressed((speed[b] * time + 0.5 * NOMINAL_ACCELERATION * time**2 - length) / 5.0)
        out[b, once + 1] = min(stop, FAR) / FAR
        out[b, once + 2] = speed[b] / 10.0


@numba.njit(nogil=True, cache=True)
def compressed(value):  # type: ignore[no-untyped-def]
    return math.copysign(math.log1p(abs(value)), value)


@numba.njit(nogil=True, cache=True)
def _directions(lane, way):  # type: ignore[no-untyped-def]
    """Unit directions of a lane (P, 12) to its next points, written to way (P, 2); the mean distance of its points."""
    points, total = len(lane), 0.0
    way[:, 0] = 1.0
    for p in range(points - 1):
        x, y = lane[p + 1, X] - lane[p, X], lane[p + 1, Y] - lane[p, Y]
        step = math.hypot(x, y)
        total += step
        if step > 1e-9:
            way[p, 0], way[p, 1] = x / step, y / step
    if points > 1:
        way[points - 1] = way[points - 2]
    return total / max(1, points - 1)


@numba.njit(nogil=True, cache=True)
def _moments(plan):  # type: ignore[no-untyped-def]
    """A plan (80, 4) -> poses (17, 4) now and every 0.5 s, headings of length 1; and the length of its way [m]."""
    moments = np.zeros((MOMENTS + 1, 4))
    moments[0, 2] = 1.0
    length, x, y = 0.0, 0.0, 0.0
    for h in range(len(plan)):
        length += math.hypot(plan[h, 0] - x, plan[h, 1] - y)
        x, y = plan[h, 0], plan[h, 1]
        if (h + 1) % EVERY == 0 and (h + 1) // EVERY <= MOMENTS:
            size = plan[h, 2] ** 2 + plan[h, 3] ** 2
            here = moments[(h + 1) // EVERY]
            here[0], here[1], here[2] = x, y, 1.0
            if size >= 1e-12:
                here[2], here[3] = plan[h, 2] / math.sqrt(size), plan[h, 3] / math.sqrt(size)
    return moments, length


@numba.njit(nogil=True, cache=True)
def _segment_distance(px, py, ax, ay, bx, by):  # type: ignore[no-untyped-def]
    x, y = bx - ax, by - ay
    t = ((px - ax) * x + (py - ay) * y) / max(x * x + y * y, 1e-9)
    t = min(max(t, 0.0), 1.0)
    return math.hypot(px - ax - t * x, py - ay - t * y)


@numba.njit(nogil=True, cache=True)
def _match(px, py, lanes, used, ways, spacing, nearest):  # type: ignore[no-untyped-def]
    """A point on the lanes: the lane, its signed lateral error, and the widths of the corridor to both sides."""
    lane, best, points = -1, np.inf, lanes.shape[1]
    for r in range(len(lanes)):
        if not used[r]:
            continue
        least = np.inf
        for p in range(points):
            x, y = lanes[r, p, X] - px, lanes[r, p, Y] - py
            gap = x * x + y * y
            if gap < least:
                least, nearest[r] = gap, p
        if least < best:
            best, lane = least, r
    if lane < 0:
        return lane, 0.0, 0.0, 0.0
    own, k = lanes[lane], nearest[lane]
    before, after = max(k - 1, 0), min(k + 1, points - 1)
    forward = _segment_distance(px, py, own[k, X], own[k, Y], own[after, X], own[after, Y]) <= _segment_distance(
        px, py, own[before, X], own[before, Y], own[k, X], own[k, Y]
    )
    start, end = (k, after) if (forward and k < points - 1) or k == 0 else (before, k)
    tx, ty = ways[lane, start, 0], ways[lane, start, 1]
    x, y = px - own[start, X], py - own[start, Y]
    long = max(math.hypot(own[end, X] - own[start, X], own[end, Y] - own[start, Y]), 1e-6)
    share = min(max((x * tx + y * ty) / long, 0.0), 1.0)
    error = tx * y - ty * x
    fx, fy = (
        own[start, X] + share * (own[end, X] - own[start, X]),
        own[start, Y] + share * (own[end, Y] - own[start, Y]),
    )
    left = -ty * (own[start, LX] + share * (own[end, LX] - own[start, LX]))
    left += tx * (own[start, LY] + share * (own[end, LY] - own[start, LY]))
    right = ty * (own[start, RX] + share * (own[end, RX] - own[start, RX]))
    right -= tx * (own[start, RY] + share * (own[end, RY] - own[start, RY]))
    for r in range(len(lanes)):
        if not used[r]:
            continue
        there, way = lanes[r, nearest[r]], ways[r, nearest[r]]
        gx, gy = there[X] - fx, there[Y] - fy
        ahead, cos = gx * tx + gy * ty, way[0] * tx + way[1] * ty
        if abs(ahead) > spacing[r] or cos < SAME_WAY:
            continue
        offset = (gy * tx - gx * ty) - ahead * (way[1] * tx - way[0] * ty) / max(cos, SAME_WAY)
        if abs(offset) <= SIDE_BY_SIDE:
            left = max(left, offset + there[LY] * tx - there[LX] * ty)
            right = max(right, -offset - there[RY] * tx + there[RX] * ty)
    return lane, error, left, right


@numba.njit(nogil=True, cache=True)
def _lane_series(out, moments, lanes, used, ways, spacing, limit, has_limit):  # type: ignore[no-untyped-def]
    nearest = np.zeros(len(lanes), np.int64)
    for m in range(1, MOMENTS + 1):
        x, y, cos, sin = moments[m]
        lane, error, _, _ = _match(x, y, lanes, used, ways, spacing, nearest)
        if lane < 0:
            return
        beyond_left, beyond_right = -np.inf, -np.inf
        for corner in range(4):
            along = FRONT if corner < 2 else REAR
            aside = (0.5 if corner % 2 else -0.5) * EGO_WIDTH
            cx, cy = x + along * cos - aside * sin, y + along * sin + aside * cos
            _, at, left, right = _match(cx, cy, lanes, used, ways, spacing, nearest)
            beyond_left, beyond_right = max(beyond_left, at - left), max(beyond_right, -at - right)
        out[m - 1] = min(max(error, -MOST_ERROR), MOST_ERROR)
        out[MOMENTS + m - 1] = min(max(beyond_left, -MOST_OVER), MOST_OVER)
        out[2 * MOMENTS + m - 1] = min(max(beyond_right, -MOST_OVER), MOST_OVER)
        if has_limit[lane]:
            speed = math.hypot(x - moments[m - 1, 0], y - moments[m - 1, 1]) / BETWEEN
            out[3 * MOMENTS + m - 1] = min(max(speed - limit[lane], -MOST_SPEED), MOST_SPEED)


@numba.njit(nogil=True, cache=True)
def _pose(thing, forecast, who, moment):  # type: ignore[no-untyped-def]
    """x, y, cos, sin of an object at a moment: as it is forecast, or with the velocity of now."""
    if who >= 0 and moment > 0:
        there = forecast[who, moment * EVERY - 1]
        size = max(math.hypot(there[2], there[3]), 1e-12)
        return there[0], there[1], there[2] / size, there[3] / size
    time = moment * BETWEEN
    return thing[0] + time * thing[VX], thing[1] + time * thing[VY], thing[2], thing[3]


@numba.njit(nogil=True, cache=True)
def _clearance_series(out, moments, objects, forecast, who):  # type: ignore[no-untyped-def]
    for m in range(1, MOMENTS + 1):
        x, y, cos, sin = moments[m]
        x, y = x + REAR_TO_CENTER * cos, y + REAR_TO_CENTER * sin
        bx, by = moments[m - 1, 0] + REAR_TO_CENTER * moments[m - 1, 2], moments[m - 1, 1]
        by += REAR_TO_CENTER * moments[m - 1, 3]
        least, most, fast, room = NEAREST_GAP, 0.0, 0.0, 0.0
        for n in range(len(objects)):
            thing = objects[n]
            if not np.any(thing[:LENGTH] != 0):
                continue
            ox, oy, oc, os = _pose(thing, forecast, who[n], m)
            px, py, _, _ = _pose(thing, forecast, who[n], m - 1)
            lx, ly = ox - x, oy - y
            closing = (max(math.hypot(px - bx, py - by), 1e-3) - max(math.hypot(lx, ly), 1e-3)) / BETWEEN
            closing = max(closing, 0.0)
            same, across = abs(oc * cos + os * sin), abs(oc * sin - os * cos)
            half, wide = thing[LENGTH] / 2, thing[WIDTH] / 2
            along = abs(lx * cos + ly * sin) - EGO_LENGTH / 2 - (same * half + across * wide)
            beside = abs(lx * sin - ly * cos) - EGO_WIDTH / 2 - (across * half + same * wide)
            gap = max(along, beside)
            least = min(least, gap)
            if beside < BESIDE:
                lacks = CLEARANCE + HEADWAY * closing + closing * closing / (2 * BRAKING) - gap
                if lacks > most:
                    most, fast, room = lacks, closing, max(gap, 0.0)
        out[4 * MOMENTS + m - 1] = least / NEAREST_GAP
        out[5 * MOMENTS + m - 1] = math.log1p(most)
        out[6 * MOMENTS + m - 1] = math.log1p(fast)
        out[7 * MOMENTS + m - 1] = most / max(most + room, 1e-6)
