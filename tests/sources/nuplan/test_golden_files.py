"""Every golden log and map: read as the devkit reads them, and driven to the same states and scores."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from radp.metrics.score import evaluate
from radp.planners import load_planner
from radp.scenario import NO_AREAS, Areas, LightState, RoadMap, Scenario
from radp.scenario.neutral_json import load_json, map_from_json, scenario_from_json, tracks_from_json
from radp.scenario.store import ScenarioStore
from radp.sim.simulate import simulate
from radp.sources.convert import convert
from radp.sources.nuplan.layers import find_map, read_layers
from radp.sources.nuplan.log_db import LogDb
from radp.sources.nuplan.road import city_road
from radp.sources.nuplan.source import NUPLAN
from radp.sources.settings import LogChoice
from tests.metrics.test_golden import check_listing
from tests.shared_data import NUPLAN_GOLDEN, shared_params
from tests.sim.test_simulate_golden import AGENT_TOLERANCE, MODES, agent_gap, assert_same_ego

pytest.importorskip("pyogrio", reason='pip install "radp[nuplan]"')
pytestmark = [
    pytest.mark.golden,
    pytest.mark.parametrize("path", shared_params("golden/nuplan/files/*/expected.json.gz")),
]
METRES = 1e-6


@cache
def converted(path: Path) -> Scenario:
    (item,) = NUPLAN.items(LogChoice(db=path.parent, maps=path.parent / "maps"))
    (scenario,) = NUPLAN.scenarios(item)
    assert isinstance(scenario, Scenario)
    scenario.validate()
    return scenario


@cache
def expected_json(path: Path) -> dict[str, Any]:
    return load_json(path)


def expected(path: Path) -> Scenario:
    return scenario_from_json(expected_json(path)["scenario"], str(path))


@cache
def whole_city(path: Path) -> RoadMap:
    with LogDb(path.parent / "log.db") as log:
        name = log.map_name()
    road, gaps = city_road(read_layers(find_map(path.parent / "maps", name)), name)
    assert not gaps
    return road


def in_drive(scenario: Scenario) -> slice:
    return slice(scenario.start, None)


def test_states(path: Path) -> None:
    ours, theirs = converted(path), expected(path)
    np.testing.assert_array_equal(ours.time_us[in_drive(ours)], theirs.time_us)
    np.testing.assert_allclose(ours.ego[in_drive(ours)], theirs.ego, rtol=0, atol=1e-9)
    assert (ours.token, ours.kind) == (expected_json(path)["scenario"]["token"], theirs.kind)
    assert ours.start == 20
    steps = np.diff(ours.time_us[: ours.start + 1]) * 1e-6
    np.testing.assert_allclose(steps, 0.1, atol=0.02)


def test_boxes(path: Path) -> None:
    ours, theirs = converted(path).tracks, expected(path).tracks
    drive, count = in_drive(converted(path)), len(theirs)
    assert ours.ids[:count] == theirs.ids
    np.testing.assert_array_equal(ours.type[:count], theirs.type)
    np.testing.assert_allclose(ours.size[:count, :2], theirs.size[:, :2])
    np.testing.assert_array_equal(ours.valid[:count, drive], theirs.valid)
    moving = theirs.type[:, None, None] <= 2
    gap = np.abs(ours.state[:count, drive] - theirs.state)
    np.testing.assert_allclose(np.where(moving, gap, gap * [1, 1, 1, 0, 0]), 0.0, atol=1e-9)
    assert not ours.valid[count:, drive].any(), "a track that the devkit does not see"


def lights_by_id(scenario: Scenario) -> set[tuple[int, str, str]]:
    drive = scenario.lights.state[in_drive(scenario)]
    names = [scenario.map.lane_ids[lane] for lane in scenario.lights.lane]
    return {(int(f), names[c], LightState(drive[f, c]).name) for f, c in zip(*np.nonzero(drive))}


def test_lights_route_and_goal(path: Path) -> None:
    ours, theirs = converted(path), expected(path)
    assert lights_by_id(ours) == lights_by_id(theirs)
    assert ours.route == theirs.route
    assert (ours.goal is None) == (theirs.goal is None)
    if theirs.goal is not None:
        np.testing.assert_allclose(ours.goal, theirs.goal, rtol=0, atol=1e-9)


def names_of(road: RoadMap, links: Any, lane: int) -> list[str]:
    return [road.lane_ids[i] for i in links[lane]]


def beside(road: RoadMap, side: str, lane: int) -> str:
    neighbour = getattr(road, side)[lane]
    return road.lane_ids[neighbour] if neighbour >= 0 else ""


def assert_same_lane(ours: RoadMap, theirs: RoadMap, name: str) -> None:
    a, b = ours.lane_index[name], theirs.lane_index[name]
    for line in ("centerlines", "left", "right"):
        np.testing.assert_allclose(getattr(ours, line)[a], getattr(theirs, line)[b], rtol=0, atol=METRES)
    assert_same_rings(ours.lane_polygons[a], theirs.lane_polygons[b])
    assert ours.is_connector[a] == theirs.is_connector[b]
    assert (ours.has_speed_limit[a], ours.speed_limit[a]) == (theirs.has_speed_limit[b], theirs.speed_limit[b])
    for links in ("predecessors", "successors"):
        assert names_of(ours, getattr(ours, links), a) == names_of(theirs, getattr(theirs, links), b)
    for side in ("left_neighbor", "right_neighbor"):
        assert beside(ours, side, a) == beside(theirs, side, b)
    assert ours.roadblocks.ids[ours.roadblock[a]] == theirs.roadblocks.ids[theirs.roadblock[b]]
    assert [ours.stop_lines.ids[i] for i in ours.lane_stop_lines[a]] == [
        theirs.stop_lines.ids[i] for i in theirs.lane_stop_lines[b]
    ]


def assert_same_rings(ours: list[np.ndarray], theirs: list[np.ndarray]) -> None:
    """Rings may begin anywhere and run either way: the sets of points and the number of points are the same."""
    assert [len(ring) for ring in ours] == [len(ring) for ring in theirs]
    for a, b in zip(ours, theirs):
        gaps = np.linalg.norm(a[:, None] - b[None], axis=-1)
        assert max(gaps.min(0).max(), gaps.min(1).max()) < METRES


def assert_same_areas(ours: Areas, theirs: Areas) -> None:
    assert sorted(ours.ids) == sorted(theirs.ids)
    for name in theirs.ids:
        assert_same_rings(ours.polygons[ours.index[name]], theirs.polygons[theirs.index[name]])


def test_whole_map(path: Path) -> None:
    ours, theirs = whole_city(path), map_from_json(expected_json(path)["scenario"]["map"])
    assert sorted(ours.lane_ids) == sorted(theirs.lane_ids)
    for name in theirs.lane_ids:
        assert_same_lane(ours, theirs, name)
    connectors = [[n for n, c in zip(road.lane_ids, road.is_connector) if c] for road in (ours, theirs)]
    assert connectors[0] == connectors[1], "the order decides where connectors overlap"
    assert_same_areas(ours.intersections, theirs.intersections)
    assert_same_areas(ours.drivable, theirs.drivable)
    assert_same_areas(ours.stop_lines, theirs.stop_lines or NO_AREAS)
    assert sorted(ours.roadblocks.ids) == sorted(theirs.roadblocks.ids)


def test_cut_out_keeps_what_it_takes(path: Path) -> None:
    scenario, whole = converted(path), whole_city(path)
    road = scenario.map
    road.validate()
    on_route = {n for n, b in zip(whole.lane_ids, whole.roadblock) if whole.roadblocks.ids[b] in scenario.route}
    assert on_route <= set(road.lane_ids)
    inside = [i for i, name in enumerate(road.lane_ids) if name in on_route]
    for lane in inside:
        other = whole.lane_index[road.lane_ids[lane]]
        np.testing.assert_array_equal(road.centerlines[lane], whole.centerlines[other])
        np.testing.assert_array_equal(road.lane_polygons[lane][0], whole.lane_polygons[other][0])


def golden_scores(path: Path) -> dict[str, Any]:
    listing = NUPLAN_GOLDEN / "golden.json"
    cases = json.loads(listing.read_text())["cases"] if listing.exists() else {}
    return cases.get(path.parent.name, {}).get("runs", {})


def test_driving_the_log(path: Path) -> None:
    runs = expected_json(path)["runs"]
    assert runs
    for run, golden in runs.items():
        mode = MODES[run.split("_")[0]]
        (rollout,) = simulate(load_planner("log_replay"), [converted(path)], mode)
        assert_same_ego(rollout, golden)
        if isinstance(golden["agents"], list):
            gap = agent_gap(rollout.agents, tracks_from_json(golden["agents"], len(rollout.ego)))
            assert gap.max() < AGENT_TOLERANCE
        if run in golden_scores(path):
            check_listing(evaluate(rollout), golden_scores(path)[run])


def test_conversion_to_a_store(path: Path, tmp_path: Path) -> None:
    options = LogChoice(db=path.parent, maps=path.parent / "maps")
    card = convert(NUPLAN, options, tmp_path / "store")
    assert (card["scenarios"], card["failed"]) == (1, {})
    stored, read = ScenarioStore.open(tmp_path / "store")[0], converted(path)
    np.testing.assert_array_equal(stored.ego, read.ego)
    np.testing.assert_array_equal(stored.map.centerlines.values, read.map.centerlines.values)
    assert stored.tags["map"] == read.map.name
