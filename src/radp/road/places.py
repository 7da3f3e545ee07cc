"""Which lane is a pose on? Those who ask measure alike, by metres beside a centre line and the angle against it.

They differ in what they tolerate; the reasons stand beside the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numba import njit

from radp.geometry.areas import AreaArrays, areas_near, in_any_area, nearest_area
from radp.geometry.kernels import (
    line_length,
    point_in_area,
    point_on_line,
    point_segment_distance,
    project_on_line,
    wrap_angle,
)
from radp.geometry.line_kernels import nearest_on_line
from radp.road.arrays import LaneGraph, LineArrays, RoadArrays, road_arrays
from radp.road.road_map import RoadMap

REACH = 1.0  # m from a pose to the area of a lane or roadblock that it may be on, as in the Diffusion Planner
ROUTE_ANGLE, ROUTE_OFFSET = math.pi / 4, 3.0  # rad, m: a roadblock with such a lane fits, as in the Diffusion Planner
DRIVEN_ANGLE = math.pi / 3  # rad: cars cut corners, and the chain of lanes under the whole path mends a wrong guess
GUIDE_REACH, GUIDE_OFFSET = 4.0, 6.0  # m to a lane's bounds and centre: a planner looks beside the road, too
GUIDE_ANGLE_METRES = 4.0  # m of offset that a radian counts for, where a planner chooses a lane
AGAINST = 1e6  # m: what a lane that runs against the ego counts as farther away, where the line of a scene starts
HEADING_CHORD = 0.5  # m over which nuPlan measures the heading of a lane


@njit(cache=True, nogil=True)
def lane_fit(x: float, y: float, heading: float, lane: int, lines: LineArrays) -> tuple[float, float]:
    """Metres from a pose to a lane's centre line, and the angle [rad] between the heading and the line there."""
    offset, _, direction = nearest_on_line(x, y, lines.points, lines.offsets[lane], lines.offsets[lane + 1])
    return offset, abs(wrap_angle(direction - heading))


def current_roadblocks(road_map: RoadMap, route: Iterable[int], pose: np.ndarray) -> list[int]:
    """Roadblocks that a pose (3,) may stand on, best first: those of the route that fit, else all that fit, else the
    nearest."""
    road, on_route = road_arrays(road_map), set(route)
    x, y, heading = (float(v) for v in pose[:3])
    members = (road.graph.members, road.graph.member_offsets)
    blocks, offset, fit = _roadblock_fits(x, y, heading, road.roadblocks, *members, road.centre)
    known = [(fit[i], int(block)) for i, block in enumerate(blocks) if fit[i] < np.inf]
    for choice in ([pair for pair in known if pair[1] in on_route], known, list(zip(offset, blocks.tolist()))):
        if choice:
            return [block for gap, block in sorted(choice) if gap < np.inf]
    return []


