"""The lanes of a map as a graph with lines to drive along: for routes, and for finding the lanes under a path."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from radp.geometry.kernels import project_on_line, wrap_angle
from radp.geometry.resample import line_lengths, resample_lines
from radp.road.lane_lines import LANE_POINTS, lane_lines
from radp.road.map_memory import remember
from radp.road.road_map import RoadMap

SPACING = 2.0  # m between the points of a line, at most


class LaneGraph(NamedTuple):
    """L lanes and R roadblocks; world frame, metres. `x_offsets` (n+1,) cut the flat array `x` into rows."""

    lines: np.ndarray  # (V, 6) centre, left, right, in step with each other, at least 20 points a lane
    line_offsets: np.ndarray  # (L+1,)
    length: np.ndarray  # (L,) of the centre
    vertices: np.ndarray  # (P, 2) centreline points as they stand in the map
    vertex_offsets: np.ndarray  # (L+1,)
    ring_points: np.ndarray  # the lane areas, as in `Polygons`
    ring_offsets: np.ndarray
    area_offsets: np.ndarray  # (L+1,)
    bounds: np.ndarray  # (L, 4) of the areas
    roadblock: np.ndarray  # (L,)
    successors: np.ndarray
    successor_offsets: np.ndarray  # (L+1,)
    neighbors: np.ndarray  # (L, 2) left, right; -1 = none
    members: np.ndarray  # lanes of each roadblock
    member_offsets: np.ndarray  # (R+1,)
    speed_limit: np.ndarray  # (L,) m/s, 0 where there is none
    has_speed_limit: np.ndarray  # (L,) bool


def lane_graph(road_map: RoadMap) -> LaneGraph:
    """The graph of a map, computed once."""
    return remember(road_map, "graph", lambda: _lane_graph(road_map))


def _lane_graph(road_map: RoadMap) -> LaneGraph:
    centre, left, right = lane_lines(road_map)
    length = line_lengths(centre.values, centre.offsets)
    counts = np.maximum(LANE_POINTS, np.ceil(length / SPACING).astype(np.int64) + 1)
    offsets = np.concatenate(([0], np.cumsum(counts)))
    lines = np.empty((3, offsets[-1], 2))
    for line, out in zip((centre, left, right), lines):
        resample_lines(line.values, line.offsets, out, offsets)
    areas, members = road_map.lane_polygons, road_map.lanes_of_roadblock
    return LaneGraph(
        lines=np.concatenate(lines, 1),
        line_offsets=offsets,
        length=length,
        vertices=centre.values,
        vertex_offsets=centre.offsets,
        ring_points=areas.rings.values,
        ring_offsets=areas.rings.offsets,
        area_offsets=areas.offsets,
        bounds=areas.bounds,
        roadblock=road_map.roadblock,
        successors=road_map.successors.values,
        successor_offsets=road_map.successors.offsets,
        neighbors=np.stack((road_map.left_neighbor, road_map.right_neighbor), 1).astype(np.int64),
        members=members.values,
        member_offsets=members.offsets,
        speed_limit=np.where(road_map.has_speed_limit, road_map.speed_limit, 0.0),
        has_speed_limit=road_map.has_speed_limit,
    )


@njit(cache=True, nogil=True)
def lane_line(graph: LaneGraph, lane: int) -> np.ndarray:
    """(n, 6) centre, left, right of a lane."""
    return graph.lines[graph.line_offsets[lane] : graph.line_offsets[lane + 1]]


@njit(cache=True, nogil=True)
def project_on_lane(graph: LaneGraph, lane: int, pose: np.ndarray) -> float:
    """Arc length of the point of a lane's centre that is nearest to a pose."""
    first, last = graph.line_offsets[lane], graph.line_offsets[lane + 1]
    return project_on_line(pose[0], pose[1], graph.lines, first, last)


@njit(cache=True, nogil=True)
def end_heading(graph: LaneGraph, lane: int) -> float:
    """Direction in which a lane ends."""
    last = graph.line_offsets[lane + 1] - 1
    dx, dy = graph.lines[last, 0] - graph.lines[last - 1, 0], graph.lines[last, 1] - graph.lines[last - 1, 1]
    return math.atan2(dy, dx)


@njit(cache=True, nogil=True)
def straight_on(graph: LaneGraph, lane: int) -> int:
    """The successor that turns least until its end, the first among equals; -1 where the map ends."""
    best, least = -1, np.inf
    for k in range(graph.successor_offsets[lane], graph.successor_offsets[lane + 1]):
        turn = abs(wrap_angle(end_heading(graph, graph.successors[k]) - end_heading(graph, lane)))
        if turn < least:
            best, least = graph.successors[k], turn
    return best
