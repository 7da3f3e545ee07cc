"""Which lanes and connectors the ego is in: per sample for its centre (the route) and for its four corners.

Geometry comes first, for all points at once (`areas_at`); what follows is logic on short rows of lane indices, whose
order matters ("the first object"). Kernels are given single arrays, not tuples of them, where they are called often:
numba counts references for every array of a tuple at every call.
"""

# ruff: noqa: SIM110 - kernels cannot hold the generators that any() and all() want

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from radp.geometry.areas import Rows, areas_at, distance_to_area, in_any_area, room_for
from radp.metrics.drive import HEADING, Drive
from radp.road.arrays import LaneGraph, RoadArrays

NEAR_CONNECTOR = 5.0  # m: a previous connector this close is kept in favour of another one
BODY = 5  # points of the ego per sample: its centre and its corners


class Places(NamedTuple):
    """Which lane areas the points of a drive are in: centre (S rows), corners (S * 4), expert's centre (N);
    crossing (S,) bool: the rear axle is in an intersection."""

    center: Rows
    corners: Rows
    expert: Rows
    crossing: np.ndarray


def locate(drive: Drive, expert_center: np.ndarray, road: RoadArrays) -> Places:
    """Look up all points of a drive in the map."""
    points = np.concatenate([drive.center[:, None], drive.corners], axis=1).reshape(-1, 2)
    body = areas_at(points, road.lanes, 8 * BODY)
    start, size = body.start.reshape(-1, BODY), body.size.reshape(-1, BODY)
    return Places(
        center=Rows(start[:, 0].copy(), size[:, 0].copy(), body.members),
        corners=Rows(start[:, 1:].ravel(), size[:, 1:].ravel(), body.members),
        expert=areas_at(expert_center, road.lanes),
        crossing=areas_at(np.ascontiguousarray(drive.ego[:, :HEADING]), road.intersections).size > 0,
    )


@njit(cache=True, nogil=True)
def search(inside: np.ndarray, is_connector: np.ndarray, found: np.ndarray) -> int:
    """Write the lane among the areas `inside` which a point is, or else all its connectors, into `found`; how many.

    Lanes do not overlap by nuPlan's contract; on a map where they do, the first one is taken.
    """
    for k in range(len(inside)):
        if not is_connector[inside[k]]:
            found[0] = inside[k]
            return 1
    found[: len(inside)] = inside
    return len(inside)


@njit(cache=True, nogil=True)
def follow(
    inside: np.ndarray, candidates: np.ndarray, after: np.ndarray, after_offsets: np.ndarray, found: np.ndarray
) -> int:
    """Write the candidates that contain a point into `found`; failing that, the successors of a single candidate."""
    count = 0
    for k in range(len(candidates)):
        if _contains(inside, candidates[k]):
            found[count] = candidates[k]
            count += 1
    if count == 0 and len(candidates) == 1:
        for k in range(after_offsets[candidates[0]], after_offsets[candidates[0] + 1]):
            if _contains(inside, after[k]):
                found[count] = after[k]
                count += 1
    return count


@njit(cache=True, nogil=True)
def route_of(points: np.ndarray, inside: Rows, road: RoadArrays) -> Rows:
    """The lanes or connectors of each point (S, 2), after the backward pass; `inside`: the areas it is in."""
    samples, graph = len(points), road.graph
    is_connector, after, after_offsets = graph.is_connector, graph.successors, graph.successor_offsets
    start, size = np.zeros(samples, np.int64), np.zeros(samples, np.int64)
    members, used = np.empty(2 * samples + 16, np.int64), 0
    found = np.empty(len(is_connector) + 1, np.int64)
    for i in range(samples):
        here = inside.members[inside.start[i] : inside.start[i] + inside.size[i]]
        previous = members[:0] if i == 0 else members[start[i - 1] : start[i - 1] + size[i - 1]]
        count = follow(here, previous, after, after_offsets, found) if len(previous) else 0
        if count == 0:
            count = search(here, is_connector, found)
            if i > 1 and len(previous) and is_connector[previous[0]] and (count == 0 or is_connector[found[0]]):
                count = _keep_near(points[i, 0], points[i, 1], previous, road, found, count)
        members = room_for(members, used, count)
        members[used : used + count] = found[:count]
        start[i], size[i] = used, count
        used += count
    _reduce_backwards(start, size, members, graph)
    return Rows(start, size, members)


@njit(cache=True, nogil=True)
def _keep_near(x: float, y: float, previous: np.ndarray, road: RoadArrays, found: np.ndarray, count: int) -> int:
    """Put previous connectors near the point, if any, in place of what was found (if nothing: in a crossing only)."""
    if count == 0 and not in_any_area(x, y, road.intersections):
        return 0
    near = 0
    for k in range(len(previous)):
        if distance_to_area(x, y, previous[k], road.lanes) < NEAR_CONNECTOR:
            found[near] = previous[k]
            near += 1
    return near if near else count