@njit(cache=True, nogil=True)
def _roadblock_fits(
    x: float, y: float, heading: float, areas: AreaArrays, members: np.ndarray, member_offsets: np.ndarray,
    lines: LineArrays,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """The roadblocks (n,) within reach, or else the nearest; metres (n,) to the nearest centre line of each, and to the
    nearest one that fits, infinite where none does."""
    blocks = areas_near(x, y, areas, REACH)
    if len(blocks) == 0:
        nearest = nearest_area(x, y, areas)[0]
        blocks = np.full(1 if nearest >= 0 else 0, nearest)
    offset, fit = np.full(len(blocks), np.inf), np.full(len(blocks), np.inf)
    for i, block in enumerate(blocks):
        for k in range(member_offsets[block], member_offsets[block + 1]):
            gap, angle = lane_fit(x, y, heading, members[k], lines)
            offset[i] = min(offset[i], gap)
            if angle < ROUTE_ANGLE and gap < ROUTE_OFFSET:
                fit[i] = min(fit[i], gap)
    return blocks, offset, fit


@njit(cache=True, nogil=True)
def best_lane(x: float, y: float, heading: float, bounds: np.ndarray, lines: LineArrays, bonus: np.ndarray) -> int:
    """Lane whose centre line fits a pose best: metres off + 4 m for each radian of heading error - bonus (L,) metres.

    Lanes near the pose come first, by the bounds (L, 4) of their areas, then any lane.
    """
    best, lane = np.inf, -1
    for attempt in range(2):
        reach, most = (GUIDE_REACH, GUIDE_OFFSET) if attempt == 0 else (np.inf, np.inf)
        for i in range(len(bonus)):
            if x < bounds[i, 0] - reach or y < bounds[i, 1] - reach:
                continue
            if x > bounds[i, 2] + reach or y > bounds[i, 3] + reach:
                continue
            gap, angle = lane_fit(x, y, heading, i, lines)
            cost = gap + GUIDE_ANGLE_METRES * angle - bonus[i]
            if gap < most and cost < best:
                best, lane = cost, i
        if lane >= 0:
            return lane
    return lane


@njit(cache=True, nogil=True)
def start_on_route(
    pose: np.ndarray, route: np.ndarray, graph: LaneGraph, points: np.ndarray, offsets: np.ndarray
) -> tuple[int, int]:
    """(position in the route, lane) nearest to a pose (3,), pieces of lanes that run its way preferred; -1, -1: none.

    route (m,) roadblocks; the line of lane i is points[offsets[i]:offsets[i+1]].
    """
    position, lane, best = -1, -1, np.inf
    c, s = math.cos(pose[2]), math.sin(pose[2])
    for i in range(len(route)):
        for m in range(graph.member_offsets[route[i]], graph.member_offsets[route[i] + 1]):
            member = graph.members[m]
            for p in range(offsets[member], offsets[member + 1] - 1):
                ax, ay, bx, by = points[p, 0], points[p, 1], points[p + 1, 0], points[p + 1, 1]
                gap = point_segment_distance(pose[0], pose[1], ax, ay, bx, by)
                if (bx - ax) * c + (by - ay) * s <= 0.0:
                    gap += AGAINST
                if gap < best:
                    position, lane, best = i, member, gap
    return position, lane


@njit(cache=True, nogil=True)
def lane_of_vehicle(x: float, y: float, heading: float, road: RoadArrays) -> int:
    """The lane in which a vehicle stands or, inside an intersection, the connector, as in nuPlan; -1: neither."""
    lane = _best_aligned(x, y, heading, road, False)
    if lane < 0 and in_any_area(x, y, road.intersections):
        lane = _best_aligned(x, y, heading, road, True)
    return lane


@njit(cache=True, nogil=True)
def _best_aligned(x: float, y: float, heading: float, road: RoadArrays, connectors: bool) -> int:
    """Among the lanes (or the connectors) that hold a point, the one of the smallest heading difference; -1: none."""
    areas, lines = road.lanes, road.centre
    best, best_lane = np.inf, -1
    for i in range(len(areas.bounds)):
        if road.graph.is_connector[i] == connectors and point_in_area(
            x, y, i, areas.points, areas.ring_offsets, areas.offsets, areas.bounds
        ):
            if line_length(lines.points, lines.offsets[i], lines.offsets[i + 1]) == 0.0:
                continue
            difference = abs(nearest_pose(x, y, i, lines)[2] - heading)  # not wrapped: pi and -pi count as far apart
            if difference < best:
                best, best_lane = difference, i
    return best_lane


@njit(cache=True, nogil=True)
def nearest_pose(x: float, y: float, lane: int, lines: LineArrays) -> tuple[float, float, float, float]:
    """x, y, heading, arc length of the point of a centre line nearest to (x, y); heading from a chord of 0.5 m."""
    points, first, last = lines.points, lines.offsets[lane], lines.offsets[lane + 1]
    s = project_on_line(x, y, points, first, last)
    ax, ay = point_on_line(s, points, first, last)
    bx, by = point_on_line(s + HEADING_CHORD, points, first, last)
    if ax != bx or ay != by:
        return ax, ay, math.atan2(by - ay, bx - ax), s
    back = s - HEADING_CHORD  # at the end of the line; a negative length would count from its end
    if back < 0.0:
        back += line_length(points, first, last)
    bx, by = point_on_line(max(0.0, back), points, first, last)
    return ax, ay, math.atan2(ay - by, ax - bx), s
