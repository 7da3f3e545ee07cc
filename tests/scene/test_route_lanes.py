"""The route of a scene: the published choice of lanes, and the line in driving order."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from radp.road.route import correct_route
from radp.scenario import LightState
from radp.scenario.neutral_json import read_scenario
from radp.scene.builder import SceneConfig, scenes_from_log
from radp.scene.lanes import route_rows
from radp.scene.scene import LaneColumn, present
from radp.sources.synthetic import make_scenario
from tests.made_roads import lane, road
from tests.made_scenarios import log
from tests.shared_data import shared_params

NOW = 20
DRIVING = SceneConfig(route_order="driving")
CONNECTOR = {"kind": "connector", "index": None}


def route_line(scenario, config: SceneConfig = DRIVING) -> torch.Tensor:
    """(n, 12) points of the line that are there."""
    points = scenes_from_log(scenario, [NOW], config).route_lanes[0].flatten(0, 1)
    return points[present(points)]


@pytest.mark.parametrize(
    ("route", "rows"),
    [
        ([0, 1, 2], [0, 1, 2, 3]),
        ([0, 9, 1], [0]),  # a gap ends the run
        ([9, 9, 1, 2], [1, 2, 3]),  # blocks without lanes before the run do not matter
        ([2, 0], [0, 2]),  # rows keep the order of the lanes, not of the route
        ([9], []),
        ([], []),
    ],
)
def test_first_unbroken_run(route: list[int], rows: list[int]):
    roadblock = np.array([0, 1, 2, 1])  # of lanes 0..3
    lanes = np.array([0, 1, 2, 3])
    assert route_rows(lanes, roadblock, np.array(route, dtype=np.int64), 25).tolist() == rows
    assert route_rows(lanes, roadblock, np.array(route, dtype=np.int64), 2).tolist() == rows[:2]


def test_route_lanes_come_by_distance_and_stop_at_a_gap():
    """The ego stands near the end of block b; block d lies beyond 100 m, so e is not reached although it is near."""
    rows = [
        lane("1", [(0, 0), (50, 0)], "a", ("2",)),
        lane("2", [(50, 0), (100, 0)], "b", ("3",)),
        lane("3", [(100, 0), (300, 0)], "d", ("4",)),
        lane("4", [(300, 0), (95, 10)], "e"),
    ]
    rows[2]["left"], rows[2]["right"] = [[250, 2], [300, 2]], [[250, -2], [300, -2]]
    scene = scenes_from_log(log(road(*rows), ego=(92.0, 0.0, 0.0), route=("a", "b", "d", "e")), [NOW])
    ends = [row[-1, 0].item() for row in scene.route_lanes[0] if present(row).any()]
    assert ends == [8.0, -42.0]


def test_first_25():
    rows = [lane(str(i), [(i, 0), (i, 5)], "all", index=i + 1) for i in range(40)]
    scene = scenes_from_log(log(road(*rows), ego=(0.0, 0.0, math.pi / 2), route=("all",)), [NOW])
    assert torch.equal(scene.route_lanes, scene.lanes[:, :25])
    assert torch.equal(scene.route_lanes_has_speed_limit, scene.lanes_has_speed_limit[:, :25])


@pytest.mark.parametrize("seed", range(4))
def test_what_is_remembered_does_not_depend_on_what_came_first(seed: int):
    check_corrections(make_scenario(seed), seed)


@pytest.mark.golden
@pytest.mark.parametrize("path", shared_params("golden/nuplan/closed_loop/*.scenario.json.gz"))
def test_remembered_corrections_golden(path):
    check_corrections(read_scenario(path), 0)


def check_corrections(scenario, seed: int) -> None:
    """Near the log, and at the first and last points of all lanes, most of which are off the route."""
    random = np.random.default_rng(seed)
    poses = [
        scenario.ego[f, :3] + random.normal(size=3) * [15.0, 15.0, 1.0] for f in range(0, len(scenario.time_us), 10)
    ]
    for line in scenario.map.centerlines:
        heading = np.arctan2(*(line[1] - line[0])[::-1])
        poses += [np.array([*line[0], heading]), np.array([*line[-1], heading])]
    road_map, other = replace(scenario.map), replace(scenario.map)  # neither has seen a route yet
    found = [correct_route(road_map, scenario.route, pose).tolist() for pose in poses]
    backwards = [correct_route(other, scenario.route, pose).tolist() for pose in reversed(poses)]
    assert found == backwards[::-1]


def straight_road(end: float = 400.0):
    return road(
        lane("1", [(0, 0), (50, 0)], "a", ("2",), speed_limit_mps=10.0),
        lane("2", [(50, 0), (90, 0)], "b", ("3",), speed_limit_mps=20.0, **CONNECTOR),
        lane("3", [(90, 0), (end, 0)], "c"),
    )


def test_line_starts_at_the_ego_and_runs_in_driving_order():
    scenario = log(straight_road(), ego=(9.0, 1.0, 0.0), route=("a", "b", "c"), lights={"2": LightState.RED})
    line = route_line(scenario)
    assert len(line) == 60
    torch.testing.assert_close(line[:, 0], 2.0 * torch.arange(60.0), atol=1e-5, rtol=0)
    torch.testing.assert_close(line[:, 1], -torch.ones(60), atol=1e-5, rtol=0)
    torch.testing.assert_close(line[:, 2:4], torch.tensor([[2.0, 0.0]]).expand(60, 2), atol=1e-5, rtol=0)
    torch.testing.assert_close(line[:, 4:8], torch.tensor([[0.0, 2.0, 0.0, -2.0]]).expand(60, 4), atol=1e-5, rtol=0)
    world = 9.0 + 2.0 * torch.arange(60.0)
    assert torch.equal(line[:, LaneColumn.IS_RED] == 1, (world > 50) & (world <= 90))
    scene = scenes_from_log(scenario, [NOW], DRIVING)
    assert scene.route_lanes_speed_limit[0, :4, 0].tolist() == [10.0, 10.0, 20.0, 0.0]  # at 9, 49 and 89 m
    assert scene.route_lanes_has_speed_limit[0, :4, 0].tolist() == [True, True, True, False]


def test_line_in_a_turned_frame():
    """The ego looks north-west across an eastbound road: the line runs to its right and backwards."""
    line = route_line(log(straight_road(), ego=(20.0, 0.0, math.radians(80)), route=("a", "b", "c")))
    step = 2.0 * torch.tensor([math.cos(math.radians(80)), -math.sin(math.radians(80))])
    torch.testing.assert_close(line[:, :2], torch.arange(60.0)[:, None] * step, atol=1e-4, rtol=0)


def test_line_does_not_tell_where_the_route_ends():
    short, long = (log(straight_road(), ego=(9.0, 0.0, 0.0), route=route) for route in (("a",), ("a", "b", "c")))
    assert torch.equal(route_line(short), route_line(long))


def test_line_goes_straight_on_where_the_route_ends():
    rows = [
        lane("1", [(0, 0), (50, 0)], "a", ("left", "on")),
        lane("left", [(50, 0), (60, 3), (65, 15)], "b", **CONNECTOR),
        lane("on", [(50, 0), (200, 2)], "c", **CONNECTOR),
    ]
    onward = route_line(log(road(*rows), route=("a",)))
    assert len(onward) == 60 and onward[-1, 0] == pytest.approx(118, abs=0.1)
    turning = route_line(log(road(*rows), route=("a", "b")))
    assert turning[-1, 1] > 10


def test_line_ends_with_the_map():
    scenario = log(straight_road(100.0), ego=(70.0, 0.0, 0.0), route=("a", "b", "c"))
    line = route_line(scenario)
    assert line[:, 0].tolist() == [2.0 * i for i in range(16)]
    assert line[-1, 2:4].tolist() == [0.0, 0.0]
    rows = scenes_from_log(scenario, [NOW], DRIVING).route_lanes[0]
    assert not rows[0, 16:].any() and not rows[1:].any()


def two_lanes():
    """Two lanes of which only the right one (y = -4) leads on."""
    return road(
        lane("left", [(0, 0), (100, 0)], "a", index=1),
        lane("right", [(0, -4), (100, -4)], "a", ("on",), index=2),
        lane("on", [(100, -4), (300, -4)], "b", **CONNECTOR),
    )


def test_line_changes_lane_where_the_route_asks_for_it():
    line = route_line(log(two_lanes(), ego=(20.0, 0.2, 0.0), route=("a", "b")))
    across = line[:, 1] + 0.2
    at = 20.0 + line[:, 0]
    torch.testing.assert_close(across[at <= 100], -0.04 * at[at <= 100], atol=2e-3, rtol=0)
    torch.testing.assert_close(across[at > 100], torch.full_like(across[at > 100], -4.0), atol=1e-4, rtol=0)


def test_line_keeps_the_lane_where_it_can():
    line = route_line(log(two_lanes(), ego=(20.0, -3.0, 0.0), route=("a", "b")))
    torch.testing.assert_close(line[:, 1], torch.full((60,), -1.0), atol=1e-5, rtol=0)
    onward = route_line(log(two_lanes(), ego=(20.0, 0.0, 0.0), route=("a",)))
    assert (onward[:, 1].abs() < 1e-5).all() and len(onward) == 41  # the left lane ends after 100 m


def test_line_looks_ahead_for_lane_changes():
    """Both lanes lead into block b, but only b's right lane into c: the change is asked for once, and not back."""
    rows = [
        lane("a1", [(0, 0), (40, 0)], "a", ("b1",), index=1),
        lane("a2", [(0, -4), (40, -4)], "a", ("b2",), index=2),
        lane("b1", [(40, 0), (80, 0)], "b", index=1),
        lane("b2", [(40, -4), (80, -4)], "b", ("c",), index=2),
        lane("c", [(80, -4), (300, -4)], "c", **CONNECTOR),
    ]
    from_right = route_line(log(road(*rows), ego=(1.0, -4.0, 0.0), route=("a", "b", "c")))
    assert (from_right[:, 1].abs() < 1e-5).all()
    from_left = route_line(log(road(*rows), ego=(1.0, 0.0, 0.0), route=("a", "b", "c")))
    assert (from_left[:, 1].diff() <= 1e-5).all() and from_left[-1, 1] == pytest.approx(-4.0)


