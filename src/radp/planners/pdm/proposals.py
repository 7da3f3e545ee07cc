"""Proposals: the route's centre line, shifted and driven by IDM drivers of different haste, behind forecast leads."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from radp.geometry.line_kernels import line_coarse, line_refine
from radp.planners.corridor import (
    CENTER,
    FRONT,
    HALF_WIDTH,
    HEADING,
    SIDE_MARGIN,
    VX,
    VY,
    X,
    Y,
    box_in_band,
    idm_acceleration,
    lateral_at,
    pose_beside_line,
    stop_gap,
)
from radp.planners.pdm.settings import HORIZON, Driver
from radp.road.guide import GUIDE_SPACING
from radp.scenario import DT

LEAD_EVERY = 2  # steps between the times at which leads are looked for
BEHIND, AHEAD = 20.0, 60.0  # m of line around the ego's reach on which leads are looked for
COARSE = 8  # samples between the places that are compared first


class Way(NamedTuple):
    """The line ahead as plain arrays (see RouteLine), and what stands on it; arc lengths in metres."""

    points: np.ndarray  # (P, 2)
    headings: np.ndarray  # (P,)
    speeds: np.ndarray  # (P,) comfortable speed, inf where nothing limits it
    stops: np.ndarray  # (K,) lights that are red or yellow
    yellow: np.ndarray  # (K,) bool
    wall: float  # where the road (or the lane that leads on) ends
    margins: np.ndarray  # (3, 2, P) m, see radp.road.margins
    crossing: np.ndarray  # (P,) bool: inside an intersection


class Start(NamedTuple):
    """The ego on the line now."""

    s: float  # arc length of the rear axle
    lateral: float
    slope: float
    speed: float


class Leads(NamedTuple):
    """A objects on J shifted lines at T = 41 times, 0.2 s apart."""

    rear: np.ndarray  # (J, A, T) arc length at which the part on the ego's way begins; inf = none is on it
    center: np.ndarray  # (A, T) arc length
    speed: np.ndarray  # (A, T) along the line, m/s


@njit(cache=True, nogil=True)
def find_leads(
    way: Way, start: Start, goals: np.ndarray, lengths: np.ndarray, agents: np.ndarray, size: np.ndarray
) -> Leads:
    """Where the objects agents (A, 5), size (A, 3) will be on the ways to the offsets goals (J,), at constant velocity.

    lengths (J,): metres in which the ego moves over to each offset. Objects that stay off all ways are left out.
    """
    count, times = agents.shape[0], HORIZON // LEAD_EVERY + 1
    rear = np.full((goals.shape[0], count, times), np.inf)
    center, speed = np.zeros((count, times)), np.zeros((count, times))
    low = max(0, int((start.s - BEHIND) / GUIDE_SPACING))
    high = min(way.points.shape[0] - 1, int((start.s + AHEAD + HORIZON * DT * start.speed) / GUIDE_SPACING))
    half, used = HALF_WIDTH + SIDE_MARGIN, 0
    for a in range(count):
        heading, vx, vy, length, width = agents[a, HEADING], agents[a, VX], agents[a, VY], size[a, 0], size[a, 1]
        moves, seen = vx != 0.0 or vy != 0.0, False
        for t in range(times if moves else 1):
            x, y = agents[a, X] + vx * DT * LEAD_EVERY * t, agents[a, Y] + vy * DT * LEAD_EVERY * t
            near, gap = line_coarse(x, y, way.points, low, high, COARSE)
            rear[:, used, t] = np.inf
            if gap > length + COARSE * GUIDE_SPACING + 4.0:
                continue
            along, lateral, direction = line_refine(x, y, near * GUIDE_SPACING, way.points, way.headings, GUIDE_SPACING)
            center[used, t] = along
            speed[used, t] = vx * math.cos(direction) + vy * math.sin(direction)
            for j in range(goals.shape[0]):
                middle, _ = lateral_at(along, start.s, start.lateral, start.slope, goals[j], lengths[j])
                first, _ = box_in_band(along, lateral, heading - direction, length, width, middle - half, middle + half)
                rear[j, used, t] = first
                seen = seen or first < np.inf
        if not moves:
            rear[:, used] = rear[:, used, :1]
            center[used], speed[used] = center[used, 0], 0.0
        used += seen
    return Leads(rear[:, :used], center[:used], speed[:used])


@njit(cache=True, nogil=True)
def unroll(
    way: Way,
    start: Start,
    fraction: float,
    goal: float,
    length: float,
    rear: np.ndarray,
    leads: Leads,
    driver: Driver,
    poses: np.ndarray,
) -> None:
    """Drive the line shifted to `goal` at a fraction of the allowed speed -> poses (81, 3), the first one is now.

    rear (A, T): the leads on this shifted line.
    """
    s, speed = start.s, start.speed
    behind = np.zeros(rear.shape[0], np.bool_)
    stop = s + FRONT + stop_gap(s, speed, way.stops, way.yellow)
    wall = min(stop, way.wall)
    last = way.speeds.shape[0] - 1
    for t in range(HORIZON + 1):
        offset, tilt = lateral_at(s, start.s, start.lateral, start.slope, goal, length)
        pose_beside_line(s, offset, tilt, way.points, way.headings, GUIDE_SPACING, poses[t])
        gap, other, k = wall - s - FRONT, 0.0, t // LEAD_EVERY
        for a in range(rear.shape[0]):
            if rear[a, k] == np.inf or behind[a]:
                continue
            if leads.center[a, k] < s + CENTER:
                behind[a] = True  # it would have to drive through the ego: that is its own task
            elif rear[a, k] - s - FRONT < gap:
                gap, other = rear[a, k] - s - FRONT, leads.speed[a, k]
        allowed = min(driver.fallback_speed * 10.0, way.speeds[min(max(int(s / GUIDE_SPACING), 0), last)])
        target = fraction * (driver.fallback_speed if allowed == driver.fallback_speed * 10.0 else allowed)
        change = idm_acceleration(
            speed, target, gap, other, driver.min_gap, driver.headway, driver.accel, driver.decel, driver.exponent
        )
        s += speed * DT
        speed = max(0.0, speed + change * DT)


@njit(cache=True, nogil=True)
def brake(way: Way, start: Start, goal: float, length: float, decel: float, poses: np.ndarray) -> None:
    """Stop at a constant deceleration on the way to the offset `goal` -> poses (81, 3), the first one is now."""
    s, speed = start.s, start.speed
    for t in range(HORIZON + 1):
        offset, tilt = lateral_at(s, start.s, start.lateral, start.slope, goal, length)
        pose_beside_line(s, offset, tilt, way.points, way.headings, GUIDE_SPACING, poses[t])
        s += speed * DT
        speed = max(0.0, speed - decel * DT)
