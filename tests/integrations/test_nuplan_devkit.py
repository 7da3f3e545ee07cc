"""radp inside nuPlan's simulator, with stand-ins of the devkit: the same observation, the same plan."""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from radp.integrations import nuplan_devkit
from radp.integrations.nuplan_devkit import world_poses
from radp.integrations.nuplan_map import road_around
from radp.integrations.nuplan_world import DriveMemory
from radp.planners import load_planner
from radp.runs.errors import BadInput, MissingExtra
from radp.scenario import Ego, Scenario
from radp.sim.replay import observe_logs
from radp.sources.synthetic import make_scenario
from tests.integrations import stand_ins

STEP = 7


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return make_scenario(3)


@pytest.fixture
def planner_type(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    stand_ins.install(monkeypatch)
    yield nuplan_devkit.RadpPlanner
    stand_ins.forget()


def world_of(scenario: Scenario, **options: Any) -> DriveMemory:
    start = stand_ins.initialization(scenario)
    layers, point = stand_ins.SemanticMapLayer, stand_ins.Point2D
    return DriveMemory(start.map_api, start.route_roadblock_ids, start.mission_goal, layers, point, **options)


def test_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_ins.install(monkeypatch)
    monkeypatch.delattr(sys.modules["nuplan.common.actor_state.ego_state"], "EgoState")
    stand_ins.forget()
    with pytest.raises(MissingExtra, match="nuplan-devkit is needed here"):
        _ = nuplan_devkit.RadpPlanner
    stand_ins.forget()
    with pytest.raises(AttributeError, match="has no attribute 'Something'"):
        _ = nuplan_devkit.Something


def test_is_a_planner_of_the_devkit(planner_type: Any) -> None:
    planner = planner_type("constant_velocity")
    assert isinstance(planner, stand_ins.AbstractPlanner)
    assert planner.name() == "radp_constant_velocity"
    assert planner.observation_type() is stand_ins.DetectionsTracks
    assert not planner_type.requires_scenario
    assert pickle.loads(pickle.dumps(planner_type)) is planner_type


def test_refuses_the_log_replay(planner_type: Any) -> None:
    with pytest.raises(BadInput, match="log of the future"):
        planner_type("log_replay")


def test_observation_is_that_of_the_closed_loop(scenario: Scenario) -> None:
    ours = observe_logs([scenario], STEP)
    theirs, fresh = world_of(scenario).observe(stand_ins.planner_input(scenario, STEP))
    assert fresh
    np.testing.assert_array_equal(theirs.time_us, ours.time_us)
    np.testing.assert_allclose(theirs.ego, ours.ego)
    np.testing.assert_array_equal(theirs.ego_valid, ours.ego_valid)
    seen = np.flatnonzero(ours.agent_valid[0].any(0))
    for name in (scenario.tracks.ids[i] for i in seen):
        a = scenario.tracks.ids.index(name)
        row = [k for k in range(theirs.agents.shape[2]) if np.array_equal(theirs.agents[0, :, k], ours.agents[0, :, a])]
        assert row, f"track {name} is missing"
        np.testing.assert_array_equal(theirs.agent_valid[0, :, row[0]], ours.agent_valid[0, :, a])
        np.testing.assert_array_equal(theirs.agent_size[0, row[0]], ours.agent_size[0, a])
    named = [{o.briefings[0].map.lane_ids[lane]: s for lane, s in zip(*o.lights(0)) if s} for o in (ours, theirs)]
    assert named[0] == named[1]


def test_road_is_that_of_the_map_api(scenario: Scenario) -> None:
    whole = scenario.map
    api = stand_ins.MapApi(whole)
    centre = scenario.ego[scenario.start, :2]
    road = road_around(api, stand_ins.SemanticMapLayer, stand_ins.Point2D, centre, scenario.route, 1e4)
    assert sorted(road.lane_ids) == sorted(whole.lane_ids)
    road.validate()
    for name in whole.lane_ids:
        a, b = road.lane_index[name], whole.lane_index[name]
        for lines in ("centerlines", "left", "right"):
            np.testing.assert_array_equal(getattr(road, lines)[a], getattr(whole, lines)[b])
        for links in ("predecessors", "successors", "lane_stop_lines"):
            assert len(getattr(road, links)[a]) == len(getattr(whole, links)[b])
        assert road.roadblocks.ids[road.roadblock[a]] == whole.roadblocks.ids[whole.roadblock[b]]
        assert (road.left_neighbor[a] < 0) == (whole.left_neighbor[b] < 0)
        assert road.speed_limit[a] == whole.speed_limit[b]


def test_piece_that_the_devkit_does_not_know_is_left_out(scenario: Scenario) -> None:
    api, centre = stand_ins.MapApi(scenario.map), scenario.ego[scenario.start, :2]
    broken = api.lanes[0]

    class Broken(stand_ins.Piece):
        @property
        def polygon(self) -> None:
            raise AssertionError("no row with this value")

    api.get_proximal_map_objects = lambda point, radius, layers: {
        layer: [Broken(api, 0) if thing is broken else thing for thing in api._all(layer)] for layer in layers
    }
    road = road_around(api, stand_ins.SemanticMapLayer, stand_ins.Point2D, centre, (), 1e4)
    assert set(scenario.map.lane_ids) - set(road.lane_ids) == {broken.id}
    road.validate()


def test_small_radius_keeps_the_route(scenario: Scenario) -> None:
    api, centre = stand_ins.MapApi(scenario.map), scenario.ego[scenario.start, :2]
    road = road_around(api, stand_ins.SemanticMapLayer, stand_ins.Point2D, centre, scenario.route, 10.0)
    assert set(scenario.route) <= set(road.roadblocks.ids)
    assert len(road) < len(scenario.map)


@pytest.mark.parametrize("name", ["constant_velocity", "idm"])
def test_trajectory_is_the_plan(planner_type: Any, scenario: Scenario, name: str) -> None:
    planner = planner_type(name, radius=1e4)
    planner.initialize(stand_ins.initialization(scenario))
    states = planner.compute_trajectory(stand_ins.planner_input(scenario, STEP)).get_sampled_trajectory()
    plan = load_planner(name).plan(observe_logs([scenario], STEP))
    now = scenario.start + STEP
    poses, times = world_poses(plan, tuple(scenario.ego[now, : Ego.HEADING + 1]))
    assert [s.time_us for s in states] == (scenario.time_us[now] + times).tolist()
    assert states[-1].time_us - states[0].time_us >= 8_000_000
    rows = np.array([(s.rear_axle.x, s.rear_axle.y, s.rear_axle.heading) for s in states])
    np.testing.assert_allclose(rows, poses, atol=1e-6)
    np.testing.assert_allclose(rows[0, :2], scenario.ego[now, :2], atol=1e-6)


def test_pressures_of_every_step_are_written(planner_type: Any, scenario: Scenario, tmp_path: Path) -> None:
    planner = planner_type("constant_velocity", pressures=str(tmp_path / "pressures"))
    planner.initialize(stand_ins.initialization(scenario))
    for step in range(3):
        planner.compute_trajectory(stand_ins.planner_input(scenario, step))
    (file,) = (tmp_path / "pressures" / "radp_constant_velocity").glob("*.jsonl")
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [row["step"] for row in rows] == [0, 1, 2]
    assert all(row["exact"] and all(value >= 0.0 for value in row["exact"].values()) for row in rows)


def test_road_is_asked_for_again_far_away(scenario: Scenario) -> None:
    world = world_of(scenario, radius=30.0)
    fresh = [world.observe(stand_ins.planner_input(scenario, step))[1] for step in range(0, scenario.frames - 1, 10)]
    moved = np.hypot(*(scenario.ego[-1, :2] - scenario.ego[scenario.start, :2]))
    assert fresh[0]
    assert any(fresh[1:]) == (moved > 12.0)
    assert world_of(scenario, radius=1e4).observe(stand_ins.planner_input(scenario, 0))[1]


def test_short_history_is_masked(scenario: Scenario) -> None:
    seen, _ = world_of(scenario).observe(stand_ins.planner_input(scenario, STEP, samples=5))
    assert seen.ego_valid[0].tolist() == [False] * 16 + [True] * 5
    assert not seen.agent_valid[0, :16].any()
    assert (np.diff(seen.time_us[0]) > 0).all()


def test_hydra_file_names_the_planner() -> None:
    yaml = pytest.importorskip("yaml")
    text = (resources.files("radp.integrations.config") / "planner" / "radp_planner.yaml").read_text()
    entry = yaml.safe_load(text)["radp_planner"]
    assert entry["_target_"] == "radp.integrations.nuplan_devkit.RadpPlanner"
    assert load_planner(entry["planner"]).name == entry["planner"]
