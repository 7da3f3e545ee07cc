"""Speed limit: lanes, connectors, unknown limits, duration."""

from __future__ import annotations

import numpy as np
import pytest

from radp.metrics.score import evaluate
from radp.scenario import RoadMap
from tests.made_roads import box_lane, patches
from tests.metrics.made_drives import drive_on


def over(road_map: RoadMap, speed: float, x: float = 5.0) -> float:
    return float(evaluate(drive_on(road_map, np.array([[x, 0.0, 0.0]] * 3), speed=speed)).details.speed_limit.over[0])


def connectors(limits: dict[str, float | None]) -> RoadMap:
    """Two connectors S and T over each other; lanes before and after each of them."""
    far = [box_lane(name, (100 + 20 * i, 110 + 20 * i, 50, 54), limit=limits[name]) for i, name in enumerate(limits)]
    return patches(
        [
            box_lane("S", (0, 10, -2, 2), "connector", after=("S1",), before=("S0",), limit=1.0),
            box_lane("T", (0, 10, -2, 2), "connector", after=("T1",), before=("T0",), limit=1.0),
            *far,
        ]
    )


def test_a_lane_has_its_own_limit() -> None:
    assert over(patches([box_lane("A", (0, 10, -2, 2), limit=8.0)]), 10.0) == pytest.approx(2.0)
    assert over(patches([box_lane("A", (0, 10, -2, 2), limit=8.0)]), 8.0) == 0.0
    assert over(patches([box_lane("A", (0, 10, -2, 2), limit=None)]), 50.0) == 0.0
    assert over(patches([box_lane("A", (0, 10, -2, 2), limit=8.0)]), 50.0, x=50.0) == 0.0  # outside


def test_connectors_take_the_largest_limit_around_all_of_them() -> None:
    assert over(connectors({"S0": 5.0, "S1": 6.0, "T0": 7.0, "T1": 9.0}), 10.0) == pytest.approx(1.0)
    assert over(connectors({"S0": 5.0, "S1": 9.5, "T0": 7.0, "T1": 9.0}), 10.0) == pytest.approx(0.5)
    assert over(connectors({"S0": 5.0, "S1": 6.0, "T0": 7.0, "T1": None}), 10.0) == 0.0  # one unknown: no limit
    assert over(connectors({"S0": 5.0, "S1": 6.0, "T0": None, "T1": 9.0}), 10.0) == 0.0
    assert over(connectors({}), 10.0) == 0.0  # cut off from its lanes


@pytest.mark.parametrize(("speed", "value"), [(10.0, 1.0), (11.0, 1.0 - 1.0 / 2.23 * 1.1), (13.0, 0.0)])
def test_score_is_one_less_mean_overspeed(speed: float, value: float) -> None:
    """11 samples over 1.0 s: the sum over samples times the mean step counts 1.1 s."""
    poses = np.array([[5.0, 0.0, 0.0]] * 11)
    score = evaluate(drive_on(patches([box_lane("A", (0, 10, -2, 2), limit=10.0)]), poses, speed=speed))
    assert score.metrics["speed_limit_compliance"].value == pytest.approx(value)


def test_a_map_without_limits_gives_no_value() -> None:
    unknown = evaluate(drive_on(patches([box_lane("A", (0, 10, -2, 2), limit=None)]), np.array([[5.0, 0.0, 0.0]] * 3)))
    assert not unknown.metrics["speed_limit_compliance"].valid
    elsewhere = patches([box_lane("A", (0, 10, -2, 2), limit=None), box_lane("B", (20, 30, -2, 2), limit=8.0)])
    assert evaluate(drive_on(elsewhere, np.array([[5.0, 0.0, 0.0]] * 3))).metrics["speed_limit_compliance"].value == 1.0
