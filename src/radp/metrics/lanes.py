"""Which lanes and connectors the ego is in: per sample for its centre (the route) and for its four corners.

A row of lanes per sample is held as `Rows`: start (S,), count (S,) and members, so that row i is
members[start[i] : start[i] + count[i]]; members are lane indices, and their order matters ("the first object").
"""

# ruff: noqa: SIM110 - kernels cannot hold the generators that any() and all() want

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from radp.geometry.kernels import distance_to_rings, point_in_area
from radp.metrics.drive import AreaArrays, MapArrays

NEAR_CONNECTOR = 5.0  # m: a previous connector this close is kept in favour of another one


class Rows(NamedTuple):
    """N rows of lane indices."""

    start: np.ndarray  # (N,) int64
    count: np.ndarray  # (N,) int64
    members: np.ndarray  # int64

    def row(self, i: int) -> np.ndarray:
        return self.members[self.start[i] : self.start[i] + self.count[i]]


@njit(cache=True, nogil=True)
def in_area(x: float, y: float, i: int, areas: AreaArrays) -> bool:
    """Whether a point lies strictly inside area i."""
    return point_in_area(x, y, i, areas.points, areas.ring_offsets, areas.offsets, areas.bounds)


@njit(cache=True, nogil=True)
def in_any_area(x: float, y: float, areas: AreaArrays) -> bool:
    """Whether a point lies strictly inside one of the areas."""
    for i in range(len(areas.offsets) - 1):
        if in_area(x, y, i, areas):
            return True
    return False


@njit(cache=True, nogil=True)
def distance_to_area(x: float, y: float, i: int, areas: AreaArrays) -> float:
    """Distance from a point to area i, 0 inside."""
    return distance_to_rings(x, y, areas.points, areas.ring_offsets, areas.offsets[i], areas.offsets[i + 1])


@njit(cache=True, nogil=True)
def search(x: float, y: float, road: MapArrays, found: np.ndarray) -> int:
    """Write the lane at a point, or else all connectors there in map order, into `found`; return how many.

    Lanes do not overlap by nuPlan's contract; on a map where they do, the first one is taken.
    """
    count = 0
    for lane in range(len(road.is_connector)):
        if road.is_connector[lane]:
            if in_area(x, y, lane, road.lanes):
                found[count] = lane
                count += 1
        elif in_area(x, y, lane, road.lanes):
            found[0] = lane
            return 1
    return count


@njit(cache=True, nogil=True)
def follow(x: float, y: float, candidates: np.ndarray, road: MapArrays, found: np.ndarray) -> int:
    """Write the candidates that contain a point into `found`; failing that, the successors of a single candidate."""
    count = 0
    for lane in candidates:
        if in_area(x, y, lane, road.lanes):
            found[count] = lane
            count += 1
    if count == 0 and len(candidates) == 1:
        only = candidates[0]
        for k in range(road.after_offsets[only], road.after_offsets[only + 1]):
            if in_area(x, y, road.after[k], road.lanes):
                found[count] = road.after[k]
                count += 1
    return count


@njit(cache=True, nogil=True)
def _room_for(members: np.ndarray, used: int, more: int) -> np.ndarray:
    """`members`, grown where it cannot hold `more` entries beyond the first `used`."""
    if used + more <= len(members):
        return members
    grown = np.empty(2 * (used + more), np.int64)
    grown[:used] = members[:used]
    return grown


@njit(cache=True, nogil=True)
def route_of(points: np.ndarray, road: MapArrays) -> Rows:
    """The lanes or connectors of each point (S, 2), after the backward pass."""
    samples, lanes = len(points), len(road.is_connector)
    start, count = np.zeros(samples, np.int64), np.zeros(samples, np.int64)
    members, used = np.empty(2 * samples + lanes, np.int64), 0
    found = np.empty(lanes + 1, np.int64)
    for i in range(samples):
        x, y = points[i, 0], points[i, 1]
        previous = members[:0] if i == 0 else members[start[i - 1] : start[i - 1] + count[i - 1]]
        size = follow(x, y, previous, road, found) if len(previous) else 0
        if size == 0:
            size = search(x, y, road, found)
            if i > 1 and len(previous) and road.is_connector[previous[0]]:
                elsewhere = size > 0 and road.is_connector[found[0]]
                if elsewhere or (size == 0 and in_any_area(x, y, road.intersections)):
                    size = _keep_near(x, y, previous, road, found, size)
        members = _room_for(members, used, size)
        members[used : used + size] = found[:size]
        start[i], count[i] = used, size
        used += size
    _reduce_backwards(start, count, members, road)
    return Rows(start, count, members)


@njit(cache=True, nogil=True)
def _keep_near(x: float, y: float, previous: np.ndarray, road: MapArrays, found: np.ndarray, size: int) -> int:
    """Replace `found` by the previous connectors near the point, if there are any."""
    near = 0
    for lane in previous:
        if distance_to_area(x, y, lane, road.lanes) < NEAR_CONNECTOR:
            found[near] = lane
            near += 1
    return near if near else size


