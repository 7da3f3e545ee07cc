"""Which lanes a vehicle drove on: the likeliest chain of lanes under its path."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from radp.geometry.kernels import distance_to_rings, wrap_angle
from radp.geometry.line_kernels import nearest_on_line
from radp.road.lane_graph import LaneGraph

CANDIDATES = 8  # lanes considered for one pose
NEAR = 1.0  # m from a pose to the area of a lane it may be on
MAX_HEADING_ERROR = math.pi / 3
HEADING_SCALE = 0.25  # rad of heading error that weigh as much as 1 m beside the centreline
POSE_SPACING = 2.5  # m between the poses that are matched
SKIPPED, CHANGED, CHANGED_FAR, JUMPED = 1.0, 2.0, 4.0, 30.0  # prices of a step between lanes, in m2 beside a centreline


def match_lanes(graph: LaneGraph, poses: np.ndarray) -> np.ndarray:
    """poses (n, 3) of a path, in order -> (m <= n,) lane of each pose that lies on one; Viterbi over the lane graph.

    A pose on a lane costs offset^2 + (heading error / 0.25)^2; keeping the lane or going to its successor is free.
    """
    if not len(poses):
        return np.zeros(0, dtype=np.int64)
    lanes, price = _candidates(graph, poses)
    on_road = lanes[:, 0] >= 0
    return _cheapest(graph, lanes[on_road], price[on_road])


def thin_path(poses: np.ndarray, spacing: float = POSE_SPACING) -> np.ndarray:
    """(n, 3) -> (m, 3): the first pose, each that is `spacing` metres from the last one taken, and the last pose."""
    kept = [0]
    for i in range(1, len(poses)):
        if math.hypot(*(poses[i, :2] - poses[kept[-1], :2])) >= spacing:
            kept.append(i)
    return poses[kept if kept[-1] == len(poses) - 1 else [*kept, len(poses) - 1]]


@njit(cache=True, nogil=True)
def _candidates(graph: LaneGraph, poses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n, C) lanes under each pose, cheapest first, -1 = none; (n, C) what they cost."""
    lanes = np.full((len(poses), CANDIDATES), -1, np.int64)
    price = np.full((len(poses), CANDIDATES), np.inf)
    for k in range(len(poses)):
        x, y, heading = poses[k]
        for i in range(len(graph.bounds)):
            low_x, low_y, high_x, high_y = graph.bounds[i]
            if x < low_x - NEAR or y < low_y - NEAR or x > high_x + NEAR or y > high_y + NEAR:
                continue
            first, last = graph.area_offsets[i], graph.area_offsets[i + 1]
            if distance_to_rings(x, y, graph.ring_points, graph.ring_offsets, first, last) > NEAR:
                continue
            first, last = graph.vertex_offsets[i], graph.vertex_offsets[i + 1]
            offset, _, direction = nearest_on_line(x, y, graph.vertices, first, last)
            error = abs(wrap_angle(direction - heading))
            cost = offset * offset + (error / HEADING_SCALE) ** 2
            if error >= MAX_HEADING_ERROR or cost >= price[k, CANDIDATES - 1]:
                continue
            slot = CANDIDATES - 1
            while slot > 0 and cost < price[k, slot - 1]:
                lanes[k, slot], price[k, slot] = lanes[k, slot - 1], price[k, slot - 1]
                slot -= 1
            lanes[k, slot], price[k, slot] = i, cost
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
