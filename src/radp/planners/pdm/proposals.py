"""Proposals: the route's centre line, shifted and driven by IDM drivers of different haste, behind forecast leads."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from radp.planners.corridor import (
    CENTER,
    FRONT,
    HALF_WIDTH,
    HEADING,
    JUMP,
    SIDE_MARGIN,
    VX,
    VY,
    X,
    Y,
    box_in_band,
    idm_acceleration,
    lateral_at,
    place_on_line,
    pose_beside_line,
    stop_gap,
)
from radp.planners.pdm.settings import DT, HORIZON, Driver
from radp.planners.route import STEP


class Way(NamedTuple):
    """The line ahead as plain arrays (see RouteLine), and what stands on it; arc lengths in metres."""

    points: np.ndarray  # (P, 2)
    headings: np.ndarray  # (P,)
    speeds: np.ndarray  # (P,) comfortable speed, inf where nothing limits it
    stops: np.ndarray  # (K,) lights that are red or yellow
    yellow: np.ndarray  # (K,) bool
    wall: float  # where the road (or the lane that leads on) ends


class Start(NamedTuple):
    """The ego on the line now."""

    s: float  # arc length of the rear axle
    lateral: float
    slope: float
    speed: float


class Leads(NamedTuple):
    """A objects on J shifted lines at T = 81 times."""

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
    count, times = agents.shape[0], HORIZON + 1
    rear = np.full((goals.shape[0], count, times), np.inf)
    center, speed = np.zeros((count, times)), np.zeros((count, times))
    half, used = HALF_WIDTH + SIDE_MARGIN, 0
    for a in range(count):
        x, y, heading, vx, vy = agents[a, X], agents[a, Y], agents[a, HEADING], agents[a, VX], agents[a, VY]
        reach = int((math.hypot(vx, vy) * DT + JUMP) / STEP)
        near, seen = -1, False
        for t in range(times):
            along, lateral, turned = place_on_line(
                x + vx * DT * t, y + vy * DT * t, heading, near, reach, way.points, way.headings, STEP
            )
            near = max(0, int(along / STEP))
            direction = heading - turned
            center[used, t] = along
            speed[used, t] = vx * math.cos(direction) + vy * math.sin(direction)
            for j in range(goals.shape[0]):
                middle, _ = lateral_at(along, start.s, start.lateral, start.slope, goals[j], lengths[j])
                first, _ = box_in_band(along, lateral, turned, size[a, 0], size[a, 1], middle - half, middle + half)
                rear[j, used, t] = first
                seen = seen or first < np.inf
            if vx == 0.0 and vy == 0.0:
                rear[:, used, 1:] = np.expand_dims(rear[:, used, 0], 1)
                center[used, 1:], speed[used, 1:] = along, 0.0
                break
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
        pose_beside_line(s, offset, tilt, way.points, way.headings, STEP, poses[t])
        gap, other = wall - s - FRONT, 0.0
        for a in range(rear.shape[0]):
            if rear[a, t] == np.inf or behind[a]:
                continue
            if leads.center[a, t] < s + CENTER:
                behind[a] = True  # it would have to drive through the ego: that is its own task
            elif rear[a, t] - s - FRONT < gap:
                gap, other = rear[a, t] - s - FRONT, leads.speed[a, t]
        allowed = min(driver.fallback_speed * 10.0, way.speeds[min(max(int(s / STEP), 0), last)])
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
        pose_beside_line(s, offset, tilt, way.points, way.headings, STEP, poses[t])
        s += speed * DT
        speed = max(0.0, speed - decel * DT)