@njit(cache=True, nogil=True)
def _reduce_backwards(start: np.ndarray, count: np.ndarray, members: np.ndarray, road: MapArrays) -> None:
    """Narrow rows of several connectors by the row after them, last row first.

    Both rules look at the row as it was: a smaller next row within it replaces it (an empty one too), and where the
    next row is a lane, the row's predecessors of that lane replace it.
    """
    for i in range(len(start) - 2, -1, -1):
        size, following = count[i], count[i + 1]
        if size <= 1:
            continue
        row = members[start[i] : start[i] + size]
        then = members[start[i + 1] : start[i + 1] + following]
        if following > 0 and not road.is_connector[then[0]]:
            kept = 0
            for k in range(size):
                if _links_to(row[k], then[0], road):
                    row[kept] = row[k]  # earlier entries were read already
                    kept += 1
            if kept:
                count[i] = kept
                continue
        if following < size and _contains_all(row, then):
            row[:following] = then
            count[i] = following


@njit(cache=True, nogil=True)
def _links_to(lane: int, target: int, road: MapArrays) -> bool:
    """Whether `lane` is a predecessor of `target`."""
    for k in range(road.before_offsets[target], road.before_offsets[target + 1]):
        if road.before[k] == lane:
            return True
    return False


@njit(cache=True, nogil=True)
def _contains(row: np.ndarray, lane: int) -> bool:
    for other in row:
        if other == lane:
            return True
    return False


@njit(cache=True, nogil=True)
def _contains_all(row: np.ndarray, others: np.ndarray) -> bool:
    for lane in others:
        if not _contains(row, lane):
            return False
    return True


@njit(cache=True, nogil=True)
def corner_lanes(corners: np.ndarray, road: MapArrays) -> tuple[np.ndarray, np.ndarray]:
    """Whether each corner is in a lane (S, 4), and the set C (S,): samples wholly in one lane or in connected ones."""
    samples, lanes = len(corners), len(road.is_connector)
    has_lane, connected = np.zeros((samples, 4), np.bool_), np.zeros(samples, np.bool_)
    rows, counts = np.empty((4, lanes + 1), np.int64), np.zeros(4, np.int64)
    candidates, following = np.empty(lanes + 1, np.int64), np.empty(lanes + 1, np.int64)
    known = 0
    for i in range(samples):
        upcoming = 0
        for c in range(4):
            x, y = corners[i, c, 0], corners[i, c, 1]
            row = rows[c]
            size = follow(x, y, candidates[:known], road, row) if known else 0
            if size == 0:
                size = search(x, y, road, row)
                if i == 1:  # nuPlan lets newly found lanes join the candidates at once in this sample only
                    known = _join(candidates, known, row[:size])
            upcoming = _join(following, upcoming, row[:size])
            counts[c] = size
            has_lane[i, c] = size > 0
        connected[i] = _common_or_connected(rows, counts, road)
        candidates[:upcoming] = following[:upcoming]
        known = upcoming
    return has_lane, connected


@njit(cache=True, nogil=True)
def _join(group: np.ndarray, size: int, more: np.ndarray) -> int:
    """Add the lanes that are not in group[:size] yet; return the new size."""
    for lane in more:
        if not _contains(group[:size], lane):
            group[size] = lane
            size += 1
    return size


@njit(cache=True, nogil=True)
def _is_or_follows(lane: int, row: np.ndarray, road: MapArrays) -> bool:
    """Whether `lane` is in the row or a successor of one in it."""
    for other in row:
        if other == lane:
            return True
        for k in range(road.after_offsets[other], road.after_offsets[other + 1]):
            if road.after[k] == lane:
                return True
    return False


@njit(cache=True, nogil=True)
def _is_or_precedes(lane: int, row: np.ndarray, road: MapArrays) -> bool:
    """Whether `lane` is in the row or a predecessor of one in it."""
    for other in row:
        if other == lane or _links_to(lane, other, road):
            return True
    return False


@njit(cache=True, nogil=True)
def _common_or_connected(rows: np.ndarray, counts: np.ndarray, road: MapArrays) -> bool:
    """Whether the four corners share a lane, or stand in a chain of connected ones."""
    for c in range(4):
        if counts[c] == 0:
            return False
    front_left, rear_left = rows[0, : counts[0]], rows[1, : counts[1]]
    rear_right, front_right = rows[2, : counts[2]], rows[3, : counts[3]]
    for lane in front_left:
        if _contains(rear_left, lane) and _contains(rear_right, lane) and _contains(front_right, lane):
            return True
    rear = False
    for lane in rear_left:
        rear = rear or _is_or_follows(lane, rear_right, road)
    for lane in rear_right:
        rear = rear or _is_or_follows(lane, rear_left, road)
    if not rear:
        return False
    # A lane that is (or precedes) a front corner's and is (or follows) that of the opposite rear corner, on both sides.
    for lane in front_left:
        if _spans(lane, rows, counts, road):
            return True
        for k in range(road.before_offsets[lane], road.before_offsets[lane + 1]):
            if _spans(road.before[k], rows, counts, road):
                return True
    return False


@njit(cache=True, nogil=True)
def _spans(lane: int, rows: np.ndarray, counts: np.ndarray, road: MapArrays) -> bool:
    """Whether a lane at (or before) the front left corner also meets the other three corners."""
    return (
        _is_or_follows(lane, rows[2, : counts[2]], road)
        and _is_or_precedes(lane, rows[3, : counts[3]], road)
        and _is_or_follows(lane, rows[1, : counts[1]], road)
    )
