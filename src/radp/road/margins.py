"""How far a lane and the road reach to either side of the lane's centre line: measured once, looked up ever after.

A ray to the left and one to the right leave the centre line at every metre; where they leave the areas of the map is
all that the question takes later whether a corner of the ego is still in its lane or on the road.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from radp.geometry.areas import AreaArrays
from radp.geometry.kernels import wrap_angle
from radp.geometry.line_kernels import line_pose, nearest_on_line, sample_line
from radp.road.arrays import RoadArrays, road_arrays
from radp.road.map_memory import remember
from radp.road.road_map import RoadMap

MARGIN_SPACING = 1.0  # m between measured places
FURTHEST = 6.0  # m to either side
SLIT = 0.1  # m: gaps between areas that are no gaps of the road
MOST_CROSSINGS = 64  # of a ray with the border of one area
OWN, ROAD, SAME_WAY = range(3)  # rows of the margins: the lane, the drivable area, ground up to an oncoming lane
RIGHT, LEFT = range(2)


def lane_margins(road_map: RoadMap, lane: int) -> np.ndarray:
    """(3, 2, Q): metres to the right and left in which OWN, ROAD and SAME_WAY hold, in the middle of each metre.

    Measured once for each lane of a map.
    """
    return remember(road_map, ("margins", lane), lambda: _margins(road_arrays(road_map), lane))


def _margins(road: RoadArrays, lane: int) -> np.ndarray:
    lines = road.centre
    points, headings = sample_line(lines.points[lines.offsets[lane] : lines.offsets[lane + 1], :2], MARGIN_SPACING)
    places = max(1, len(points) - 1)
    margins = np.full((3, 2, places), FURTHEST)
    _measure(points, headings, lane, road, margins)
    return margins


@njit(cache=True, nogil=True)
def _measure(points: np.ndarray, headings: np.ndarray, lane: int, road: RoadArrays, margins: np.ndarray) -> None:
    lanes, crossings, drivable, lines = road.lanes, road.intersections, road.drivable, road.centre
    room = lanes.bounds.shape[0] + crossings.bounds.shape[0] + drivable.bounds.shape[0]
    spans, found = np.empty((MOST_CROSSINGS * (1 + room), 2)), np.empty(MOST_CROSSINGS)
    for i in range(margins.shape[2]):
        x, y, heading = line_pose((i + 0.5) * MARGIN_SPACING, points, headings, MARGIN_SPACING)
        for side in range(2):
            sign = 1.0 if side == LEFT else -1.0
            dx, dy = -sign * math.sin(heading), sign * math.cos(heading)
            count = 0
            for j in range(lanes.bounds.shape[0]):
                if not _is_near(x, y, lanes.bounds[j]):
                    continue
                more = _spans(x, y, dx, dy, j, lanes.points, lanes.ring_offsets, lanes.offsets, found, spans[count:])
                if j == lane:
                    margins[OWN, side, i] = _reach(spans[count : count + more])
                elif more and not road.graph.is_connector[j]:
                    near = spans[count, 0]
                    at = 0.5 * (near + spans[count, 1])
                    _, _, direction = nearest_on_line(
                        x + at * dx, y + at * dy, lines.points, lines.offsets[j], lines.offsets[j + 1]
                    )
                    if abs(wrap_angle(direction - heading)) > 0.5 * math.pi:
                        margins[SAME_WAY, side, i] = min(margins[SAME_WAY, side, i], near)
                count += more
            count += _near_spans(x, y, dx, dy, crossings, found, spans[count:])
            count += _near_spans(x, y, dx, dy, drivable, found, spans[count:])
            margins[ROAD, side, i] = _reach(spans[:count])


@njit(cache=True, nogil=True)
def _near_spans(x: float, y: float, dx: float, dy: float, areas: AreaArrays, found: np.ndarray, out: np.ndarray) -> int:
    """`_spans` of all areas within reach."""
    count = 0
    for j in range(areas.bounds.shape[0]):
        if _is_near(x, y, areas.bounds[j]):
            more = out[count:]
            count += _spans(x, y, dx, dy, j, areas.points, areas.ring_offsets, areas.offsets, found, more)
    return count


@njit(cache=True, nogil=True, inline="always")
def _is_near(x: float, y: float, bounds: np.ndarray) -> bool:
    beside = max(bounds[0] - x, x - bounds[2])
    return max(beside, bounds[1] - y, y - bounds[3]) <= FURTHEST


@njit(cache=True, nogil=True)
def _spans(
    x: float,
    y: float,
    dx: float,
    dy: float,
    area: int,
    points: np.ndarray,
    ring_offsets: np.ndarray,
    offsets: np.ndarray,
    found: np.ndarray,
    out: np.ndarray,
) -> int:
    """Write the stretches (from, to) of the ray from (x, y) that lie in an area and begin within reach; how many."""
    count = 0
    for ring in range(offsets[area], offsets[area + 1]):
        j = ring_offsets[ring + 1] - 1
        for i in range(ring_offsets[ring], ring_offsets[ring + 1]):
            # Signed distances of the edge's ends from the ray's line; an edge that ends on it counts once.
            a = (points[i, 0] - x) * dy - (points[i, 1] - y) * dx
            b = (points[j, 0] - x) * dy - (points[j, 1] - y) * dx
            if (a > 0.0) != (b > 0.0):
                share = a / (a - b)
                px = points[i, 0] + share * (points[j, 0] - points[i, 0])
                py = points[i, 1] + share * (points[j, 1] - points[i, 1])
                at = (px - x) * dx + (py - y) * dy
                if at > 0.0 and count < MOST_CROSSINGS:
                    found[count] = at
                    count += 1
            j = i
    found[:count].sort()
    written = 0
    start = 0
    if count % 2 == 1:  # the ray begins inside
        out[0, 0], out[0, 1] = 0.0, found[0]
        written, start = 1, 1
    for k in range(start, count - 1, 2):
        if found[k] > FURTHEST:
            break
        out[written, 0], out[written, 1] = found[k], found[k + 1]
        written += 1
    return written


@njit(cache=True, nogil=True)
def _reach(spans: np.ndarray) -> float:
    """How far the union of stretches goes on from 0 without a gap."""
    reach, grown = 0.0, True
    while grown:
        grown = False
        for k in range(spans.shape[0]):
            if spans[k, 0] <= reach + SLIT and spans[k, 1] > reach:
                reach, grown = spans[k, 1], True
    return min(reach, FURTHEST)