@njit(cache=True, nogil=True)
def _reduce_backwards(start: np.ndarray, size: np.ndarray, members: np.ndarray, graph: LaneGraph) -> None:
    """Narrow rows of several connectors by the row after them, last row first.

    Both rules look at the row as it was: a smaller next row within it replaces it (an empty one too), and where the
    next row is a lane, the row's predecessors of that lane replace it.
    """
    for i in range(len(start) - 2, -1, -1):
        if size[i] <= 1:
            continue
        row = members[start[i] : start[i] + size[i]]
        then = members[start[i + 1] : start[i + 1] + size[i + 1]]
        if len(then) and not graph.is_connector[then[0]]:
            kept = 0
            for k in range(len(row)):
                if _links(row[k], then[0], graph.predecessors, graph.predecessor_offsets):
                    row[kept] = row[k]  # earlier entries were read already
                    kept += 1
            if kept:
                size[i] = kept
                continue
        if len(then) < len(row) and _contains_all(row, then):
            row[: len(then)] = then
            size[i] = len(then)


@njit(cache=True, nogil=True)
def _links(lane: int, target: int, links: np.ndarray, offsets: np.ndarray) -> bool:
    """Whether `lane` is among the links of `target`."""
    for k in range(offsets[target], offsets[target + 1]):
        if links[k] == lane:
            return True
    return False


@njit(cache=True, nogil=True)
def _contains(row: np.ndarray, lane: int) -> bool:
    for k in range(len(row)):
        if row[k] == lane:
            return True
    return False


@njit(cache=True, nogil=True)
def _contains_all(row: np.ndarray, others: np.ndarray) -> bool:
    for k in range(len(others)):
        if not _contains(row, others[k]):
            return False
    return True


@njit(cache=True, nogil=True)
def corner_lanes(inside: Rows, graph: LaneGraph) -> tuple[np.ndarray, np.ndarray]:
    """Whether each corner is in a lane (S, 4), and the set C (S,): samples wholly in one lane or in connected ones.

    inside: S * 4 rows, the lane areas that each corner is in.
    """
    samples, lanes = len(inside.start) // 4, len(graph.is_connector)
    is_connector, after, after_offsets = graph.is_connector, graph.successors, graph.successor_offsets
    has_lane, connected = np.zeros((samples, 4), np.bool_), np.zeros(samples, np.bool_)
    rows, counts = np.empty((4, lanes + 1), np.int64), np.zeros(4, np.int64)
    candidates, following = np.empty(lanes + 1, np.int64), np.empty(lanes + 1, np.int64)
    known = 0
    for i in range(samples):
        upcoming = 0
        for c in range(4):
            begin = inside.start[4 * i + c]
            here = inside.members[begin : begin + inside.size[4 * i + c]]
            count = follow(here, candidates[:known], after, after_offsets, rows[c]) if known else 0
            if count == 0:
                count = search(here, is_connector, rows[c])
                if i == 1:  # nuPlan lets newly found lanes join the candidates at once in this sample only
                    known = _join(candidates, known, rows[c], count)
            upcoming = _join(following, upcoming, rows[c], count)
            counts[c] = count
            has_lane[i, c] = count > 0
        connected[i] = counts.min() > 0 and _are_chained(rows, counts, graph)
        candidates[:upcoming] = following[:upcoming]
        known = upcoming
    return has_lane, connected


@njit(cache=True, nogil=True)
def _join(group: np.ndarray, size: int, more: np.ndarray, count: int) -> int:
    """Add more[:count] to group[:size] where it is not in it yet; return the new size."""
    for k in range(count):
        if not _contains(group[:size], more[k]):
            group[size] = more[k]
            size += 1
    return size


@njit(cache=True, nogil=True)
def _in_or_linked(lane: int, row: np.ndarray, links: np.ndarray, offsets: np.ndarray) -> bool:
    """Whether `lane` is in the row or among the links of one in it."""
    for k in range(len(row)):
        if row[k] == lane or _links(lane, row[k], links, offsets):
            return True
    return False


@njit(cache=True, nogil=True)
def _are_chained(rows: np.ndarray, counts: np.ndarray, graph: LaneGraph) -> bool:
    """Whether the four corners stand in one lane, or in connected ones of which one connects them all."""
    front_left, rear_left = rows[0, : counts[0]], rows[1, : counts[1]]
    rear_right, front_right = rows[2, : counts[2]], rows[3, : counts[3]]
    rear = False
    for lane in rear_left:
        rear = rear or _in_or_linked(lane, rear_right, graph.successors, graph.successor_offsets)
    for lane in rear_right:
        rear = rear or _in_or_linked(lane, rear_left, graph.successors, graph.successor_offsets)
    if not rear:
        return False
    for lane in front_left:
        if _spans(lane, rear_left, rear_right, front_right, graph):
            return True
        for k in range(graph.predecessor_offsets[lane], graph.predecessor_offsets[lane + 1]):
            if _spans(graph.predecessors[k], rear_left, rear_right, front_right, graph):
                return True
    return False


@njit(cache=True, nogil=True)
def _spans(lane: int, rear_left: np.ndarray, rear_right: np.ndarray, front_right: np.ndarray, graph: LaneGraph) -> bool:
    """Whether a lane at (or before) the front left corner is also at (or before) the front right one, and at (or after)
    both rear ones."""
    return (
        _in_or_linked(lane, rear_right, graph.successors, graph.successor_offsets)
        and _in_or_linked(lane, front_right, graph.predecessors, graph.predecessor_offsets)
        and _in_or_linked(lane, rear_left, graph.successors, graph.successor_offsets)
    )
