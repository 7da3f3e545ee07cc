"""Whom an agent follows: the nearest object that reaches into the corridor ahead of it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from radp.geometry.kernels import wrap_angle
from radp.geometry.regions import bounds_gap, ring_bounds, ring_distance
from radp.geometry.strips import line_segments, strip_meets_ring
from radp.sim.agents.idm_fleet import Fleet
from radp.sim.agents.idm_roads import Roads

MIN_GAP = 1.0  # m
HEADWAY = 1.5  # s
MAX_ACCEL = 1.0  # m/s2
MAX_DECEL = 2.0  # m/s2
TIE = 1e-9  # m: distances that differ by less are equal
NOBODY, TIED = -1, -2


class Obstacles(NamedTuple):
    """M boxes beside the agents, the ego first, then the replayed objects; and K stop lines that are red for one agent.

    An object's slot: agents 0..N-1, then the boxes, then the stop lines.
    """

    box: np.ndarray  # (M, 4, 2)
    bounds: np.ndarray  # (M, 4)
    speed: np.ndarray  # (M,) m/s: the ego's, 0 for the others
    heading: np.ndarray  # (M,)
    stop: np.ndarray  # (K,) stop lines of the roads


class Scratch(NamedTuple):
    """Working memory for one world."""

    line: np.ndarray  # (P + 1, 2)
    segment: np.ndarray  # (P + 1, 5)
    joint: np.ndarray  # (70, 2)
    ring: np.ndarray  # (R, 2)
    slot: np.ndarray  # (slots,)
    low: np.ndarray  # (slots,)
    near_slot: np.ndarray  # (slots,)
    near_gap: np.ndarray  # (slots,)


@njit(cache=True, nogil=True)
def acceleration(speed: float, target: float, gap: float, ahead: float) -> float:
    """The Intelligent Driver Model [m/s2] behind a lead of speed `ahead`, within the limits of the model.

    a (1 - (v / v0)^4 - (s* / s)^2) with s* = 1 m + v 1.5 s + v (v - ahead) / (2 sqrt(a b)) and s = max(gap, 1 m).
    """
    wish = MIN_GAP + speed * HEADWAY + speed * (speed - ahead) / (2.0 * math.sqrt(MAX_ACCEL * MAX_DECEL))
    ratio, closeness = speed / target, wish / max(gap, MIN_GAP)
    accel = MAX_ACCEL * (1.0 - ratio * ratio * ratio * ratio - closeness * closeness)
    return min(max(-MAX_DECEL, accel), MAX_ACCEL)


@njit(cache=True, nogil=True)
def lead_speed(b: int, a: int, slot: int, fleet: Fleet, obstacles: Obstacles) -> float:
    """Speed of the object in a slot along the heading of agent a [m/s]."""
    agents, heading = fleet.alive.shape[1], fleet.pose[b, a, 2]
    if slot < agents:
        return fleet.speed[b, slot] * math.cos(wrap_angle(fleet.pose[b, slot, 2] - heading))
    if slot < agents + len(obstacles.box):
        i = slot - agents
        return obstacles.speed[i] * math.cos(wrap_angle(obstacles.heading[i] - heading))
    return 0.0


@njit(cache=True, nogil=True)
def _stop_ring(slot: int, agents: int, roads: Roads, obstacles: Obstacles) -> np.ndarray:
    stop = obstacles.stop[slot - agents - len(obstacles.box)]
    return roads.stop_point[roads.stop_point_offsets[stop] : roads.stop_point_offsets[stop + 1]]


@njit(cache=True, nogil=True)
def _candidates(
    b: int, a: int, fleet: Fleet, roads: Roads, obstacles: Obstacles, corridor: np.ndarray, work: Scratch
) -> int:
    """Slots whose bounds meet those of the corridor, with a lower bound of their distance; returns their number."""
    agents, own, count = fleet.alive.shape[1], fleet.bounds[b, a], 0
    for i in range(agents):
        if i != a and fleet.alive[b, i] and bounds_gap(corridor, fleet.bounds[b, i]) == 0.0:
            work.slot[count], work.low[count] = i, bounds_gap(own, fleet.bounds[b, i])
            count += 1
    for i in range(len(obstacles.box)):
        if bounds_gap(corridor, obstacles.bounds[i]) == 0.0:
            work.slot[count], work.low[count] = agents + i, bounds_gap(own, obstacles.bounds[i])
            count += 1
    for i in range(len(obstacles.stop)):
        work.slot[count], work.low[count] = agents + len(obstacles.box) + i, 0.0
        count += 1
    return count


@njit(cache=True, nogil=True)
def _reaches_in(
    b: int, slot: int, segments: int, half: float, fleet: Fleet, roads: Roads, obstacles: Obstacles, work: Scratch
) -> bool:
    """Whether the object in a slot shares a point with the corridor in work.segment[:segments]."""
    agents = fleet.alive.shape[1]
    if slot < agents:
        bounds = fleet.bounds[b, slot]
        return strip_meets_ring(work.segment, segments, half, fleet.box[b, slot], bounds, work.joint) or (
            fleet.ring_count[b, slot] > 0
            and strip_meets_ring(
                work.segment, segments, half, fleet.ring[b, slot, : fleet.ring_count[b, slot]], bounds, work.joint
            )
        )
    if slot < agents + len(obstacles.box):
        i = slot - agents
        return strip_meets_ring(work.segment, segments, half, obstacles.box[i], obstacles.bounds[i], work.joint)
    ring = _stop_ring(slot, agents, roads, obstacles)
    bounds = np.array((np.inf, np.inf, -np.inf, -np.inf))
    ring_bounds(ring, bounds)
    return strip_meets_ring(work.segment, segments, half, ring, bounds, work.joint)


@njit(cache=True, nogil=True)
def _distance(b: int, a: int, slot: int, fleet: Fleet, roads: Roads, obstacles: Obstacles, limit: float) -> float:
    """Distance from agent a's occupancy to the object in a slot, at most `limit`."""
    agents = fleet.alive.shape[1]
    own_box, own_ring = fleet.box[b, a], fleet.ring[b, a, : fleet.ring_count[b, a]]
    if slot < agents:
        ring = fleet.ring[b, slot, : fleet.ring_count[b, slot]]
        limit = ring_distance(own_box, fleet.box[b, slot], limit)
        limit = ring_distance(own_ring, fleet.box[b, slot], limit)
        limit = ring_distance(own_box, ring, limit)
        return ring_distance(own_ring, ring, limit)
    if slot < agents + len(obstacles.box):
        other = obstacles.box[slot - agents]
    else:
        other = _stop_ring(slot, agents, roads, obstacles)
    return ring_distance(own_ring, other, ring_distance(own_box, other, limit))


