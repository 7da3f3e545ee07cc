"""Drivable area: the tolerance of 0.3 m on both sides of its two rules."""

from __future__ import annotations

import numpy as np
import pytest

from radp.metrics.score import evaluate
from tests.made_roads import box_lane, patches
from tests.metrics.made_drives import drive_on

HALF = 2.297 / 2
LANE = box_lane("A", (-50, 200, -2, 2))
FAR = ((-50, 200, 50, 60),)  # a map that knows what is drivable, but nothing near


def value(road_map, y: float) -> float:
    metric = evaluate(drive_on(road_map, np.array([[10.0, y, 0.0]]))).metrics["drivable_area_compliance"]
    assert metric.valid
    return metric.value


@pytest.mark.parametrize(("beyond", "expected"), [(-0.1, 1.0), (0.29, 1.0), (0.31, 0.0)])
def test_tolerance_to_the_lane_of_the_centre(beyond: float, expected: float) -> None:
    assert value(patches([LANE], drivable=FAR), 2.0 - HALF + beyond) == expected


@pytest.mark.parametrize(("beyond", "expected"), [(-0.1, 1.0), (0.29, 1.0), (0.31, 0.0)])
def test_tolerance_to_the_drivable_area(beyond: float, expected: float) -> None:
    shoulder = patches([LANE], drivable=((-50, 200, 1.9, 4.0),))
    assert value(shoulder, 4.0 - HALF + beyond) == expected
    crossing = patches([LANE], crossings=((-50, 200, 1.9, 4.0),), drivable=FAR)
    assert value(crossing, 4.0 - HALF + beyond) == expected


def test_other_lanes_do_not_help_by_being_near() -> None:
    """Corners within 0.3 m of a lane that is not the centre's are off the road, when nothing drivable is near."""
    gap = patches([LANE, box_lane("B", (-50, 200, 2.25, 6.0))], drivable=FAR)
    assert value(gap, 2.1 - HALF) == 1.0  # 0.1 m from A, the centre's lane
    far = patches([box_lane("A", (-50, 200, -2, 0.5)), box_lane("B", (-50, 200, 1.2, 6.0))], drivable=FAR)
    assert value(far, 1.0 - HALF) == 0.0  # 0.2 m from B, 0.5 m from A


def test_distance_is_reported() -> None:
    score = evaluate(drive_on(patches([LANE], drivable=((-50, 200, -2, 2),)), np.array([[10.0, 3.0, 0.0]])))
    assert score.details.drivable.outside[0] == pytest.approx(1.0 + HALF)
    assert not score.details.drivable.inside[0]


def test_no_map_no_value() -> None:
    metrics = evaluate(drive_on(patches([]), np.array([[10.0, 3.0, 0.0]]))).metrics
    assert not metrics["drivable_area_compliance"].valid
    only_lanes = evaluate(drive_on(patches([LANE]), np.array([[10.0, 3.0, 0.0]])))
    assert not only_lanes.metrics["drivable_area_compliance"].valid


@pytest.mark.parametrize("turn", range(4))
def test_the_worst_corner_counts_whichever_it_is(turn: int) -> None:
    """A car that stands askew beside the road: its corners are 1 to 6 m off it, and each is the farthest once."""
    heading = 0.5 + turn * np.pi / 2
    pose = np.array([[10.0, 6.0, heading]])
    score = evaluate(drive_on(patches([LANE], drivable=((-50, 200, -2, 2),)), pose))
    ahead = [(x, y) for x in (-1.127, 4.049) for y in (-HALF, HALF)]  # of the rear axle
    heights = [6.0 + (x - 1.461) * np.sin(heading) + y * np.cos(heading) for x, y in ahead]
    assert min(heights) > 2.3 and max(heights) - sorted(heights)[-2] > 0.5
    assert score.details.drivable.outside[0] == pytest.approx(max(heights) - 2.0, abs=1e-6)
