"""The lanes of a Scene: which ones, in which order, and their 20 points in the ego frame."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from radp.geometry.areas import AreaArrays, bounds_square, distance_to_area
from radp.road.arrays import LaneGraph, LineArrays
from radp.road.lane_lines import LANE_POINTS, LaneLines, LaneTable
from radp.road.route_line import route_line
from radp.scenario import LightState


@njit(cache=True, nogil=True)
def choose_lanes(table: LaneTable, x: float, y: float, radius: float, most: int) -> np.ndarray:
    """(n <= most,) rows whose area is within `radius` of the point, nearest centreline point first.

    Ties: the nearer area first, then lanes before connectors, then map order.
    """
    count, total = 0, len(table.lane)
    rows, point_gap = np.empty(total, np.int64), np.empty(total)
    for connectors in (False, True):
        for i in range(total):
            if table.is_connector[i] != connectors or bounds_square(x, y, i, table.areas.bounds) > radius * radius:
                continue
            if _is_within(table.areas, i, x, y, radius):
                rows[count], point_gap[count] = i, _point_gap(table.centre, i, x, y)
                count += 1
    order = np.argsort(point_gap[:count], kind="mergesort")
    rows, point_gap = rows[:count][order], point_gap[:count][order]
    first = 0
    while first < min(count, most):
        last = first + 1
        while last < count and point_gap[last] == point_gap[first]:
            last += 1
        if last - first > 1:  # areas are slow to measure, so only where they decide
            area_gap = np.array([distance_to_area(x, y, i, table.areas) for i in rows[first:last]])
            rows[first:last] = rows[first:last][np.argsort(area_gap, kind="mergesort")]
        first = last
    return rows[:most]


@njit(cache=True, nogil=True)
def _is_within(areas: AreaArrays, i: int, x: float, y: float, radius: float) -> bool:
    """Whether area i has a point within the radius; a corner is enough where there is one."""
    for j in range(areas.ring_offsets[areas.offsets[i]], areas.ring_offsets[areas.offsets[i + 1]]):
        dx, dy = areas.points[j, 0] - x, areas.points[j, 1] - y
        if dx * dx + dy * dy <= radius * radius:
            return True
    return distance_to_area(x, y, i, areas) <= radius


@njit(cache=True, nogil=True)
def _point_gap(lines: LineArrays, i: int, x: float, y: float) -> float:
    """Squared distance to the nearest point of line i."""
    best = np.inf
    for j in range(lines.offsets[i], lines.offsets[i + 1]):
        dx, dy = lines.points[j, 0] - x, lines.points[j, 1] - y
        best = min(best, dx * dx + dy * dy)
    return best


@njit(cache=True, nogil=True)
def route_rows(lanes: np.ndarray, roadblock: np.ndarray, route: np.ndarray, most: int) -> np.ndarray:
    """lanes (n,) of the scene, route (m,) roadblocks -> at most `most` rows of `lanes` on the route, order kept.

    Of the route only the first unbroken run of roadblocks that have a lane in the scene counts.
    """
    first, last = -1, -1
    for i in range(len(route)):
        seen = False
        for lane in lanes:
            seen = seen or roadblock[lane] == route[i]
        if seen and first < 0:
            first = i
        if not seen and first >= 0:
            break
        if seen:
            last = i
    rows, count = np.empty(most, np.int64), 0
    if first < 0:
        return rows[:0]
    for row in range(len(lanes)):
        for i in range(first, last + 1):
            if roadblock[lanes[row]] == route[i] and count < most:
                rows[count] = row
                count += 1
                break
    return rows[:count]


@njit(cache=True, nogil=True)
def write_links(rows: np.ndarray, lane: np.ndarray, graph: LaneGraph, out: np.ndarray) -> None:
    """Rows (n,) of a table of lanes (N,) -> out (most, most): True where, by the map, row j follows row i.

    The parts of a lane stand one after the other in the table.
    """
    for i in range(len(rows)):
        a = rows[i]
        is_last = a + 1 == len(lane) or lane[a + 1] != lane[a]
        for j in range(len(rows)):
            b = rows[j]
            if lane[a] == lane[b]:
                out[i, j] = b == a + 1
            elif is_last and (b == 0 or lane[b - 1] != lane[b]):
                for k in range(graph.successor_offsets[lane[a]], graph.successor_offsets[lane[a] + 1]):
                    out[i, j] |= graph.successors[k] == lane[b]


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
        out_limit[k, 0] = table.limit[row]
        out_has_limit[k, 0] = table.has_limit[row]


@njit(cache=True, nogil=True)
def write_route_line(
    graph: LaneGraph,
    lines: LaneLines,
    route: np.ndarray,
    pose: np.ndarray,
    lights: Lights,
    spacing: float,
    pieces: int,
    out: np.ndarray,
    out_limit: np.ndarray,
    out_has_limit: np.ndarray,
) -> None:
    """Write the first `pieces` rows of out (R, 20, 12), out_limit and out_has_limit (R, 1): the route (m,) as one line
    in driving order, from the ego on, points `spacing` metres apart."""
    pieces = min(pieces, len(out))
    # One point more than the rows hold gives the last of them its step.
    line, lanes = route_line(graph, lines, route, pose, spacing, LANE_POINTS * pieces + 1)
    rows = np.zeros((len(line), out.shape[2]), out.dtype)
    write_points(line, pose, rows)
    for k in range(min(len(line), pieces * LANE_POINTS)):
        piece, point = k // LANE_POINTS, k % LANE_POINTS
        out[piece, point] = rows[k]
        out[piece, point, light_column(lanes[k], lights)] = 1.0
        if point == 0:
            out_limit[piece, 0], out_has_limit[piece, 0] = graph.limit[lanes[k]], graph.has_limit[lanes[k]]
