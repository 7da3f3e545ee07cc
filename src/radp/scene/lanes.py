"""The lanes of a Scene: which ones, in which order, and their 20 points in the ego frame."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from radp.geometry.kernels import distance_to_rings
from radp.geometry.ragged import Polygons, Ragged
from radp.geometry.resample import cut_line, line_lengths, resample_lines
from radp.road.lane_lines import LANE_POINTS, Lines, lane_lines
from radp.road.map_memory import remember
from radp.scenario import LightState, RoadMap


class LaneTable(NamedTuple):
    """N rows that a scene chooses from: the lanes of a map, or their parts; world frame, metres, float64."""

    lines: np.ndarray  # (N, 20, 6) centre, left and right border, each even in arc length, in driving direction
    vertices: np.ndarray  # (V, 2) centreline points as they stand in the map
    vertex_offsets: np.ndarray  # (N+1,)
    ring_points: np.ndarray  # (P, 2), ring_offsets, area_offsets (N+1,): the areas, as in `Polygons`
    ring_offsets: np.ndarray
    area_offsets: np.ndarray
    bounds: np.ndarray  # (N, 4) of the areas
    lane: np.ndarray  # (N,) lane of the map that a row is, or is a part of
    is_connector: np.ndarray  # (N,) bool
    roadblock: np.ndarray  # (N,)
    speed_limit: np.ndarray  # (N,) m/s, 0 where there is none
    has_speed_limit: np.ndarray  # (N,) bool


def lane_table(road_map: RoadMap, lane_length: float | None = None) -> LaneTable:
    """The table of a map; lanes longer than `lane_length` metres are cut into equal parts. Computed once."""
    return remember(road_map, ("table", lane_length), lambda: _lane_table(road_map, lane_length))


def _lane_table(road_map: RoadMap, lane_length: float | None) -> LaneTable:
    lines, areas = lane_lines(road_map), road_map.lane_polygons
    lane = np.arange(len(road_map))
    if lane_length is not None:
        lines, areas, lane = _cut_long(lines, areas, lane_length)
    return LaneTable(
        lines=np.concatenate([_resampled(line) for line in lines], 2),
        vertices=lines[0].values,
        vertex_offsets=lines[0].offsets,
        ring_points=areas.rings.values,
        ring_offsets=areas.rings.offsets,
        area_offsets=areas.offsets,
        bounds=areas.bounds,
        lane=lane,
        is_connector=road_map.is_connector[lane],
        roadblock=road_map.roadblock[lane],
        speed_limit=np.where(road_map.has_speed_limit, road_map.speed_limit, 0.0)[lane],
        has_speed_limit=road_map.has_speed_limit[lane],
    )


def _resampled(lines: Ragged) -> np.ndarray:
    """N lines -> (N, 20, 2)."""
    out = np.empty((len(lines) * LANE_POINTS, 2))
    resample_lines(lines.values, lines.offsets, out, np.arange(len(lines) + 1) * LANE_POINTS)
    return out.reshape(-1, LANE_POINTS, 2)


def _cut_long(lines: Lines, areas: Polygons, longest: float) -> tuple[Lines, Polygons, np.ndarray]:
    """Lines, areas and lane of each part; the three lines of a lane are cut at the same fractions of their lengths."""
    parts = np.maximum(1, np.ceil(line_lengths(lines[0].values, lines[0].offsets) / longest)).astype(np.int64)
    rows: list[list[np.ndarray]] = [[], [], []]
    rings: list[list[np.ndarray]] = []
    for lane, count in enumerate(parts):
        for part in range(count):
            for line, out in zip(lines, rows):
                whole = line[lane]
                out.append(whole if count == 1 else cut_line(whole, part / count, (part + 1) / count))
            between = [np.concatenate((rows[1][-1], rows[2][-1][::-1]))]
            rings.append(areas[lane] if count == 1 else between)
    cut = tuple(Ragged.from_rows(out, width=2) for out in rows)
    return (cut[0], cut[1], cut[2]), Polygons.from_rings(rings), np.repeat(np.arange(len(parts)), parts)


@njit(cache=True, nogil=True)
def choose_lanes(table: LaneTable, x: float, y: float, radius: float, most: int) -> np.ndarray:
    """(n <= most,) rows whose area is within `radius` of the point, nearest centreline point first.

    Ties: the nearer area first, then lanes before connectors, then map order.
    """
    count, total = 0, len(table.lane)
    rows, point_gap = np.empty(total, np.int64), np.empty(total)
    for connectors in (False, True):
        for i in range(total):
            gap_x = max(0.0, table.bounds[i, 0] - x, x - table.bounds[i, 2])
            gap_y = max(0.0, table.bounds[i, 1] - y, y - table.bounds[i, 3])
            if table.is_connector[i] != connectors or gap_x * gap_x + gap_y * gap_y > radius * radius:
                continue
            if _is_within(table, i, x, y, radius):
                rows[count], point_gap[count] = i, _point_gap(table, i, x, y)
                count += 1
    order = np.argsort(point_gap[:count], kind="mergesort")
    rows, point_gap = rows[:count][order], point_gap[:count][order]
    first = 0
    while first < min(count, most):
        last = first + 1
        while last < count and point_gap[last] == point_gap[first]:
            last += 1
        if last - first > 1:  # areas are slow to measure, so only where they decide
            area_gap = np.array([_area_gap(table, i, x, y) for i in rows[first:last]])
            rows[first:last] = rows[first:last][np.argsort(area_gap, kind="mergesort")]
        first = last
    return rows[:most]


@njit(cache=True, nogil=True)
def _area_gap(table: LaneTable, i: int, x: float, y: float) -> float:
    first, last = table.area_offsets[i], table.area_offsets[i + 1]
    return distance_to_rings(x, y, table.ring_points, table.ring_offsets, first, last)


@njit(cache=True, nogil=True)
def _is_within(table: LaneTable, i: int, x: float, y: float, radius: float) -> bool:
    """Whether the area of row i has a point within the radius; a corner is enough where there is one."""
    first, last = table.area_offsets[i], table.area_offsets[i + 1]
    for j in range(table.ring_offsets[first], table.ring_offsets[last]):
        dx, dy = table.ring_points[j, 0] - x, table.ring_points[j, 1] - y
        if dx * dx + dy * dy <= radius * radius:
            return True
    return _area_gap(table, i, x, y) <= radius


@njit(cache=True, nogil=True)
def _point_gap(table: LaneTable, i: int, x: float, y: float) -> float:
    """Squared distance to the nearest centreline point of row i."""
    best = np.inf
    for j in range(table.vertex_offsets[i], table.vertex_offsets[i + 1]):
        dx, dy = table.vertices[j, 0] - x, table.vertices[j, 1] - y
        best = min(best, dx * dx + dy * dy)
    return best


class Lights(NamedTuple):
    """C lanes that have a light now."""

    lanes: np.ndarray  # (C,) lane of the map
    states: np.ndarray  # (C,) LightState
    columns: np.ndarray  # (5,) LightState -> column of the lane tensor that is 1


GREEN_COLUMN, YELLOW_COLUMN, RED_COLUMN, UNKNOWN_COLUMN = range(8, 12)


def light_columns(yellow_is_unknown: bool) -> np.ndarray:
    """(5,) LightState -> column of the lane tensor that is 1."""
    columns = np.full(len(LightState), UNKNOWN_COLUMN)
    columns[LightState.GREEN], columns[LightState.RED] = GREEN_COLUMN, RED_COLUMN
    if not yellow_is_unknown:
        columns[LightState.YELLOW] = YELLOW_COLUMN
    return columns


@njit(cache=True, nogil=True)
def light_column(lane: int, lights: Lights) -> int:
    """Column of a lane's light: lanes without a light are UNKNOWN."""
    for k in range(len(lights.lanes)):
        if lights.lanes[k] == lane:
            return lights.columns[lights.states[k]]
    return UNKNOWN_COLUMN


