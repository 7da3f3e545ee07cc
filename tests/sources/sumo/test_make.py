from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import shapely

pytest.importorskip("libsumo", reason="Eclipse SUMO is not installed")

from radp.runs.errors import BadInput
from radp.scenario import PACIFICA, Box, Ego, Scenario
from radp.scenario.store import ScenarioStore
from radp.sources.settings import SumoSplit
from radp.sources.sumo.candidates import DRIVE, HISTORY
from radp.sources.sumo.harvest import Order, harvest
from radp.sources.sumo.kinds import KINDS
from radp.sources.sumo.make import generate

ALL_WAY_STOP = 11  # place of this kind of network in the catalogue
ORDER = Order("test", ALL_WAY_STOP, seed=0, seconds=80.0, per_kind=2)


@pytest.fixture(scope="module")
def scenarios() -> tuple[Scenario, ...]:
    return harvest(ORDER).scenarios


def box(pose: np.ndarray, length: float, width: float) -> shapely.Polygon:
    c, s = np.cos(pose[2]), np.sin(pose[2])
    corners = [(x * length / 2, y * width / 2) for x, y in ((1, 1), (-1, 1), (-1, -1), (1, -1))]
    return shapely.Polygon([(pose[0] + c * x - s * y, pose[1] + s * x + c * y) for x, y in corners])


def ego_box(state: np.ndarray) -> shapely.Polygon:
    ahead = PACIFICA.rear_axle_to_center * np.array([np.cos(state[2]), np.sin(state[2])])
    return box(np.array([*(state[:2] + ahead), state[2]]), PACIFICA.length, PACIFICA.width)


def test_scenarios_have_the_right_shape(scenarios: tuple[Scenario, ...]) -> None:
    assert len(scenarios) >= 5
    for scenario in scenarios:
        scenario.validate()
        assert scenario.kind in KINDS
        assert (scenario.start, scenario.frames) == (HISTORY, DRIVE)
        assert np.all(np.diff(scenario.time_us) == 100_000)
        assert scenario.tags["network_kind"] == "all_way_stop"
    assert len({s.token for s in scenarios}) == len(scenarios)
    assert len({id(s.map) for s in scenarios}) == 1


def test_values_lie_on_a_grid(scenarios: tuple[Scenario, ...]) -> None:
    for scenario in scenarios:
        for values in (scenario.ego, scenario.tracks.state):
            assert np.array_equal(values, np.round(values, 4))
        assert np.array_equal(scenario.ego[:, :2], np.round(scenario.ego[:, :2], 3))


def test_the_ego_touches_nothing_and_stays_on_the_road(scenarios: tuple[Scenario, ...]) -> None:
    for scenario in scenarios[:4]:
        road = [scenario.map.drivable, scenario.map.intersections]
        area = shapely.union_all([shapely.Polygon(r) for a in road for i in range(len(a)) for r in a.polygons[i][:1]])
        for t in range(0, HISTORY + DRIVE, 10):
            mine = ego_box(scenario.ego[t])
            assert area.buffer(0.3).covers(mine)
            for a in np.flatnonzero(scenario.tracks.valid[:, t]):
                other = box(scenario.tracks.state[a, t, : Box.VX], *scenario.tracks.size[a, :2])
                assert not mine.intersects(other)


def test_the_expert_drives_smoothly(scenarios: tuple[Scenario, ...]) -> None:
    for scenario in scenarios:
        ego, step = scenario.ego, np.diff(scenario.ego[:, :2], axis=0)
        moved = np.hypot(*step.T)
        assert np.abs(moved / 0.1 - ego[1:, Ego.VX]).max() < 0.3
        turn = (np.arctan2(step[:, 1], step[:, 0]) - ego[1:, Ego.HEADING] + np.pi) % (2 * np.pi) - np.pi
        assert np.abs(turn[moved > 0.1]).max() < 0.06
        assert np.abs(np.diff(ego[:, Ego.VX])).max() < 0.66


def test_the_route_goes_on_and_holds_the_expert(scenarios: tuple[Scenario, ...]) -> None:
    for scenario in scenarios:
        road_map = scenario.map
        blocks = [road_map.roadblocks.index[name] for name in scenario.route]
        area = shapely.union_all(
            [shapely.Polygon(r) for b in blocks for r in road_map.roadblocks.polygons[b]], grid_size=1e-3
        )
        for t in range(HISTORY, HISTORY + DRIVE, 10):
            assert area.buffer(1.0).covers(shapely.Point(scenario.ego[t, :2]))
        assert area.buffer(0.1).covers(shapely.Point(scenario.goal[:2]))
        assert np.hypot(*(scenario.goal[:2] - scenario.ego[-1, :2])) > 60.0


def test_the_same_order_gives_the_same_scenarios(scenarios: tuple[Scenario, ...]) -> None:
    again = harvest(ORDER).scenarios
    assert [s.token for s in again] == [s.token for s in scenarios]
    for one, other in zip(scenarios, again):
        assert one.tags == other.tags and one.route == other.route and one.tracks.ids == other.tracks.ids
        assert np.array_equal(one.ego, other.ego) and np.array_equal(one.tracks.state, other.tracks.state)
        assert np.array_equal(one.map.centerlines.values, other.map.centerlines.values)


def test_wrong_wishes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="either"):
        generate(SumoSplit(split="test", networks=1), tmp_path)
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(BadInput, match="already"):
        generate(SumoSplit(split="test", networks=1, scenarios=4), tmp_path)


@pytest.mark.slow
def test_a_split_is_the_same_whatever_the_workers(tmp_path: Path) -> None:
    for workers in (1, 2):
        card = generate(SumoSplit(split="test", seed=3, networks=3, scenarios=24), tmp_path / str(workers), workers)
        assert not card.failed and card.scenarios == 24
    files, others = (sorted(p.name for p in (tmp_path / n).iterdir() if p.is_file()) for n in "12")
    assert files == others
    for name in files:
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes(), name
    assert len(ScenarioStore.open(tmp_path / "1")) == 24
