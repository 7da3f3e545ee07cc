"""driving_direction_compliance: how far the ego went against its lane within one second."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from radp.geometry.areas import Rows
from radp.geometry.kernels import project_on_line
from radp.metrics.drive import Drive, mean_step
from radp.metrics.metric import NO_VALUE, Metric
from radp.road.arrays import LineArrays, RoadArrays

COMPLIANT = 2.0  # m backwards within the window: below this the score is 1
VIOLATED = 6.0  # m: from here on the score is 0, between them 0.5
WINDOW_US = 1e6


@dataclass(frozen=True)
class DirectionResult:
    """metric; series (S,) m: movement along the lane over the last second."""

    metric: Metric
    series: np.ndarray


def driving_direction(drive: Drive, route: Rows, road: RoadArrays) -> DirectionResult:
    """No value on a map without lanes."""
    step_us = mean_step(drive.time_us) * 1e6
    window = int(WINDOW_US / step_us) if step_us > 0.0 else 0
    series = direction_series(drive.center, route, road.centre, window)
    if len(road.graph.is_connector) == 0:
        return DirectionResult(NO_VALUE, series)
    backwards = abs(float(series.min()))
    value = 1.0 if backwards < COMPLIANT else 0.5 if backwards < VIOLATED else 0.0
    return DirectionResult(Metric(value), series)


@njit(cache=True, nogil=True)
def direction_series(center: np.ndarray, route: Rows, lines: LineArrays, window: int) -> np.ndarray:
    """Sum over samples i-window..i of the change of arc length on the first lane of the row, (S,).

    The sample that enters a lane and the one after it count 0; samples outside all lanes do not reset, so back in the
    same lane the whole jump counts. An arc length of exactly 0 counts 0 as well.
    """
    samples, points, offsets = len(center), lines.points, lines.offsets
    moved = np.zeros(samples)
    lane = route.members[route.start[0]] if samples and route.size[0] else -1
    before, is_set = 0.0, False
    for i in range(samples):
        if route.size[i] == 0:
            continue
        first = route.members[route.start[i]]
        if first != lane:
            lane, is_set = first, False
            continue
        s = project_on_line(center[i, 0], center[i, 1], points, offsets[lane], offsets[lane + 1])
        if is_set and s != 0.0:
            moved[i] = s - before
        before, is_set = s, True
    series = np.empty(samples)
    for i in range(samples):
        total = 0.0
        for k in range(max(0, i - window), i + 1):
            total += moved[k]
        series[i] = total
    return series
