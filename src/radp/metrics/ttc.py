"""time_to_collision_within_bound: when the ego would hit something if everybody went straight on at their speed.

Every object moves along its HEADING with the magnitude of its velocity, in steps of 0.1 s up to (not including) 3 s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import njit

from radp.geometry.kernels import box_corners, quads_intersect
from radp.metrics.collisions import CollisionResult, is_behind
from radp.metrics.drive import HEADING, LENGTH, WIDTH, Drive, X, Y
from radp.metrics.metric import Metric

TTC_STEP = 0.1  # s
STEPS = 29  # 0.1 s .. 2.9 s
LEAST = 0.95  # s, every value must be larger
STOPPED_SPEED = 0.005  # m/s
COS_AHEAD = math.cos(math.radians(30.0))
SLACK = 1e-6  # m added to boxes where steps are only ruled out, so that rounding never drops a contact


@dataclass(frozen=True)
class TtcResult:
    """metric; ttc (S,) s, infinite = none; agent (S,) row of the object met, -1 = none."""

    metric: Metric
    ttc: np.ndarray
    agent: np.ndarray


def time_to_collision(drive: Drive, connected: np.ndarray, crossing: np.ndarray, found: CollisionResult) -> TtcResult:
    """connected (S,): the set C; crossing (S,): the rear axle is in an intersection.

    found: the collisions, whose objects count no more from their frame on.
    """
    ttc, agent = ttc_series(drive, connected, crossing, found.first_frame, found.at_fault)
    return TtcResult(Metric(float(np.all(ttc > LEAST))), ttc, agent)


@njit(cache=True, nogil=True)
def ttc_series(
    drive: Drive,
    connected: np.ndarray,
    crossing: np.ndarray,
    first_frame: np.ndarray,
    at_fault: np.ndarray,
    steps: int = STEPS,
) -> tuple[np.ndarray, np.ndarray]:
    """Time to collision (S,) and the object (S,) that it belongs to; beyond `steps` of 0.1 s it counts as infinite."""
    agents, samples = drive.agent_valid.shape
    center, speed, state, valid = drive.center, drive.speed, drive.agent_state, drive.agent_valid
    agent_speed, size = drive.agent_speed, drive.agent_size
    ttc, who = np.full(samples, np.inf), np.full(samples, -1, np.int64)
    boxes = np.empty((2, 4, 2))
    for a in range(agents):
        if at_fault[a] and (who[first_frame[a]] < 0):
            ttc[first_frame[a]], who[first_frame[a]] = 0.0, a
    for i in range(samples):
        if ttc[i] == 0.0 or speed[i] <= STOPPED_SPEED:
            continue
        x, y, heading = drive.ego[i, X], drive.ego[i, Y], drive.ego[i, HEADING]
        c, s = math.cos(heading), math.sin(heading)
        beside_counts = not connected[i] or crossing[i]
        best = steps + 1
        for a in range(agents):
            if not valid[a, i] or (0 <= first_frame[a] <= i):
                continue
            ox, oy = state[a, i, X], state[a, i, Y]
            rx, ry, dx, dy = ox - center[i, 0], oy - center[i, 1], ox - x, oy - y
            reach = 0.5 * (LENGTH + WIDTH + size[a, 0] + size[a, 1]) + (speed[i] + agent_speed[a, i]) * TTC_STEP * best
            if rx * rx + ry * ry > reach * reach:  # their circles cannot meet in time
                continue
            if is_ahead(dx, dy, c, s) or (beside_counts and not is_behind(dx, dy, c, s)):
                ego = (center[i, 0], center[i, 1], heading, LENGTH, WIDTH)
                other = (ox, oy, state[a, i, HEADING], size[a, 0], size[a, 1])
                step = _first_contact(ego, speed[i], other, agent_speed[a, i], best, boxes)
                if step < best:
                    best, who[i] = step, a
        if best <= steps:
            ttc[i] = best * TTC_STEP
    return ttc, who


@njit(cache=True, nogil=True)
def is_ahead(dx: float, dy: float, cos_heading: float, sin_heading: float) -> bool:
    """Whether the angle between a heading and the way (dx, dy) to an object is smaller than 30 degrees."""
    return cos_heading * dx + sin_heading * dy > COS_AHEAD * math.sqrt(dx * dx + dy * dy)


@njit(cache=True, nogil=True)
def _first_contact(
    ego: tuple[float, float, float, float, float],
    ego_speed: float,
    other: tuple[float, float, float, float, float],
    other_speed: float,
    limit: int,
    boxes: np.ndarray,
) -> int:
    """First step below `limit` at which the boxes (x, y, heading, length, width) touch, else `limit`.

    Headings stay, so the gap on each of the four box axes is linear in time: steps at which an axis separates the boxes
    clearly are skipped, the others are tested one by one. boxes (2, 4, 2) is room to work in.
    """
    ex, ey, ego_h, _, _ = ego
    ox, oy, other_h, length, width = other
    ec, es, oc, os_ = math.cos(ego_h), math.sin(ego_h), math.cos(other_h), math.sin(other_h)
    edx, edy = ec * ego_speed * TTC_STEP, es * ego_speed * TTC_STEP
    odx, ody = oc * other_speed * TTC_STEP, os_ * other_speed * TTC_STEP
    along, across = abs(ec * oc + es * os_), abs(ec * os_ - es * oc)
    rx, ry, dx, dy = ox - ex, oy - ey, odx - edx, ody - edy
    low, high = 1.0, limit - 1.0
    for axis in range(4):
        c, s = (ec, es) if axis < 2 else (oc, os_)
        mine, my_side = (LENGTH, WIDTH) if axis < 2 else (length, width)
        theirs, their_side = (length, width) if axis < 2 else (LENGTH, WIDTH)
        if axis % 2 == 1:  # the axis to the left of the box
            c, s = -s, c
            mine, theirs, their_side = my_side, their_side, theirs
        half = 0.5 * (mine + along * theirs + across * their_side) + SLACK
        gap, change = rx * c + ry * s, dx * c + dy * s
        if abs(change) * STEPS < SLACK:
            if abs(gap) > half + SLACK:
                return limit
            continue
        enter, leave = (-half - gap) / change, (half - gap) / change
        low, high = max(low, min(enter, leave)), min(high, max(enter, leave))
        if low > high:
            return limit
    first, last = math.ceil(low), math.floor(high)
    for step in range(1, last + 1):
        ex, ey, ox, oy = ex + edx, ey + edy, ox + odx, oy + ody
        if step >= first:
            box_corners(ex, ey, ego_h, LENGTH, WIDTH, boxes[0])
            box_corners(ox, oy, other_h, length, width, boxes[1])
            if quads_intersect(boxes[0], boxes[1]):
                return step
    return limit
