"""Comfort of a driven proposal: the bounds of nuPlan's metric on the seconds behind and ahead."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numba import njit

from radp.metrics.comfort import ACCEL_WINDOW, BOUNDS, JERK_WINDOW, YAW_WINDOW
from radp.scenario import DT, Ego
from radp.scenario.vehicle import PACIFICA

AX, AY, HEADING = int(Ego.AX), int(Ego.AY), int(Ego.HEADING)
YAW_RATE, YAW_ACCEL = int(Ego.YAW_RATE), int(Ego.YAW_ACCEL)
CENTER = PACIFICA.rear_axle_to_center
MEMORY = JERK_WINDOW // 2 + ACCEL_WINDOW // 2  # past samples whose smoothed values the future can still change
RESERVE = 0.9  # share of the bounds that is used: the next plans go on from here and need some room
LON_ACCEL, JERK, LON_JERK, YAW_ACCEL_BOUND, YAW_RATE_BOUND = (
    (RESERVE * BOUNDS[name][0], RESERVE * BOUNDS[name][1])
    for name in ("lon_acceleration", "jerk", "lon_jerk", "yaw_acceleration", "yaw_rate")
)


@lru_cache(maxsize=32)
def filters(samples: int) -> np.ndarray:
    """(4, S, S): smoothing, smoothing + derivative (jerk), first and second derivative (yaw) of a series (S,).

    Zeros outside the windows are exact, so that the kernel can skip them.
    """
    from scipy.signal import savgol_filter  # late, as in radp.metrics.comfort

    unit = np.eye(samples)
    smooth = savgol_filter(unit, ACCEL_WINDOW, 2, axis=0)
    jerk = savgol_filter(smooth, JERK_WINDOW, 2, deriv=1, delta=DT, axis=0)
    yaw_rate = savgol_filter(unit, YAW_WINDOW, 2, deriv=1, delta=DT, axis=0)
    yaw_accel = savgol_filter(unit, YAW_WINDOW, 3, deriv=2, delta=DT, axis=0)
    stacked = np.stack((smooth, jerk, yaw_rate, yaw_accel))
    stacked[np.abs(stacked) < 1e-12] = 0.0
    return np.ascontiguousarray(stacked)


@njit(cache=True, nogil=True)
def is_comfortable(history: np.ndarray, states: np.ndarray, matrices: np.ndarray) -> bool:
    """history (H, 11) up to before now, states (S, 11) from now on; matrices: `filters` of H + S samples."""
    past, ahead = history.shape[0], states.shape[0]
    series = np.empty((3, past + ahead))  # longitudinal acceleration of the centre, magnitude at the rear, heading
    for i in range(past + ahead):
        state = history[i] if i < past else states[i - past]
        series[0, i] = state[AX] + CENTER * (state[YAW_RATE] * state[YAW_RATE] + state[YAW_ACCEL])
        series[1, i] = np.sqrt(state[AX] * state[AX] + state[AY] * state[AY])
        series[2, i] = state[HEADING]
        if i > 0:
            series[2, i] -= 2.0 * np.pi * np.round((series[2, i] - series[2, i - 1]) / (2.0 * np.pi))
    return (
        _within(matrices[0], series[0], LON_ACCEL, past)
        and _within(matrices[1], series[0], LON_JERK, past)
        and _within(matrices[1], series[1], JERK, past)
        and _within(matrices[2], series[2], YAW_RATE_BOUND, past)
        and _within(matrices[3], series[2], YAW_ACCEL_BOUND, past)
    )


@njit(cache=True, nogil=True)
def _within(matrix: np.ndarray, series: np.ndarray, bounds: tuple[float, float], past: int) -> bool:
    """Whether the filtered series stays within the bounds wherever the future has a say."""
    size = series.shape[0]
    for i in range(max(0, past - MEMORY), size):
        total = 0.0
        for k in range(size):
            if matrix[i, k] != 0.0:
                total += matrix[i, k] * series[k]
        if not bounds[0] < total < bounds[1]:
            return False
    return True
