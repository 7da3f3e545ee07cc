"""The route as one line in driving order, from a pose on, with the fewest lane changes."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from radp.geometry.kernels import project_on_line
from radp.road.arrays import LaneGraph
from radp.road.lane_lines import LaneLines, lane_line, project_on_lane, straight_on
from radp.road.places import start_on_route

MOST_STRIPS = 64  # lanes that the line may run through


@njit(cache=True, nogil=True)
def route_line(
    graph: LaneGraph, lines: LaneLines, route: np.ndarray, pose: np.ndarray, spacing: float, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """(n <= count, 6) centre, left, right every `spacing` metres from a pose (3,) on, and the lane (n,) of each point.

    The line follows the lanes of the route (m,), with the fewest lane changes, and goes straight on where the route
    ends, so that its length does not tell where the drive ends; points beyond the map are missing.
    """
    entry, exit_ = _strips(graph, lines, route, pose, spacing * (count - 1))
    return _sample(lines, entry, exit_, pose, spacing, count)


@njit(cache=True, nogil=True)
def _strips(
    graph: LaneGraph, lines: LaneLines, route: np.ndarray, pose: np.ndarray, length: float
) -> tuple[np.ndarray, np.ndarray]:
    """The strips to drive from the ego on: entry and exit lane of each (they differ where the lane is changed)."""
    entry, exit_, count = np.empty(MOST_STRIPS, np.int64), np.empty(MOST_STRIPS, np.int64), 0
    start, lane = start_on_route(pose, route, graph, lines.points, lines.offsets)
    if start < 0:
        return entry[:0], exit_[:0]
    end = min(len(route), start + MOST_STRIPS)
    cost, linked, place = _lane_changes(graph, route, start, end)
    driven = -project_on_lane(lines, lane, pose)
    for i in range(start, end):
        way = (np.inf, -1, -1)
        if linked[i]:
            way = _way_on(graph, route, i, lane, cost, place)
        entry[count], exit_[count] = lane, (lane if way[2] < 0 else way[1])
        driven += lines.length[exit_[count]]
        count += 1
        lane = way[2]
        if lane < 0 or driven > length:
            break
    while count < MOST_STRIPS and driven <= length:
        lane = straight_on(graph, lines, exit_[count - 1])
        if lane < 0:
            break
        entry[count], exit_[count] = lane, lane
        driven += lines.length[lane]
        count += 1
    return entry[:count], exit_[:count]


@njit(cache=True, nogil=True)
def _lane_changes(
    graph: LaneGraph, route: np.ndarray, start: int, end: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For route[start:end]: cost (end, widest) = lane changes from each lane to the route's end, or to where it breaks;
    linked (end,) = whether a block leads into the next one; place (L,) = a lane's column."""
    widest = 1
    for i in range(start, end):
        widest = max(widest, graph.member_offsets[route[i] + 1] - graph.member_offsets[route[i]])
    place = np.empty(len(graph.roadblock), np.int64)
    cost, linked = np.zeros((end, widest)), np.zeros(end, np.bool_)
    for i in range(end - 1, start - 1, -1):
        first, last = graph.member_offsets[route[i]], graph.member_offsets[route[i] + 1]
        for m in range(first, last):
            place[graph.members[m]] = m - first
        if i + 1 == end:
            continue
        for m in range(first, last):
            cost[i, m - first] = _way_on(graph, route, i, graph.members[m], cost, place)[0]
            linked[i] = linked[i] or cost[i, m - first] < np.inf
        if not linked[i]:
            cost[i] = 0.0
    return cost, linked, place


@njit(cache=True, nogil=True)
def _way_on(
    graph: LaneGraph, route: np.ndarray, position: int, lane: int, cost: np.ndarray, place: np.ndarray
) -> tuple[float, int, int]:
    """(lane changes, exit lane, next lane) of the best way from a lane of route[position] into route[position + 1]."""
    best, best_exit, best_next = np.inf, -1, -1
    for side in range(2):
        at, changes = lane, 0
        while at >= 0 and graph.roadblock[at] == route[position]:
            for k in range(graph.successor_offsets[at], graph.successor_offsets[at + 1]):
                follower = graph.successors[k]
                if graph.roadblock[follower] == route[position + 1]:
                    price = changes + cost[position + 1, place[follower]]
                    if price < best:
                        best, best_exit, best_next = price, at, follower
            at = graph.neighbors[at, side]
            changes += 1
    return best, best_exit, best_next


@njit(cache=True, nogil=True)
def _strip_line(lines: LaneLines, entry: int, exit_: int) -> np.ndarray:
    """(n, 6) points along a strip; where the lane is changed, the line crosses over from begin to end."""
    line = lane_line(lines, entry)
    if entry == exit_:
        return line
    other, crossed = lane_line(lines, exit_), np.empty(line.shape)
    for p in range(len(line)):
        w = p / (len(line) - 1)
        q = min(int(w * (len(other) - 1)), len(other) - 2)
        t = w * (len(other) - 1) - q
        crossed[p] = (1.0 - w) * line[p] + w * ((1.0 - t) * other[q] + t * other[q + 1])
    return crossed


@njit(cache=True, nogil=True)
def _sample(
    lines: LaneLines, entry: np.ndarray, exit_: np.ndarray, pose: np.ndarray, spacing: float, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """(n <= count, 6) centre, left, right every `spacing` metres from the ego on, and the lane (n,) of each point."""
    line, lanes, found = np.empty((count, 6)), np.empty(count, np.int64), 0
    target = 0.0  # arc length of the next point, counted from the begin of the strip
    for k in range(len(entry)):
        strip = _strip_line(lines, entry[k], exit_[k])
        if k == 0:
            target = project_on_line(pose[0], pose[1], strip, 0, len(strip))
        passed, p = 0.0, 0
        while found < count and p < len(strip) - 1:
            length = math.hypot(strip[p + 1, 0] - strip[p, 0], strip[p + 1, 1] - strip[p, 1])
            if target <= passed + length and length > 0.0:
                w = max(0.0, (target - passed) / length)
                line[found] = strip[p] + w * (strip[p + 1] - strip[p])
                lanes[found] = exit_[k] if 2 * p >= len(strip) else entry[k]
                found += 1
                target += spacing
            else:
                passed += length
                p += 1
        target -= passed
    return line[:found], lanes[:found]
