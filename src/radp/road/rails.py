"""The road as vehicles on rails see it: lanes, what follows them and what stops them, of one or several maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import shapely

from radp.geometry.kernels import line_length, point_on_line
from radp.geometry.ragged import Ragged
from radp.road.arrays import LineArrays, road_arrays
from radp.road.map_memory import remember
from radp.road.road_map import RoadMap

CURVATURE_SPACING = 2.0  # m between the three points of the circle at a lane's start
STRAIGHT = 1e-6  # a smaller value of 16 x squared triangle area counts as straight [m^4]


class Rails(NamedTuple):
    """L lanes and connectors of one or several maps; row i of a ragged pair is values[offsets[i]:offsets[i+1]]."""

    vertex: np.ndarray  # (V, 3) centre lines: x, y, heading to the next vertex
    vertex_offsets: np.ndarray  # (L+1,)
    successor: np.ndarray  # (S,) lane indices
    successor_offsets: np.ndarray  # (L+1,)
    curvature: np.ndarray  # (L,) |1/m| at the start
    speed_limit: np.ndarray  # (L,) m/s, 0 = none
    signalled: np.ndarray  # (L,) bool: has traffic lights
    stop: np.ndarray  # (K,) indices of stop lines that hold a lane's traffic when it is red
    stop_offsets: np.ndarray  # (L+1,)
    stop_point: np.ndarray  # (Q, 2) exteriors of the stop lines
    stop_point_offsets: np.ndarray  # (stop lines + 1,)


def rails(road_map: RoadMap) -> Rails:
    """The rails of one map, made once."""
    return remember(road_map, "rails", lambda: _rails(road_map))


def join_rails(parts: Sequence[Rails]) -> tuple[Rails, np.ndarray]:
    """All maps one after the other, and (maps,) the index of each map's lane 0."""
    lanes = np.array([len(part.curvature) for part in parts], dtype=np.int64)
    stops = np.array([len(part.stop_point_offsets) - 1 for part in parts], dtype=np.int64)
    first_lane = np.concatenate(([0], np.cumsum(lanes)[:-1])) if len(parts) else lanes
    first_stop = np.concatenate(([0], np.cumsum(stops)[:-1])) if len(parts) else stops
    if len(parts) == 1:
        return parts[0], first_lane
    shift = {"successor": first_lane, "stop": first_stop}
    columns: dict[str, np.ndarray] = {}
    for name in Rails._fields:
        arrays = [getattr(part, name) for part in parts]
        if name.endswith("_offsets"):
            ends = np.cumsum([array[-1] for array in arrays])
            columns[name] = np.concatenate([arrays[0], *(a[1:] + e for a, e in zip(arrays[1:], ends))])
        else:
            if name in shift:
                arrays = [array + first for array, first in zip(arrays, shift[name])]
            columns[name] = np.concatenate(arrays)
    return Rails(**columns), first_lane


def _rails(road_map: RoadMap) -> Rails:
    road, areas = road_arrays(road_map), road_map.stop_lines.polygons
    listed = np.diff(road_map.lane_stop_lines.offsets) > 0
    stops = Ragged.from_rows([_stops_of_lane(road_map, lane) for lane in range(len(road_map))], dtype=np.int64)
    exteriors = Ragged.from_rows([areas[i][0] for i in range(len(areas))], width=2)
    return Rails(
        vertex=road.centre.points,
        vertex_offsets=road.centre.offsets,
        successor=road.graph.successors,
        successor_offsets=road.graph.successor_offsets,
        curvature=np.array([_start_curvature(road.centre, lane) for lane in range(len(road_map))]),
        speed_limit=road.graph.limit,
        signalled=listed & road.graph.is_connector,
        stop=stops.values,
        stop_offsets=stops.offsets,
        stop_point=exteriors.values,
        stop_point_offsets=exteriors.offsets,
    )


def _start_curvature(lines: LineArrays, lane: int) -> float:
    """1 / radius of the circle through three points of the centre line, by Heron's formula for their triangle."""
    first, last = lines.offsets[lane], lines.offsets[lane + 1]
    length = line_length(lines.points, first, last)
    spacing = CURVATURE_SPACING if length >= 2 * CURVATURE_SPACING else length / 2
    p, q, r = (np.array(point_on_line(k * spacing, lines.points, first, last)) for k in range(3))
    a, b, c = np.hypot(*(p - q)), np.hypot(*(q - r)), np.hypot(*(r - p))
    area = (a + (b + c)) * (c - (a - b)) * (c + (a - b)) * (a + (b - c))
    return 0.0 if area < STRAIGHT or a * b * c < 1e-8 else float(np.sqrt(area) / (a * b * c))


def _stops_of_lane(road_map: RoadMap, lane: int) -> list[int]:
    """The listed stop lines that the centre line touches; if there is none, the one nearest to its start."""
    listed = [int(i) for i in road_map.lane_stop_lines[lane]]
    if not listed or not road_map.is_connector[lane]:
        return []
    line = shapely.LineString(road_map.centerlines[lane])
    areas = [shapely.Polygon(road_map.stop_lines.polygons[i][0]) for i in listed]
    touching = [i for i, area in zip(listed, areas) if area.intersects(line)]
    if touching:
        return touching
    start = shapely.Point(road_map.centerlines[lane][0])
    return [listed[int(np.argmin([start.distance(area) for area in areas]))]]
