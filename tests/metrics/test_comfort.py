"""Comfort: the filter against scipy's, and each bound on both sides."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import savgol_filter

from radp.metrics.comfort import BOUNDS, smoothed
from radp.metrics.score import evaluate
from radp.scenario import Ego
from tests.made_roads import box_lane, patches
from tests.metrics.made_drives import drive_on

ROAD = patches([box_lane("A", (-500, 500, -200, 200))])


@pytest.mark.parametrize(("window", "order", "derivative"), [(8, 2, 0), (15, 2, 1), (5, 3, 2), (5, 2, 1)])
@pytest.mark.parametrize("samples", [4, 5, 6, 7, 8, 9, 10, 14, 15, 16, 17, 29, 30, 31, 32, 149, 150, 400])
def test_filter_equals_scipy(window: int, order: int, derivative: int, samples: int) -> None:
    series = np.random.default_rng(samples).normal(size=samples)
    expected = savgol_filter(series, min(window, samples), order, deriv=derivative, delta=0.0998)
    np.testing.assert_allclose(
        smoothed(series[None], window, order, derivative, 0.0998)[0], expected, rtol=1e-9, atol=1e-8
    )


def flags(columns: dict[Ego, float | np.ndarray], samples: int = 60) -> dict[str, bool]:
    rollout = drive_on(ROAD, np.zeros((samples, 3)), speed=1.0)
    ego = rollout.ego.copy()
    for column, values in columns.items():
        ego[:, column] = values
    return evaluate(replace(rollout, ego=ego)).comfort


def outside(columns: dict[Ego, float | np.ndarray]) -> set[str]:
    return {name for name, within in flags(columns).items() if not within}


def test_each_bound() -> None:
    t = np.arange(60) * 0.1
    assert outside({}) == set()
    assert outside({Ego.AX: 2.39}) == set()
    assert outside({Ego.AX: 2.40}) == {"lon_acceleration"}  # bounds are strict
    assert outside({Ego.AX: -4.04}) == set()
    assert outside({Ego.AX: -4.06}) == {"lon_acceleration"}
    assert outside({Ego.AY: 4.88}) == set()
    assert outside({Ego.AY: -4.90}) == {"lat_acceleration"}
    assert outside({Ego.HEADING: 0.94 * t}) == set()
    assert outside({Ego.HEADING: 0.96 * t}) == {"yaw_rate"}
    assert outside({Ego.HEADING: 0.94 * t - 30.0}) == set()
    assert outside({Ego.HEADING: (0.94 * t) % 1.0}) == {"yaw_rate", "yaw_acceleration"}
    assert outside({Ego.HEADING: (0.94 * t + np.pi) % (2 * np.pi) - np.pi}) == set()  # the wrap is undone
    assert outside({Ego.AX: np.clip(4.0 * (t - 3.0) - 0.8, -4.0, 2.35)}) == set()  # lon jerk 4.02
    assert outside({Ego.AX: np.clip(5.0 * (t - 3.0) - 0.8, -4.0, 2.35)}) == {"lon_jerk"}
    assert outside({Ego.AY: np.clip(8.0 * (t - 2.0), 0.0, 30.0)}) == {"lat_acceleration"}
    assert outside({Ego.AY: np.clip(9.0 * (t - 2.0), 0.0, 30.0)}) == {"lat_acceleration", "jerk"}


def test_longitudinal_acceleration_holds_the_turn() -> None:
    """a_x + 1.461 (w^2 + alpha), as nuPlan has it."""
    assert outside({Ego.YAW_RATE: 1.28}) == set()  # 2.394
    assert outside({Ego.YAW_RATE: 1.29}) == {"lon_acceleration"}  # 2.431
    assert outside({Ego.YAW_ACCEL: 1.65}) == {"lon_acceleration"}


def test_too_short_tosmoothed() -> None:
    for samples, valid in ((1, False), (3, False), (4, True)):
        score = evaluate(drive_on(ROAD, np.zeros((samples, 3)), speed=1.0))
        assert score.metrics["ego_is_comfortable"].valid == valid
    assert set(flags({}, samples=4)) == set(BOUNDS)


def test_series_are_the_filtered_formulas() -> None:
    poses = np.stack([np.arange(60) * 0.5, np.zeros(60), 0.3 * np.sin(np.arange(60) / 9)], 1)
    drive = drive_on(ROAD, poses, speed=5.0)
    ego = drive.ego.copy()
    ego[:, Ego.AX :] = np.random.default_rng(1).normal(size=ego[:, Ego.AX :].shape)
    series = evaluate(replace(drive, ego=ego)).details.comfort.series
    along = ego[:, Ego.AX] + 1.461 * (ego[:, Ego.YAW_RATE] ** 2 + ego[:, Ego.YAW_ACCEL])
    rows = along, ego[:, Ego.AY], np.hypot(ego[:, Ego.AX], ego[:, Ego.AY])
    lon, lat, whole = (savgol_filter(row, 8, 2) for row in rows)
    wanted = {
        "lon_acceleration": lon,
        "lat_acceleration": lat,
        "lon_jerk": savgol_filter(lon, 15, 2, deriv=1, delta=0.1),
        "jerk": savgol_filter(whole, 15, 2, deriv=1, delta=0.1),
        "yaw_rate": savgol_filter(ego[:, Ego.HEADING], 5, 2, deriv=1, delta=0.1),
        "yaw_acceleration": savgol_filter(ego[:, Ego.HEADING], 5, 3, deriv=2, delta=0.1),
    }
    assert set(wanted) == set(series)
    for name, values in wanted.items():
        np.testing.assert_allclose(series[name], values, atol=1e-6, err_msg=name)
