"""Progress along the expert's route: repeats, skipped roadblocks, floors."""

from __future__ import annotations

import numpy as np
import pytest

from radp.geometry.areas import Rows
from radp.metrics.progress import roadblock_path
from radp.metrics.score import ScenarioScore, evaluate
from radp.road.arrays import road_arrays
from radp.scenario import RoadMap
from tests.made_roads import box_lane, patches
from tests.metrics.made_drives import drive_on

CHAIN = patches([box_lane(name, (10.0 * i, 10.0 * i + 10.0, -2, 2)) for i, name in enumerate("ABCD")])


def line(x: np.ndarray | list[float], y: float = 0.0) -> np.ndarray:
    x = np.asarray(x, dtype=np.float64)
    return np.stack([x, np.full(len(x), y), np.zeros(len(x))], axis=1)


def drive(road_map: RoadMap, mine: np.ndarray, expert: np.ndarray) -> ScenarioScore:
    return evaluate(drive_on(road_map, mine, expert))


def ratio(score: ScenarioScore) -> float:
    return score.metrics["ego_progress_along_expert_route"].value


EXPERT = line(np.arange(1.0, 39.0, 0.5))


def test_log_replay_misses_one_step() -> None:
    assert ratio(drive(CHAIN, EXPERT[:-1], EXPERT)) == pytest.approx((len(EXPERT) - 2) / (len(EXPERT) - 1))


def test_skipped_roadblocks_are_bridged() -> None:
    score = drive(CHAIN, line([5.0, 35.0]), EXPERT)
    np.testing.assert_allclose(score.series["ego_progress_along_expert_route"], [0.0, 30.0])


def test_skipped_overlapping_lines() -> None:
    """The line of C begins 5 m before the end of B's: those 5 m are not counted twice, nor against A's end."""
    lanes = [box_lane(name, (10.0 * i, 10.0 * i + 10.0, -2, 2)) for i, name in enumerate("ABCD")]
    lanes[2]["centerline"] = [[15.0, 0.0], [30.0, 0.0]]
    score = drive(patches(lanes), line([5.0, 35.0]), EXPERT)
    # A: 5 m left. D: 5 m in. B: up to C's first point, 15 - 10 = 5 m. C: from B's end, 15 - 5 = 10 m.
    np.testing.assert_allclose(score.series["ego_progress_along_expert_route"], [0.0, 25.0])


def test_outside_counts_nothing_until_back() -> None:
    score = drive(CHAIN, np.concatenate([line([5.0]), line([8.0], y=30.0), line([9.0])]), EXPERT)
    np.testing.assert_allclose(score.series["ego_progress_along_expert_route"], [0.0, 0.0, 4.0])


def test_roadblocks_behind_are_not_taken_up_again() -> None:
    score = drive(CHAIN, line([5.0, 15.0, 5.0, 16.0]), EXPERT)
    np.testing.assert_allclose(score.series["ego_progress_along_expert_route"], [0.0, 10.0, 0.0, 1.0])


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (np.linspace(30.0, 27.9, 5), 0.0),  # more than 2 m backwards
        (np.linspace(30.0, 29.0, 5), 0.2),  # counts as 2 m of the expert's 10
        (np.linspace(30.0, 31.0, 5), 0.2),
        (np.linspace(30.0, 36.0, 5), 0.6),
        (np.linspace(30.0, 49.0, 5), 1.0),
    ],
)
def test_floors(x: np.ndarray, expected: float) -> None:
    long = patches([box_lane("A", (0, 100, -2, 2))])
    score = drive(long, line(x), line(np.linspace(30.0, 40.0, 6)))
    assert ratio(score) == pytest.approx(expected)
    assert score.metrics["ego_is_making_progress"].value == float(expected >= 0.2)


def test_expert_that_stands_asks_for_nothing() -> None:
    long = patches([box_lane("A", (0, 100, -2, 2))])
    assert ratio(drive(long, line([30.0, 30.0]), line([30.0, 30.1, 30.2]))) == 1.0


def test_expert_outside_all_lanes() -> None:
    score = drive(CHAIN, line([5.0, 8.0]), line([5.0, 8.0, 9.0], y=50.0))
    assert ratio(score) == 1.0
    assert score.metrics["ego_is_making_progress"].value == 1.0


def test_path_follows_the_narrowed_rows() -> None:
    """Both S and T hold the expert at first; it goes on in T, so the path is T's roadblock and then U's."""
    lanes = [
        box_lane("S", (0, 10, -2, 2), "connector"),
        box_lane("T", (0, 20, -2, 2), "connector"),
        box_lane("U", (20, 30, -2, 2), before=("S", "T")),
    ]
    score = drive(patches(lanes), line([5.0, 25.0]), line([5.0, 5.5, 15.0, 25.0]))
    np.testing.assert_allclose(score.series["ego_progress_along_expert_route"], [0.0, 20.0])


def test_path_begins_with_the_first_row_that_is_not_empty() -> None:
    """A row of several before a row outside becomes empty, so the path is U's roadblock alone."""
    lanes = [
        box_lane("S", (0, 10, -2, 2), "connector"),
        box_lane("T", (0, 20, -2, 2), "connector"),
        box_lane("U", (20, 30, -2, 2), before=("S", "T")),
    ]
    expert = np.concatenate([line([5.0]), line([15.0], y=20.0), line([25.0, 26.0])])
    assert drive(patches(lanes), line([22.0, 25.0]), expert).details.progress.expert_total == pytest.approx(6.0)


def test_a_row_that_shares_a_lane_with_the_first_one_is_a_repetition() -> None:
    rows = Rows(np.array([0, 2]), np.array([2, 1]), np.array([0, 1, 1]))
    blocks, lanes = roadblock_path(rows, road_arrays(CHAIN).graph)
    assert (blocks.tolist(), lanes.tolist()) == ([0], [0])