def test_line_takes_the_branch_that_leads_on():
    """Block b forks from one lane; its first branch is a dead end, so the second is driven from the fork on."""
    rows = [
        lane("a", [(0, 0), (40, 0)], "a", ("b1", "b2")),
        lane("b1", [(40, 0), (80, 0)], "b", index=1),
        lane("b2", [(40, 0), (80, -4)], "b", ("c",), index=2),
        lane("c", [(80, -4), (300, -4)], "c", **CONNECTOR),
    ]
    line = route_line(log(road(*rows), ego=(1.0, 0.0, 0.0), route=("a", "b", "c")))
    on_branch = (line[:, 0] > 39) & (line[:, 0] < 79)
    torch.testing.assert_close(line[on_branch, 1], (39.0 - line[on_branch, 0]) / 10, atol=1e-4, rtol=0)


def test_lanes_that_run_against_the_ego_are_not_its_start():
    rows = [
        lane("there", [(0, 0), (100, 0)], "a", ("turn",)),
        lane("turn", [(100, 0), (110, 5), (100, 10)], "b", ("back",), **CONNECTOR),
        lane("back", [(100, 10), (0, 4)], "c"),
    ]
    line = route_line(log(road(*rows), ego=(10.0, 3.0, 0.0), route=("a", "b", "c")))
    assert line[0, :2].tolist() == [0.0, -3.0] and line[1, 0] == pytest.approx(2.0)


@pytest.mark.parametrize("seed", range(4))
def test_line_is_on_the_lanes_and_evenly_spaced(seed: int):
    scenario = make_scenario(seed)
    scene = scenes_from_log(scenario, list(range(20, 91, 10)), DRIVING)
    points = scene.route_lanes.flatten(1, 2)
    for row in points:
        line = row[present(row)]
        gaps = line[1:, :2].sub(line[:-1, :2]).norm(dim=-1)
        assert len(line) == 60 and (gaps > 1.9).all() and (gaps < 2.0 + 1e-4).all()
        torch.testing.assert_close(line[:-1, :2] + line[:-1, 2:4], line[1:, :2], atol=1e-4, rtol=0)
        assert line[0, :2].norm() < 1.0  # the log follows its lane
