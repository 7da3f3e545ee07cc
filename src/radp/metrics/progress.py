"""ego_progress_along_expert_route and ego_is_making_progress: how far the ego came along the expert's roadblocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from radp.geometry.areas import Rows
from radp.geometry.kernels import line_length, point_in_area, project_on_line
from radp.metrics.drive import Drive
from radp.metrics.metric import NO_VALUE, Metric
from radp.road.arrays import LaneGraph, RoadArrays

LEAST_PROGRESS = 2.0  # m: totals below this count as this much; a total below its negative scores 0
MAKING_PROGRESS = 0.2  # ratio


@dataclass(frozen=True)
class ProgressResult:
    """progress (the ratio) and making progress; series (S,) m per sample; totals of ego and expert [m]."""

    progress: Metric
    making_progress: Metric
    series: np.ndarray
    ego_total: float
    expert_total: float


def progress(drive: Drive, expert_center: np.ndarray, expert_route: Rows, road: RoadArrays) -> ProgressResult:
    """expert_center (N, 2) and its route. An expert outside all lanes asks for nothing: ratio 1."""
    series = np.zeros(len(drive.center))
    if len(road.graph.is_connector) == 0:
        return ProgressResult(NO_VALUE, NO_VALUE, series, 0.0, 0.0)
    blocks, lanes = roadblock_path(expert_route, road.graph)
    if len(blocks) == 0:
        return ProgressResult(Metric(1.0), Metric(1.0), series, 0.0, 0.0)
    series = progress_series(drive.center, blocks, lanes, road)
    ego_total = float(series.sum())
    expert_total = float(progress_series(expert_center, blocks, lanes, road).sum())
    ratio = min(1.0, max(ego_total, LEAST_PROGRESS) / max(expert_total, LEAST_PROGRESS))
    if ego_total < -LEAST_PROGRESS:
        ratio = 0.0
    return ProgressResult(
        Metric(ratio), Metric(float(ratio >= MAKING_PROGRESS)), series, ego_total, expert_total
    )  # fmt: skip


@njit(cache=True, nogil=True)
def roadblock_path(route: Rows, graph: LaneGraph) -> tuple[np.ndarray, np.ndarray]:
    """Roadblocks (K,) in the order of driving and one lane (K,) for each: the first lane with which it was entered."""
    start, count, members = route.start, route.size, route.members
    blocks, lanes, size = np.empty(len(start), np.int64), np.empty(len(start), np.int64), 0
    kept = -1  # the last row that was not a repetition
    for i in range(len(start)):
        if count[i] == 0 or (kept >= 0 and _share_member(route, kept, i)):
            continue
        kept = i
        lane = members[start[i]]
        if size == 0 or graph.roadblock[lane] != blocks[size - 1]:
            blocks[size], lanes[size] = graph.roadblock[lane], lane
            size += 1
    return blocks[:size], lanes[:size]


@njit(cache=True, nogil=True)
def _share_member(route: Rows, i: int, j: int) -> bool:
    start, count, members = route.start, route.size, route.members
    for a in range(start[i], start[i] + count[i]):
        for b in range(start[j], start[j] + count[j]):
            if members[a] == members[b]:
                return True
    return False


@njit(cache=True, nogil=True)
def _project(x: float, y: float, lane: int, points: np.ndarray, offsets: np.ndarray) -> float:
    return project_on_line(x, y, points, offsets[lane], offsets[lane + 1])


@njit(cache=True, nogil=True)
def progress_series(points: np.ndarray, blocks: np.ndarray, lanes: np.ndarray, road: RoadArrays) -> np.ndarray:
    """Metres won per point (S,) along the lanes of the roadblocks; 0 while outside of them."""
    line_points, line_offsets, areas = road.centre.points, road.centre.offsets, road.roadblocks
    vertices, ring_offsets, offsets, bounds = areas.points, areas.ring_offsets, areas.offsets, areas.bounds
    out = np.zeros(len(points))
    current = 0
    before = _project(points[0, 0], points[0, 1], lanes[0], line_points, line_offsets)
    for i in range(1, len(points)):
        x, y = points[i, 0], points[i, 1]
        for k in range(current, len(blocks)):
            if point_in_area(x, y, blocks[k], vertices, ring_offsets, offsets, bounds):
                s = _project(x, y, lanes[k], line_points, line_offsets)
                if k == current:
                    out[i] = s - before
                else:
                    out[i] = _jump(before, s, current, k, lanes, line_points, line_offsets)
                before, current = s, k
                break
    return out


@njit(cache=True, nogil=True)
def _jump(
    before: float, s: float, current: int, target: int, lanes: np.ndarray, points: np.ndarray, offsets: np.ndarray
) -> float:
    """Metres from arc length `before` on lane `current` to `s` on lane `target`, over all lanes in between."""
    lane = lanes[current]
    end = points[offsets[lane + 1] - 1]
    rest = line_length(points, offsets[lane], offsets[lane + 1]) - before
    total = rest + s - _project(end[0], end[1], lanes[target], points, offsets)
    for k in range(current + 1, target):
        previous_end = points[offsets[lanes[k - 1] + 1] - 1]
        next_start = points[offsets[lanes[k + 1]]]
        total += _project(next_start[0], next_start[1], lanes[k], points, offsets)
        total -= _project(previous_end[0], previous_end[1], lanes[k], points, offsets)
    return total
