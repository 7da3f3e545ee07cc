"""Driving direction: thresholds, the window, entries and jumps."""

from __future__ import annotations

import numpy as np
import pytest

from radp.metrics.score import evaluate
from tests.made_roads import box_lane, patches
from tests.metrics.made_drives import drive_on

ROAD = patches(
    [box_lane("A", (0, 100, -2, 2), after=("B",)), box_lane("B", (100, 200, -2, 2), "connector", before=("A",))]
)


def series(x: list[float], y: float | list[float] = 0.0, step_us: int = 100_000) -> np.ndarray:
    poses = np.stack([x, np.broadcast_to(y, len(x)), np.zeros(len(x))], axis=1)
    return evaluate(drive_on(ROAD, poses, step_us=step_us)).series["driving_direction_compliance"]


@pytest.mark.parametrize(("back", "value"), [(1.9, 1.0), (2.1, 0.5), (5.9, 0.5), (6.1, 0.0)])
def test_thresholds(back: float, value: float) -> None:
    poses = np.stack([50.0 - np.linspace(0.0, back, 11), np.zeros(11), np.zeros(11)], axis=1)
    assert evaluate(drive_on(ROAD, poses)).metrics["driving_direction_compliance"].value == value


def test_window_is_one_second_and_one_sample() -> None:
    moved = series(list(50.0 + np.arange(30.0)))
    np.testing.assert_allclose(moved, np.minimum(np.arange(30.0), 11.0))
    slow = series(list(50.0 + np.arange(30.0)), step_us=100_150)  # int(1e6 / 100150) = 9
    np.testing.assert_allclose(slow, np.minimum(np.arange(30.0), 10.0))


def test_entry_and_the_sample_after_it_count_nothing() -> None:
    moved = series([98.0, 99.0, 101.0, 102.0, 103.0])
    np.testing.assert_allclose(moved, [0.0, 1.0, 1.0, 1.0, 2.0])


def test_a_jump_outside_counts_when_back_in_the_same_lane() -> None:
    moved = series([50.0, 51.0, 51.0, 40.0], [0.0, 0.0, 30.0, 0.0])
    np.testing.assert_allclose(moved, [0.0, 1.0, 1.0, -10.0])


def test_start_outside_costs_two_samples() -> None:
    moved = series([50.0, 51.0, 52.0, 53.0], [30.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(moved, [0.0, 0.0, 0.0, 1.0])


def test_arc_length_zero_counts_nothing_but_is_remembered() -> None:
    bent = box_lane("A", (0, 100, -2, 2))
    bent["centerline"] = [[20.0, 0.0], [100.0, 0.0]]  # begins within its lane: points before it have arc length 0
    poses = np.array([[25.0, 0, 0], [10.0, 0, 0], [22.0, 0, 0]])
    moved = evaluate(drive_on(patches([bent]), poses)).series["driving_direction_compliance"]
    np.testing.assert_allclose(moved, [0.0, 0.0, 2.0])
