"""Time to collision on hand-made meetings."""

from __future__ import annotations

import numpy as np
import pytest

from radp.metrics.score import evaluate
from radp.scenario import ObjectType
from tests.made_roads import box_lane, patches
from tests.metrics.made_drives import boxes, drive_on

LANE = (box_lane("A", (-50, 200, -2, 2)), box_lane("B", (-50, 200, 2, 6)))
TWO, TWO_CROSSING = patches(list(LANE)), patches(list(LANE), crossings=((-50, 200, -50, 50),))
HERE = np.zeros((1, 3))


def ttc(state: list[float], speed: float = 10.0, y: float = 0.0, road_map=TWO, size=(4.0, 2.0)) -> float:
    """Time to collision of one sample with one vehicle."""
    tracks = boxes((ObjectType.VEHICLE, *size, np.array(state)), samples=1)
    return float(evaluate(drive_on(road_map, HERE + np.array([0.0, y, 0.0]), speed=speed, tracks=tracks)).ttc[0])


def test_standing_car_ahead() -> None:
    gap = 5.176 / 2 + 2.0
    assert ttc([gap + 9.05, 0.0, 0.0, 0.0, 0.0]) == pytest.approx(1.0)  # 1 m per step: the tenth step touches
    assert ttc([gap + 8.95, 0.0, 0.0, 0.0, 0.0]) == pytest.approx(0.9)
    assert ttc([gap + 28.9, 0.0, 0.0, 0.0, 0.0]) == pytest.approx(2.9)
    assert ttc([gap + 29.1, 0.0, 0.0, 0.0, 0.0]) == np.inf  # 3.0 s is not looked at


def test_bound_is_095_seconds() -> None:
    for distance, value in ((8.95, 0.0), (9.05, 1.0)):
        tracks = boxes((ObjectType.VEHICLE, 4.0, 2.0, np.array([4.588 + distance, 0, 0, 0, 0])), samples=1)
        score = evaluate(drive_on(TWO, HERE, speed=10.0, tracks=tracks))
        assert score.metrics["time_to_collision_within_bound"].value == value


def test_objects_go_along_their_heading_even_when_they_move_backwards() -> None:
    assert ttc([20.0, 0.0, 0.0, -10.0, 0.0]) == np.inf  # comes nearer, but is taken to drive away
    assert ttc([20.0, 0.0, np.pi, 10.0, 0.0]) < 1.0


def test_standing_ego_has_none() -> None:
    assert ttc([5.0, 0.0, np.pi, -5.0, 0.0], speed=0.005) == np.inf
    assert ttc([5.0, 0.0, np.pi, -5.0, 0.0], speed=0.006) == pytest.approx(0.1)


def test_object_beside_counts_between_lanes_or_in_a_crossing_only() -> None:
    beside = [6.0, 8.0, -np.pi / 2, 0.0, -6.0]  # about 47 degrees to the left, on its way into the ego's path
    assert ttc(beside) == np.inf
    assert ttc(beside, road_map=TWO_CROSSING) < 1.0
    assert ttc([6.0, 9.5, -np.pi / 2, 0.0, -6.0], y=1.5) < 1.0


def test_object_behind_never_counts() -> None:
    behind = [-15.0, 0.0, 0.0, 25.0, 0.0]
    assert ttc(behind) == np.inf
    assert ttc(behind, road_map=TWO_CROSSING) == np.inf
    assert ttc(behind, y=1.5) == np.inf


def test_passing_through_between_two_steps_is_not_seen() -> None:
    """A thin object that crosses within one step is met at no step: contacts are looked for every 0.1 s only."""
    assert ttc([7.0, 65.0, -np.pi / 2, 0.0, -100.0], road_map=TWO_CROSSING, size=(0.2, 0.2)) == np.inf
    assert ttc([7.0, 65.0, -np.pi / 2, 0.0, -100.0], road_map=TWO_CROSSING, size=(12.0, 0.2)) < np.inf


def test_who_was_touched_in_the_first_frame_counts_no_more() -> None:
    tracks = boxes((ObjectType.VEHICLE, 4.0, 2.0, np.array([3.0, 0.0, 0.0, 0.0, 0.0])), samples=2)
    score = evaluate(drive_on(TWO, np.zeros((2, 3)), speed=10.0, tracks=tracks))
    assert score.ttc[0] == 0.0 and score.ttc[1] == np.inf


def test_the_exact_boxes_decide_where_the_interval_is_a_little_wide() -> None:
    side = 2.297 / 2 + 1.0
    assert ttc([20.0, side + 5e-7, 0.0, 0.0, 0.0]) == np.inf
    assert ttc([20.0, side - 5e-7, 0.0, 0.0, 0.0]) < 2.0
