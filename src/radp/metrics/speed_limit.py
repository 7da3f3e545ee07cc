"""speed_limit_compliance: how much and how long the ego was faster than allowed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from radp.geometry.areas import Rows
from radp.metrics.drive import Drive, mean_step
from radp.metrics.metric import NO_VALUE, Metric
from radp.road.arrays import LaneGraph, RoadArrays

WORST_OVERSPEED = 2.23  # m/s over the limit during the whole drive scores 0


@dataclass(frozen=True)
class SpeedLimitResult:
    """metric; over (S,) m/s above the limit, 0 where the limit is kept or unknown; limit (S,) m/s, 0 = unknown."""

    metric: Metric
    over: np.ndarray
    limit: np.ndarray


def speed_limit(drive: Drive, route: Rows, road: RoadArrays) -> SpeedLimitResult:
    """1 - mean overspeed / 2.23 m/s, not below 0. No value on a map that knows no limit at all."""
    limit = limit_series(route, road.graph)
    over = np.where(limit > 0.0, np.maximum(drive.speed - limit, 0.0), 0.0)
    if not road.graph.limit.any():
        return SpeedLimitResult(NO_VALUE, over, limit)
    duration = float(drive.time_us[-1] - drive.time_us[0]) * 1e-6
    value = 1.0
    if over.any() and duration > 0.0:
        value = max(0.0, 1.0 - float(over.sum()) * mean_step(drive.time_us) / (WORST_OVERSPEED * duration))
    return SpeedLimitResult(Metric(value), over, limit)


@njit(cache=True, nogil=True)
def limit_series(route: Rows, graph: LaneGraph) -> np.ndarray:
    """Limit per sample (S,), 0 where unknown.

    A lane has its own limit; for connectors it is the largest limit of all lanes before and after all of them, and
    unknown as soon as one of those is.
    """
    start, count, members = route.start, route.size, route.members
    out = np.zeros(len(start))
    for i in range(len(start)):
        if count[i] == 0:
            continue
        first = members[start[i]]
        if not graph.is_connector[first]:
            out[i] = graph.limit[first]
            continue
        best, known = 0.0, True
        for k in range(start[i], start[i] + count[i]):
            lane = members[k]
            for j in range(graph.predecessor_offsets[lane], graph.predecessor_offsets[lane + 1]):
                limit = graph.limit[graph.predecessors[j]]
                best, known = max(best, limit), known and limit != 0.0
            for j in range(graph.successor_offsets[lane], graph.successor_offsets[lane + 1]):
                limit = graph.limit[graph.successors[j]]
                best, known = max(best, limit), known and limit != 0.0
        if known:
            out[i] = best
    return out
