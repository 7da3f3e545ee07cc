"""The tracker's fits against their dense form and against trajectories with known answers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from radp.sim.tracker import fit_curvatures, fit_speeds, lqr_command, pose_at, resample, track
from tests.sim.dense_fits import dense_curvatures, dense_speeds

SIZES = (1, 2, 3, 4, 5, 15, 80)


def drive_shape(seed: int, size: int, scale: float = 1.0) -> np.ndarray:
    """Poses (size + 1, 3) of a bent drive with uneven speed; heading passes through pi."""
    random = np.random.default_rng(seed)
    speed = scale * np.abs(random.normal(6.0, 3.0) + np.cumsum(random.normal(0.0, 0.3, size + 1)))
    heading = 3.0 + np.cumsum(random.normal(0.02, 0.03, size + 1))
    step = 0.1 * speed[:, None] * np.stack((np.cos(heading), np.sin(heading)), 1)
    points = np.cumsum(step + random.normal(0.0, 0.01, step.shape), 0)
    return np.column_stack((points, (heading + np.pi) % (2 * np.pi) - np.pi))


def fit(poses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    size = len(poses) - 1
    work, speeds, curvatures = np.full((3, size), np.nan), np.zeros(size), np.zeros(size)
    fit_speeds(poses, len(poses), work, speeds)
    fit_curvatures(poses, speeds, len(poses), work, curvatures)
    return speeds, curvatures


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("seed", range(5))
def test_fits_equal_the_dense_pseudo_inverse(size: int, seed: int) -> None:
    poses = drive_shape(seed, size)
    speeds, curvatures = fit(poses)
    np.testing.assert_allclose(speeds, dense_speeds(poses), atol=1e-8)
    np.testing.assert_allclose(curvatures, dense_curvatures(poses, speeds), atol=1e-7)


@pytest.mark.parametrize("scale", (0.0, 1e-6, 1e-3))
def test_fits_equal_the_dense_pseudo_inverse_near_standstill(scale: float) -> None:
    poses = drive_shape(1, 40, scale)
    poses[:, :2] *= scale
    speeds, curvatures = fit(poses)
    np.testing.assert_allclose(speeds, dense_speeds(poses), atol=1e-10)
    np.testing.assert_allclose(curvatures, dense_curvatures(poses, speeds), atol=1e-6)


def test_standing_trajectory_has_no_speed_and_no_curvature() -> None:
    poses = np.tile([3.0, -2.0, 1.0], (81, 1))
    poses[:, 2] += np.linspace(0.0, 1.0, 81)  # turning on the spot has no curvature either
    speeds, curvatures = fit(poses)
    assert not speeds.any()
    assert not curvatures.any()


@given(
    st.floats(0.0, 30.0), st.floats(-4.0, 3.0), st.floats(-np.pi, np.pi), st.sampled_from(SIZES[1:])
)  # fmt: skip
@settings(max_examples=50, deadline=None)
def test_constant_deceleration_is_recovered_exactly(v0: float, accel: float, heading: float, size: int) -> None:
    speeds = v0 + accel * 0.1 * np.arange(size)
    way = np.concatenate(([0.0], np.cumsum(speeds * 0.1)))
    poses = np.column_stack((way * np.cos(heading), way * np.sin(heading), np.full(size + 1, heading)))
    np.testing.assert_allclose(fit(poses)[0], speeds, atol=1e-9)


def test_circle_has_its_curvature() -> None:
    heading = 0.5 * 0.1 * np.arange(81)
    step = np.stack((np.cos(heading), np.sin(heading)), 1)[:-1] * 0.8
    poses = np.column_stack((np.concatenate((np.zeros((1, 2)), np.cumsum(step, 0))), heading))
    speeds, curvatures = fit(poses)
    np.testing.assert_allclose(speeds, 8.0, atol=1e-9)
    np.testing.assert_allclose(curvatures, 0.5 / 8.0, atol=1e-9)


@given(st.lists(st.integers(1, 700_000), min_size=1, max_size=40), st.integers(0, 2**32 - 1))
@settings(max_examples=100, deadline=None)
def test_resample_equals_interpolation_of_the_unwrapped_heading(gaps: list[int], seed: int) -> None:
    times = 5_000_000 + np.concatenate(([0], np.cumsum(gaps)))
    poses = np.random.default_rng(seed).uniform(-3.0, 3.0, (len(times), 3))
    out = np.full((len(times) * 8, 3), np.nan)
    total = resample(times, poses, len(times), out)
    grid = np.arange(times[0], times[-1] + 1, 100_000)
    assert total == len(grid)
    unwrapped = np.column_stack((poses[:, :2], np.unwrap(poses[:, 2])))
    expected = np.stack([np.interp(grid, times, column) for column in unwrapped.T], 1)
    found = np.array([pose_at(now, times, poses, len(times)) for now in grid])
    for ours in (out[:total], found):
        gap = ours - expected
        gap[:, 2] = (gap[:, 2] + np.pi) % (2 * np.pi) - np.pi
        np.testing.assert_allclose(gap, 0.0, atol=1e-9)


def test_pose_at_holds_the_ends() -> None:
    times, poses = np.array([0, 100_000]), np.array([[0.0, 0.0, 0.0], [1.0, 2.0, 0.5]])
    assert pose_at(-5, times, poses, 2) == (0.0, 0.0, 0.0)
    assert pose_at(200_000, times, poses, 2) == (1.0, 2.0, 0.5)


def test_end_of_the_trajectory_counts_only_on_the_grid() -> None:
    poses, out = np.zeros((2, 3)), np.zeros((9, 3))
    assert resample(np.array([0, 500_000]), poses, 2, out) == 6
    assert resample(np.array([0, 499_999]), poses, 2, out) == 5


def test_command_on_a_straight_line_at_its_speed_is_zero() -> None:
    speeds, curvatures = np.full(80, 7.0), np.zeros(80)
    assert lqr_command(0.0, 0.0, 0.0, 7.0, 0.0, speeds, curvatures, 80) == pytest.approx((0.0, 0.0), abs=1e-12)


def test_command_closes_ten_elevenths_of_a_speed_error_and_steers_back() -> None:
    speeds, curvatures = np.full(80, 7.0), np.zeros(80)
    accel, rate = lqr_command(0.5, 0.0, 0.0, 6.0, 0.0, speeds, curvatures, 80)
    assert accel == pytest.approx(10 / 11)
    assert rate < 0.0  # to the left of the line: steer right


@pytest.mark.parametrize("speed", (0.2, 0.0, -3.0))
def test_slow_vehicle_with_a_slow_target_stops_without_steering(speed: float) -> None:
    target = np.full(80, 0.1)
    assert lqr_command(0.5, 0.2, 0.1, speed, 0.0, target, np.zeros(80), 80) == (-0.5 * (speed - 0.1), 0.0)


def test_command_does_not_depend_on_the_frame() -> None:
    poses, times = drive_shape(3, 80), np.arange(81) * 100_000
    pose, work = poses[0] + np.array([0.3, -0.2, 0.05]), np.zeros((8, 90))
    c, s = np.cos(0.7), np.sin(0.7)
    turned = poses @ np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]) + np.array([40.0, -9.0, 0.7])
    turned_pose = pose @ np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]) + np.array([40.0, -9.0, 0.7])
    here = track(pose, 5.0, 0.1, 30_000, times, poses, 81, work)
    there = track(turned_pose, 5.0, 0.1, 30_000, times, turned, 81, work)
    assert here == pytest.approx(there, abs=1e-9)
