"""Which lanes a vehicle drove on: the likeliest chain of lanes under its path."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from radp.geometry.areas import areas_near
from radp.road.arrays import LaneGraph, RoadArrays
from radp.road.places import DRIVEN_ANGLE, REACH, lane_fit

CANDIDATES = 8  # lanes considered for one pose
HEADING_SCALE = 0.25  # rad of heading error that weigh as much as 1 m beside the centreline
POSE_SPACING = 2.5  # m between the poses that are matched
SKIPPED, CHANGED, CHANGED_FAR, JUMPED = 1.0, 2.0, 4.0, 30.0  # prices of a step between lanes, in m2 beside a centreline


def match_lanes(road: RoadArrays, poses: np.ndarray) -> np.ndarray:
    """poses (n, 3) of a path, in order -> (m <= n,) lane of each pose that lies on one; Viterbi over the lane graph.

    A pose on a lane costs offset^2 + (heading error / 0.25)^2; keeping the lane or going to its successor is free.
    """
    if not len(poses):
        return np.zeros(0, dtype=np.int64)
    lanes, price = _candidates(road, poses)
    on_road = lanes[:, 0] >= 0
    return _cheapest(road.graph, lanes[on_road], price[on_road])


def thin_path(poses: np.ndarray, spacing: float = POSE_SPACING) -> np.ndarray:
    """(n, 3) -> (m, 3): the first pose, each that is `spacing` metres from the last one taken, and the last pose."""
    kept = [0]
    for i in range(1, len(poses)):
        if math.hypot(*(poses[i, :2] - poses[kept[-1], :2])) >= spacing:
            kept.append(i)
    return poses[kept if kept[-1] == len(poses) - 1 else [*kept, len(poses) - 1]]


@njit(cache=True, nogil=True)
def _candidates(road: RoadArrays, poses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n, C) lanes under each pose, cheapest first, -1 = none; (n, C) what they cost."""
    lanes = np.full((len(poses), CANDIDATES), -1, np.int64)
    price = np.full((len(poses), CANDIDATES), np.inf)
    for k in range(len(poses)):
        x, y, heading = poses[k]
        near = areas_near(x, y, road.lanes, REACH)
        cost = np.full(len(near), np.inf)
        for i in range(len(near)):
            offset, angle = lane_fit(x, y, heading, near[i], road.centre)
            if angle < DRIVEN_ANGLE:
                cost[i] = offset * offset + (angle / HEADING_SCALE) ** 2
        order = np.argsort(cost, kind="mergesort")
        for slot in range(min(len(order), CANDIDATES)):
            if cost[order[slot]] < np.inf:
                lanes[k, slot], price[k, slot] = near[order[slot]], cost[order[slot]]
    return lanes, price


@njit(cache=True, nogil=True)
def _step_price(graph: LaneGraph, a: int, b: int) -> float:
    """What it costs to be on lane b after lane a."""
    if a == b:
        return 0.0
    if graph.neighbors[a, 0] == b or graph.neighbors[a, 1] == b:
        return CHANGED
    best = CHANGED_FAR if graph.roadblock[a] == graph.roadblock[b] else JUMPED
    for j in range(graph.successor_offsets[a], graph.successor_offsets[a + 1]):
        after = graph.successors[j]
        if after == b:
            return 0.0
        if graph.neighbors[after, 0] == b or graph.neighbors[after, 1] == b:
            best = min(best, CHANGED)
        for k in range(graph.successor_offsets[after], graph.successor_offsets[after + 1]):
            if graph.successors[k] == b:
                best = min(best, SKIPPED)
    return best


@njit(cache=True, nogil=True)
def _cheapest(graph: LaneGraph, lanes: np.ndarray, price: np.ndarray) -> np.ndarray:
    """lanes, price (m, C) -> (m,) the chain of least total price."""
    steps = len(lanes)
    chain = np.empty(steps, np.int64)
    if steps == 0:
        return chain
    total = price.copy()
    came_from = np.zeros((steps, CANDIDATES), np.int64)
    for k in range(1, steps):
        for i in range(CANDIDATES):
            if lanes[k, i] < 0:
                continue
            best = np.inf
            for j in range(CANDIDATES):
                if lanes[k - 1, j] >= 0:
                    step = _step_price(graph, lanes[k - 1, j], lanes[k, i])
                    if total[k - 1, j] + step < best:
                        best, came_from[k, i] = total[k - 1, j] + step, j
            total[k, i] = price[k, i] + best
    slot = int(np.argmin(total[steps - 1]))
    for k in range(steps - 1, -1, -1):
        chain[k] = lanes[k, slot]
        slot = came_from[k, slot]
    return chain
