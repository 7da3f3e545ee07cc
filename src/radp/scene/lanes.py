"""The lanes of a Scene: which ones, in which order, and their 20 points in the ego frame."""

from __future__ import annotations

import math
import weakref
from dataclasses import dataclass, field

import numpy as np
from numba import njit

from radp.geometry.kernels import distance_to_rings
from radp.geometry.ragged import Ragged
from radp.geometry.resample import resample_lines
from radp.scenario import LightState, RoadMap

LANE_POINTS = 20
CENTRE, LEFT, RIGHT = slice(0, 2), slice(2, 4), slice(4, 6)


@dataclass(frozen=True)
class LaneTable:
    """L lanes of one map as flat arrays for the kernels; world frame, metres, float64. Built once for a map."""

    lines: np.ndarray  # (L, 20, 6) centre, left and right border, each even in arc length, in driving direction
    vertices: np.ndarray  # (V, 2) centreline points as they stand in the map
    vertex_offsets: np.ndarray  # (L+1,)
    ring_points: np.ndarray  # (P, 2), ring_offsets, area_offsets (L+1,): the lane areas, as in `Polygons`
    ring_offsets: np.ndarray
    area_offsets: np.ndarray
    bounds: np.ndarray  # (L, 4) of the areas
    is_connector: np.ndarray  # (L,) bool
    roadblock: np.ndarray  # (L,)
    speed_limit: np.ndarray  # (L,) m/s, 0 where there is none
    has_speed_limit: np.ndarray  # (L,) bool
    successors: np.ndarray  # lane indices, successor_offsets (L+1,)
    successor_offsets: np.ndarray
    neighbors: np.ndarray  # (L, 2) left, right; -1 = none
    members: np.ndarray  # lane indices of each roadblock, member_offsets (R+1,)
    member_offsets: np.ndarray
    corrected_routes: dict[tuple, np.ndarray] = field(default_factory=dict, init=False, repr=False)  # a memory

    def __len__(self) -> int:
        return len(self.lines)


_tables: dict[int, tuple[weakref.ref[RoadMap], LaneTable]] = {}


def lane_table(road_map: RoadMap) -> LaneTable:
    """The table of a map, computed at the first call and kept as long as the map lives."""
    key = id(road_map)
    known = _tables.get(key)
    if known is not None and known[0]() is road_map:
        return known[1]
    table = make_lane_table(road_map)
    _tables[key] = (weakref.ref(road_map, lambda _: _tables.pop(key, None)), table)
    return table


def make_lane_table(road_map: RoadMap) -> LaneTable:
    """Resample all lines and turn borders that run against their centreline."""
    centre = _resampled(road_map.centerlines)
    lines = np.concatenate([centre, *(_along(_resampled(side), centre) for side in (road_map.left, road_map.right))], 2)
    polygons, members = road_map.lane_polygons, road_map.lanes_of_roadblock
    return LaneTable(
        lines=np.ascontiguousarray(lines),
        vertices=road_map.centerlines.values,
        vertex_offsets=road_map.centerlines.offsets,
        ring_points=polygons.rings.values,
        ring_offsets=polygons.rings.offsets,
        area_offsets=polygons.offsets,
        bounds=polygons.bounds,
        is_connector=road_map.is_connector,
        roadblock=road_map.roadblock,
        speed_limit=np.where(road_map.has_speed_limit, road_map.speed_limit, 0.0),
        has_speed_limit=road_map.has_speed_limit,
        successors=road_map.successors.values,
        successor_offsets=road_map.successors.offsets,
        neighbors=np.stack((road_map.left_neighbor, road_map.right_neighbor), 1).astype(np.int64),
        members=members.values,
        member_offsets=members.offsets,
    )


def _resampled(lines: Ragged) -> np.ndarray:
    return resample_lines(lines.values, lines.offsets, LANE_POINTS)


