"""ego_is_comfortable: six smoothed series, each strictly within its bounds at every sample."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numba import njit

from radp.metrics.drive import REAR_TO_CENTER, Drive, mean_step
from radp.metrics.metric import NO_VALUE, Metric
from radp.scenario import Ego

BOUNDS = {
    "lon_acceleration": (-4.05, 2.40),  # m/s2
    "lat_acceleration": (-4.89, 4.89),
    "jerk": (-8.37, 8.37),  # m/s3
    "lon_jerk": (-4.13, 4.13),
    "yaw_acceleration": (-1.93, 1.93),  # rad/s2
    "yaw_rate": (-0.95, 0.95),  # rad/s
}
ACCEL_WINDOW, JERK_WINDOW, YAW_WINDOW = 8, 15, 5  # samples; the even one evaluates half a sample off its centre
FEWEST_SAMPLES = 4  # the cubic fit of the yaw acceleration needs as many
DECIMALS = 8


@dataclass(frozen=True)
class ComfortResult:
    """metric; flags: series name -> within its bounds; series: name -> (S,)."""

    metric: Metric
    flags: dict[str, bool]
    series: dict[str, np.ndarray]


def comfort(drive: Drive) -> ComfortResult:
    """No value for a drive of fewer than 4 samples, which cannot be smoothed."""
    if len(drive.time_us) < FEWEST_SAMPLES:
        return ComfortResult(NO_VALUE, {}, {})
    series = comfort_series(drive.ego, mean_step(drive.time_us))
    flags = {name: bool(low < series[name].min() and series[name].max() < high) for name, (low, high) in BOUNDS.items()}
    return ComfortResult(Metric(float(all(flags.values()))), flags, series)


def comfort_series(ego: np.ndarray, step: float) -> dict[str, np.ndarray]:
    """The six series (S,) of ego states (S, 11) sampled every `step` seconds on average.

    nuPlan takes the acceleration at the box centre as a_x + d (w^2 + alpha), a_y, with the centripetal part reversed
    and the angular acceleration acting along x; published scores contain this, so it stays. The magnitude is that of
    the rear axle.
    """
    turning = ego[:, Ego.YAW_RATE] ** 2 + ego[:, Ego.YAW_ACCEL]
    at_center = ego[:, Ego.AX] + REAR_TO_CENTER * turning
    magnitude = np.hypot(ego[:, Ego.AX], ego[:, Ego.AY])
    accel = smoothed(np.stack([at_center, ego[:, Ego.AY], magnitude]), ACCEL_WINDOW, 2, 0, step)
    lon_jerk, jerk = smoothed(accel[::2], JERK_WINDOW, 2, 1, step)
    heading = _unwrap(ego[:, Ego.HEADING])[None]
    return {
        "lon_acceleration": accel[0],
        "lat_acceleration": accel[1],
        "jerk": jerk,
        "lon_jerk": lon_jerk,
        "yaw_acceleration": smoothed(heading, YAW_WINDOW, 3, 2, step)[0],
        "yaw_rate": smoothed(heading, YAW_WINDOW, 2, 1, step)[0],
    }


def _unwrap(heading: np.ndarray) -> np.ndarray:
    """Headings without jumps of 2 pi: subtract 2 pi times the running sum of round(difference / 2 pi)."""
    turns = np.zeros(len(heading))
    np.cumsum(np.round(np.diff(heading) / (2.0 * np.pi)), out=turns[1:])
    return heading - 2.0 * np.pi * turns


def smoothed(series: np.ndarray, window: int, order: int, derivative: int, step: float) -> np.ndarray:
    """Savitzky-Golay filter as scipy's (mode "interp") of series (K, S), rounded to 8 decimals.

    The window shrinks to the length of the series.
    """
    samples = series.shape[1]
    window = min(window, samples)
    stencil = savgol_stencil(window, order, derivative, min(samples, 2 * window))
    out = _apply_stencil(np.ascontiguousarray(series), stencil, window)
    if derivative:
        out /= step**derivative
    return np.round(out, DECIMALS, out=out)


@lru_cache(maxsize=64)
def savgol_stencil(window: int, order: int, derivative: int, rows: int) -> np.ndarray:
    """The filter as a matrix (rows, rows) on a short series: its first rows, its middle row and its last rows are those
    of a series of any length."""
    from scipy.signal import savgol_filter  # loads all of scipy.stats, half as long as torch

    return np.ascontiguousarray(savgol_filter(np.eye(rows), window, order, deriv=derivative, axis=0))


@njit(cache=True, nogil=True)
def _apply_stencil(series: np.ndarray, stencil: np.ndarray, window: int) -> np.ndarray:
    """Edges are fitted to the first and last samples; in between the middle row slides along, 2 half + 1 wide."""
    samples, rows, half = series.shape[1], len(stencil), window // 2
    out = np.empty_like(series)
    for i in range(samples):
        row, first, width = half, i - half, 2 * half + 1
        if i < half or samples == rows:
            row, first, width = i, 0, rows
        elif i >= samples - half:
            row, first, width = i - samples + rows, samples - rows, rows
        for n in range(len(series)):
            total = 0.0
            for k in range(width):
                total += stencil[row, k] * series[n, first + k]
            out[n, i] = total
    return out