@njit(cache=True, nogil=True)
def write_points(line: np.ndarray, pose: np.ndarray, out: np.ndarray) -> None:
    """line (n, 6) world -> out (n, 12) columns 0..7, ego frame: point, step to the next one, left and right border.

    The last point has no step; the light columns are left alone.
    """
    c, s = math.cos(pose[2]), math.sin(pose[2])
    for p in range(len(line)):
        gx, gy = line[p, 0] - pose[0], line[p, 1] - pose[1]
        out[p, 0], out[p, 1] = c * gx + s * gy, c * gy - s * gx
        for side in range(1, 3):
            dx, dy = line[p, 2 * side] - line[p, 0], line[p, 2 * side + 1] - line[p, 1]
            out[p, 2 + 2 * side], out[p, 3 + 2 * side] = c * dx + s * dy, c * dy - s * dx
        if p + 1 < len(line):
            dx, dy = line[p + 1, 0] - line[p, 0], line[p + 1, 1] - line[p, 1]
            out[p, 2], out[p, 3] = c * dx + s * dy, c * dy - s * dx


@njit(cache=True, nogil=True)
def write_lanes(
    rows: np.ndarray,
    table: LaneTable,
    lights: Lights,
    pose: np.ndarray,
    out: np.ndarray,
    out_limit: np.ndarray,
    out_has_limit: np.ndarray,
) -> None:
    """Rows (n,) of the table -> rows 0..n-1 of out (most, 20, 12), out_limit and out_has_limit (most, 1)."""
    for k in range(len(rows)):
        row = rows[k]
        write_points(table.lines[row], pose, out[k])
        out[k, :, light_column(table.lane[row], lights)] = 1.0
        out_limit[k, 0] = table.speed_limit[row]
        out_has_limit[k, 0] = table.has_speed_limit[row]
