"""Lines to follow, and the road beside them."""

import numpy as np
import pytest

from radp.metrics.comfort import comfort_series
from radp.planners.guides import make_guide
from radp.planners.pdm.comfort import filters
from radp.road.guide import GUIDE_SPACING
from radp.road.margins import LEFT, OWN, RIGHT, ROAD, SAME_WAY, lane_margins
from radp.scenario import Ego
from radp.sources.synthetic import make_scenario
from radp.sources.synthetic.road import INBOUND, lane_name, make_map
from tests.made_scenarios import LANE, LENGTH, SPLIT, made_scenario


def ids(guide, line):
    return [guide.map.lane_ids[lane] for lane in line.lanes]


def test_the_line_follows_the_route_and_knows_where_lanes_begin():
    scenario = made_scenario()
    guide = make_guide(scenario.briefing)
    line = guide.line(guide.lane_at(scenario.briefing.pose))
    assert ids(guide, line) == ["101", "111", "121"]
    np.testing.assert_allclose(line.starts, [0.0, *SPLIT], atol=1e-6)
    np.testing.assert_allclose(line.points[::200, 0], np.arange(0.0, LENGTH + 1.0, 100.0), atol=1e-6)
    assert (line.change_to, line.must_change) == (-1, False)


def test_a_lane_that_leaves_the_route_asks_for_its_neighbour():
    scenario = made_scenario(second_lane=True, only_left_leads_on=True)
    guide = make_guide(scenario.briefing)
    line = guide.line(guide.lane_at(scenario.briefing.pose))
    assert guide.map.lane_ids[line.change_to] == "102"
    assert line.must_change
    assert line.first_end == pytest.approx(SPLIT[0])


@pytest.mark.parametrize("turn", ["left", "straight", "right"])
def test_the_expert_of_a_made_drive_is_always_on_the_line(turn):
    scenario = make_scenario(1, agents=0, turn=turn)
    guide = make_guide(scenario.briefing)
    line = guide.line(guide.lane_at(scenario.ego[scenario.start]))
    for state in scenario.ego[scenario.start :: 10]:
        assert guide.lane_at(state) in line.lanes
        assert np.hypot(*(line.points - state[:2]).T).min() < 0.5


def test_speeds_fall_before_a_bend():
    guide = make_guide(made_scenario(radius=15.0).briefing)
    speeds = guide.line(0).speeds
    at = {s: speeds[int(s / GUIDE_SPACING)] for s in (5.0, 35.0, 60.0)}
    assert at[5.0] > at[35.0] > at[60.0]
    assert at[60.0] ** 2 / 15.0 < 3.0


def test_margins_of_a_street_of_two_lanes():
    margins = lane_margins(made_scenario(second_lane=True).map, 0)
    np.testing.assert_allclose(margins[OWN], LANE / 2, atol=1e-6)
    np.testing.assert_allclose(margins[ROAD, RIGHT], LANE / 2, atol=1e-6)
    np.testing.assert_allclose(margins[ROAD, LEFT], 1.5 * LANE, atol=1e-6)
    np.testing.assert_allclose(margins[SAME_WAY], 6.0)


def test_an_oncoming_lane_ends_the_ground_of_the_same_way():
    road = make_map(1)
    leftmost = road.lane_index[lane_name(1, 0, INBOUND, 0)]
    margins = lane_margins(road, leftmost)
    middle = margins.shape[-1] // 2
    assert margins[SAME_WAY, LEFT, middle] == pytest.approx(1.75, abs=1e-3)
    assert margins[SAME_WAY, RIGHT, middle] == pytest.approx(6.0)
    assert margins[ROAD, LEFT, middle] == pytest.approx(6.0)


def test_comfort_filters_are_those_of_the_metric():
    ego = np.zeros((61, len(Ego)))
    random = np.random.default_rng(3)
    ego[:, Ego.AX] = np.cumsum(random.normal(size=61)) * 0.1
    ego[:, Ego.HEADING] = np.cumsum(random.normal(size=61)) * 0.01
    expected = comfort_series(ego, 0.1)
    smooth, jerk, yaw_rate, yaw_accel = filters(61)
    np.testing.assert_allclose(smooth @ ego[:, Ego.AX], expected["lon_acceleration"], atol=1e-6)
    np.testing.assert_allclose(jerk @ ego[:, Ego.AX], expected["lon_jerk"], atol=1e-6)
    np.testing.assert_allclose(yaw_rate @ ego[:, Ego.HEADING], expected["yaw_rate"], atol=1e-6)
    np.testing.assert_allclose(yaw_accel @ ego[:, Ego.HEADING], expected["yaw_acceleration"], atol=1e-6)
