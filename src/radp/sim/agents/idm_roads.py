"""The road as the reactive agents see it: flat arrays for the compiled step, prepared once per map."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import shapely

from radp.geometry.kernels import line_length, point_on_line
from radp.geometry.ragged import Polygons, Ragged
from radp.scenario import RoadMap

CURVATURE_SPACING = 2.0  # m between the three points of the circle at a lane's start
STRAIGHT = 1e-6  # a smaller value of 16 x squared triangle area counts as straight [m^4]


class Roads(NamedTuple):
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
    stop_bounds: np.ndarray  # (stop lines, 4)


class AreaArrays(NamedTuple):
    """The arrays of a `Polygons`."""

    points: np.ndarray
    ring_offsets: np.ndarray
    offsets: np.ndarray
    bounds: np.ndarray


class Ground(NamedTuple):
    """Where a vehicle can stand: the areas of L lanes and connectors, and of the intersections."""

    lanes: AreaArrays
    is_connector: np.ndarray  # (L,) bool
    intersections: AreaArrays


_PREPARED: dict[int, tuple[weakref.ref[RoadMap], tuple[Roads, Ground]]] = {}


def prepare_map(road_map: RoadMap) -> tuple[Roads, Ground]:
    """The arrays of one map, made once: the same map gives the same objects."""
    key = id(road_map)
    known = _PREPARED.get(key)
    if known is not None and known[0]() is road_map:
        return known[1]
    ground = Ground(
        lanes=_area_arrays(road_map.lane_polygons),
        is_connector=np.array(road_map.is_connector, dtype=bool),
        intersections=_area_arrays(road_map.intersections.polygons),
    )
    prepared = (_build_roads(road_map), ground)
    _PREPARED[key] = (weakref.ref(road_map, lambda _: _PREPARED.pop(key, None)), prepared)
    return prepared


def _own(array: np.ndarray, dtype: type = np.int64) -> np.ndarray:
    """A writable, contiguous copy: compiled code has one version for these, and maps may be memory-mapped."""
    return np.array(array, dtype=dtype, order="C")


def _area_arrays(polygons: Polygons) -> AreaArrays:
    rings = polygons.rings
    return AreaArrays(
        _own(rings.values, np.float64), _own(rings.offsets), _own(polygons.offsets), _own(polygons.bounds, np.float64)
    )


def join_roads(parts: Sequence[Roads]) -> tuple[Roads, np.ndarray]:
    """All maps one after the other, and (maps,) the index of each map's lane 0."""
    lanes = np.array([len(part.curvature) for part in parts], dtype=np.int64)
    stops = np.array([len(part.stop_point_offsets) - 1 for part in parts], dtype=np.int64)
    first_lane = np.concatenate(([0], np.cumsum(lanes)[:-1])) if len(parts) else lanes
    first_stop = np.concatenate(([0], np.cumsum(stops)[:-1])) if len(parts) else stops
    if len(parts) == 1:
        return parts[0], first_lane
    shift = {"successor": first_lane, "stop": first_stop}
    columns: dict[str, np.ndarray] = {}
    for name in Roads._fields:
        arrays = [getattr(part, name) for part in parts]
        if name.endswith("_offsets"):
            ends = np.cumsum([array[-1] for array in arrays])
            columns[name] = np.concatenate([arrays[0], *(a[1:] + e for a, e in zip(arrays[1:], ends))])
        else:
            if name in shift:
                arrays = [array + first for array, first in zip(arrays, shift[name])]
            columns[name] = np.concatenate(arrays)
    return Roads(**columns), first_lane


def _build_roads(road_map: RoadMap) -> Roads:
    lines = road_map.centerlines
    vertex = np.column_stack([lines.values, np.zeros(len(lines.values))])
    for lane in range(len(road_map)):
        row = slice(lines.offsets[lane], lines.offsets[lane + 1])
        step = np.diff(lines.values[row], axis=0)
        vertex[row][:-1, 2] = np.arctan2(step[:, 1], step[:, 0])
        vertex[row][-1, 2] = vertex[row][-2, 2]
    listed = np.diff(road_map.lane_stop_lines.offsets) > 0
    stops = Ragged.from_rows([_stops_of_lane(road_map, lane) for lane in range(len(road_map))], dtype=np.int64)
    areas = road_map.stop_lines.polygons
    exteriors = Ragged.from_rows([areas[i][0] for i in range(len(areas))], width=2)
    return Roads(
        vertex=vertex,
        vertex_offsets=_own(lines.offsets),
        successor=_own(road_map.successors.values),
        successor_offsets=_own(road_map.successors.offsets),
        curvature=np.array([_start_curvature(vertex, *ends) for ends in zip(lines.offsets, lines.offsets[1:])]),
        speed_limit=np.where(road_map.has_speed_limit, road_map.speed_limit, 0.0),
        signalled=_own(listed & road_map.is_connector, bool),
        stop=stops.values,
        stop_offsets=stops.offsets,
        stop_point=exteriors.values,
        stop_point_offsets=exteriors.offsets,
        stop_bounds=_own(areas.bounds, np.float64),
    )


def _start_curvature(vertex: np.ndarray, first: int, last: int) -> float:
    """1 / radius of the circle through three points of the centre line, by Heron's formula for their triangle."""
    length = line_length(vertex, first, last)
    spacing = CURVATURE_SPACING if length >= 2 * CURVATURE_SPACING else length / 2
    p, q, r = (np.array(point_on_line(k * spacing, vertex, first, last)) for k in range(3))
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
