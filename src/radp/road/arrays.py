"""The road as plain arrays for kernels: areas, centre lines and the graph of the lanes, made once for each map."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from radp.geometry.areas import AreaArrays, area_arrays
from radp.geometry.compiled import kernel_array
from radp.geometry.ragged import Ragged
from radp.road.map_memory import remember
from radp.road.road_map import RoadMap


class LineArrays(NamedTuple):
    """N lines; line i is points[offsets[i]:offsets[i+1]]."""

    points: np.ndarray  # (V, n) x, y and more
    offsets: np.ndarray  # (N+1,)


class LaneGraph(NamedTuple):
    """How L lanes and connectors hang together, and in which of R roadblocks they lie.

    Links are ragged rows: those of lane i are successors[successor_offsets[i]:successor_offsets[i+1]].
    """

    is_connector: np.ndarray  # (L,) bool
    limit: np.ndarray  # (L,) speed limit [m/s], 0 where there is none
    has_limit: np.ndarray  # (L,) bool
    roadblock: np.ndarray  # (L,)
    members: np.ndarray  # lanes of each roadblock
    member_offsets: np.ndarray  # (R+1,)
    predecessors: np.ndarray
    predecessor_offsets: np.ndarray  # (L+1,)
    successors: np.ndarray
    successor_offsets: np.ndarray  # (L+1,)
    neighbors: np.ndarray  # (L, 2) left, right; -1 = none


class RoadArrays(NamedTuple):
    """One road map; world frame. Kernels that need only a part of it are given that part: each array costs time."""

    graph: LaneGraph
    centre: LineArrays  # L centre lines as they stand in the map (V, 3): x, y, heading to the next vertex
    lanes: AreaArrays  # L
    roadblocks: AreaArrays  # R
    intersections: AreaArrays
    drivable: AreaArrays  # drivable areas without the intersections


def road_arrays(road_map: RoadMap) -> RoadArrays:
    """The arrays of a map, made once: the same map gives the same object."""
    return remember(road_map, "arrays", lambda: _road_arrays(road_map))


def _road_arrays(road_map: RoadMap) -> RoadArrays:
    return RoadArrays(
        graph=_lane_graph(road_map),
        centre=_with_headings(road_map.centerlines),
        lanes=area_arrays(road_map.lane_polygons),
        roadblocks=area_arrays(road_map.roadblocks.polygons),
        intersections=area_arrays(road_map.intersections.polygons),
        drivable=area_arrays(road_map.drivable.polygons),
    )


def _lane_graph(road_map: RoadMap) -> LaneGraph:
    has_limit = kernel_array(road_map.has_speed_limit, bool)
    return LaneGraph(
        kernel_array(road_map.is_connector, bool),
        np.where(has_limit, road_map.speed_limit, 0.0),
        has_limit,
        kernel_array(road_map.roadblock, np.int64),
        *_links(road_map.lanes_of_roadblock),
        *_links(road_map.predecessors),
        *_links(road_map.successors),
        np.stack((road_map.left_neighbor, road_map.right_neighbor), 1).astype(np.int64),
    )


def _links(rows: Ragged) -> tuple[np.ndarray, np.ndarray]:
    return kernel_array(rows.values, np.int64), kernel_array(rows.offsets, np.int64)


def _with_headings(lines: Ragged) -> LineArrays:
    """Lines (V, 2) -> (V, 3): with the heading to the next vertex, at the last vertex that to it."""
    points, offsets = np.zeros((len(lines.values), 3)), kernel_array(lines.offsets, np.int64)
    points[:, :2] = lines.values
    step = np.diff(lines.values, axis=0)
    points[:-1, 2] = np.arctan2(step[:, 1], step[:, 0])
    points[offsets[1:] - 1, 2] = points[offsets[1:] - 2, 2]
    return LineArrays(points, offsets)