@njit(cache=True, nogil=True)
def find_lead(
    b: int, a: int, line_count: int, fleet: Fleet, roads: Roads, obstacles: Obstacles, work: Scratch,
    target: float, forced: int,
) -> tuple[int, float]:  # fmt: skip
    """Slot and distance of the lead of agent a, whose path ahead is work.line[:line_count]; NOBODY when it is free.

    Among objects at the same smallest distance the choice is TIED when it makes a difference and none is `forced`.
    """
    half = fleet.size[b, a, 1] / 2.0
    segments = line_segments(work.line, line_count, work.segment)
    corridor = np.array((np.inf, np.inf, -np.inf, -np.inf))
    ring_bounds(work.line[:line_count], corridor)
    corridor[0], corridor[1], corridor[2], corridor[3] = (
        corridor[0] - half, corridor[1] - half, corridor[2] + half, corridor[3] + half
    )  # fmt: skip
    count = _candidates(b, a, fleet, roads, obstacles, corridor, work)
    best, near = np.inf, 0
    while True:
        pick = -1
        for i in range(count):
            if work.slot[i] >= 0 and work.low[i] <= best + TIE and (pick < 0 or work.low[i] < work.low[pick]):
                pick = i
        if pick < 0:
            break
        slot = work.slot[pick]
        work.slot[pick] = -1
        if not _reaches_in(b, slot, segments, half, fleet, roads, obstacles, work):
            continue
        gap = _distance(b, a, slot, fleet, roads, obstacles, best + 2.0 * TIE)
        if gap <= best + TIE:
            best = min(best, gap)
            work.near_slot[near], work.near_gap[near] = slot, gap
            near += 1
    return _choose(b, a, best, near, fleet, obstacles, work, target, forced)


@njit(cache=True, nogil=True)
def _choose(
    b: int, a: int, best: float, near: int, fleet: Fleet, obstacles: Obstacles, work: Scratch,
    target: float, forced: int,
) -> tuple[int, float]:  # fmt: skip
    """The lead among work.near_slot[:near]: those within TIE of the best distance are equal."""
    chosen, accel = NOBODY, 0.0
    for i in range(near):
        slot, gap = work.near_slot[i], work.near_gap[i]
        if gap > best + TIE:
            continue
        if slot == forced:
            return slot, gap
        value = acceleration(fleet.speed[b, a], target, gap, lead_speed(b, a, slot, fleet, obstacles))
        if forced < 0 and chosen >= 0 and abs(value - accel) > TIE:
            return TIED, best
        if chosen < 0 or slot < chosen:
            chosen, accel = slot, value
    return chosen, best