def _along(border: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """(L, 20, 2): borders whose last point is nearer to the centreline's first point than their first are reversed."""
    first = np.hypot(*(border[:, 0] - centre[:, 0]).T)
    last = np.hypot(*(border[:, -1] - centre[:, 0]).T)
    return np.where((last < first)[:, None, None], border[:, ::-1], border)


def choose_lanes(table: LaneTable, x: float, y: float, radius: float, most: int) -> np.ndarray:
    """(n <= most,) lanes whose area is within `radius` of the point, nearest centreline point first.

    Ties: the nearer area first, then lanes before connectors, then map order.
    """
    return _choose_lanes(
        x, y, radius, most, table.vertices, table.vertex_offsets, table.ring_points, table.ring_offsets,
        table.area_offsets, table.bounds, table.is_connector,
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _choose_lanes(
    x: float,
    y: float,
    radius: float,
    most: int,
    vertices: np.ndarray,
    vertex_offsets: np.ndarray,
    ring_points: np.ndarray,
    ring_offsets: np.ndarray,
    area_offsets: np.ndarray,
    bounds: np.ndarray,
    is_connector: np.ndarray,
) -> np.ndarray:
    count = 0
    lanes = np.empty(len(bounds), np.int64)
    area_gap = np.empty(len(bounds))
    for connectors in (False, True):
        for i in range(len(bounds)):
            if is_connector[i] != connectors:
                continue
            gap_x = max(0.0, bounds[i, 0] - x, x - bounds[i, 2])
            gap_y = max(0.0, bounds[i, 1] - y, y - bounds[i, 3])
            if gap_x * gap_x + gap_y * gap_y > radius * radius:
                continue
            gap = distance_to_rings(x, y, ring_points, ring_offsets, area_offsets[i], area_offsets[i + 1])
            if gap <= radius:
                lanes[count], area_gap[count] = i, gap
                count += 1
    lanes = lanes[:count][np.argsort(area_gap[:count], kind="mergesort")]
    point_gap = np.full(count, np.inf)
    for k in range(count):
        for j in range(vertex_offsets[lanes[k]], vertex_offsets[lanes[k] + 1]):
            dx, dy = vertices[j, 0] - x, vertices[j, 1] - y
            point_gap[k] = min(point_gap[k], dx * dx + dy * dy)
    return lanes[np.argsort(point_gap, kind="mergesort")][:most]


GREEN_COLUMN, YELLOW_COLUMN, RED_COLUMN, UNKNOWN_COLUMN = range(8, 12)


def light_columns(yellow_is_unknown: bool) -> np.ndarray:
    """(5,) LightState -> column of the lane tensor that is 1."""
    columns = np.full(len(LightState), UNKNOWN_COLUMN)
    columns[LightState.GREEN], columns[LightState.RED] = GREEN_COLUMN, RED_COLUMN
    if not yellow_is_unknown:
        columns[LightState.YELLOW] = YELLOW_COLUMN
    return columns


@njit(cache=True, nogil=True)
def lane_light(lane: int, light_lanes: np.ndarray, light_states: np.ndarray, columns: np.ndarray) -> int:
    """Column of a lane's light: lanes without a light are UNKNOWN."""
    for k in range(len(light_lanes)):
        if light_lanes[k] == lane:
            return columns[light_states[k]]
    return columns[0]


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
    lanes: np.ndarray,
    lines: np.ndarray,
    speed_limit: np.ndarray,
    has_speed_limit: np.ndarray,
    light_lanes: np.ndarray,
    light_states: np.ndarray,
    light_columns: np.ndarray,
    pose: np.ndarray,
    out: np.ndarray,
    out_limit: np.ndarray,
    out_has_limit: np.ndarray,
) -> None:
    """Lanes (n,) of the table -> rows 0..n-1 of out (most, 20, 12), out_limit and out_has_limit (most, 1)."""
    for row in range(len(lanes)):
        lane = lanes[row]
        write_points(lines[lane], pose, out[row])
        out[row, :, lane_light(lane, light_lanes, light_states, light_columns)] = 1.0
        out_limit[row, 0] = speed_limit[lane]
        out_has_limit[row, 0] = has_speed_limit[lane]
