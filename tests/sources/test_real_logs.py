"""Every real log of the shared folder becomes a sound scenario."""

from __future__ import annotations

import importlib.util
import json
import pickle
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from radp.runs.errors import BadInput
from radp.scenario import Scenario
from radp.scenario.egos import choose_egos
from radp.scenario.recording import Recording
from radp.sources.convert import Refused, load_source
from radp.sources.settings import LogChoice
from tests.shared_data import SHARED, shared_params

pytestmark = pytest.mark.realdata


def module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def scenarios_of(source: str, data: Path, ego: str = "sdc") -> list[Scenario]:
    reader = load_source(source)
    return [
        s
        for item in reader.items(LogChoice(data=data))
        for log in reader.scenarios(item)
        for s in choose_egos(log, ego)
    ]


def check(scenario: Scenario) -> None:
    """What must hold for every log: sound arrays, history, borders on their sides, a route that hangs together."""
    scenario.validate()
    assert scenario.start >= 20 and scenario.frames >= 10
    assert "route" in scenario.tags["rebuilt"] and "ego" in scenario.tags
    assert abs(np.median(np.diff(scenario.time_us)) - 100_000) < 2_000
    road = scenario.map
    sides = [left_of(road.centerlines[i], road.left[i], road.right[i]) for i in range(len(road))]
    assert np.mean(sides) > 0.99
    blocks = [road.roadblocks.index[name] for name in scenario.route]
    linked = [b in road.roadblock_successors[a] for a, b in pairwise(blocks)]
    assert not linked or np.mean(linked) >= 0.5  # lane changes may step from block to block
    speed = np.hypot(*np.diff(scenario.ego[:, :2], axis=0).T) / 0.1
    assert np.abs(speed - np.hypot(scenario.ego[1:, 3], scenario.ego[1:, 4])).mean() < 1.0


def left_of(center: np.ndarray, left: np.ndarray, right: np.ndarray) -> bool:
    """Whether at the middle of a lane the left border is to the left, and the right one to the right."""
    k = len(center) // 2
    along = center[k] - center[k - 1]
    sides = [along[0] * (line[k] - center[k])[1] - along[1] * (line[k] - center[k])[0] for line in (left, right)]
    return bool(sides[0] > 0 > sides[1])


@pytest.mark.parametrize("path", shared_params("data/womd_json/*.json*"))
def test_waymo_json(path: Path) -> None:
    (scenario,) = scenarios_of("waymo-json", path)
    check(scenario)
    assert scenario.frames == 81 and not scenario.map.has_speed_limit.any() and len(scenario.map.drivable)


@cache
def unpacker() -> ModuleType:
    return module(SHARED / "tools" / "unpack_data.py")


@pytest.mark.parametrize("path", shared_params("data/womd_pack/shard_*.npz.xz"))
def test_waymo_pack(path: Path, tmp_path: Path) -> None:
    """The first scenario of each shard with every ego."""
    log = next(iter(module(path.parent / "womd_reader.py").read_shard(path)))
    (tmp_path / "log.json").write_text(json.dumps(unpacker().gpudrive_json(log)))
    for scenario in scenarios_of("waymo-json", tmp_path, "all"):
        check(scenario)


@pytest.mark.parametrize("path", shared_params("data/*_scenarionet/*.npz.xz"))
def test_scenarionet(path: Path, tmp_path: Path) -> None:
    data = module(path.parent / "scenarionet_reader.py").read(path)
    (tmp_path / "log.pkl").write_bytes(pickle.dumps(data))
    (scenario,) = scenarios_of("scenarionet", tmp_path)
    check(scenario)
    if "nuscenes" in scenario.source:
        assert "speed limits" in scenario.tags["unknown"] and not scenario.map.has_speed_limit.any()
    lights = [
        key for key, row in data["dynamic_map_states"].items() if str(row.get("lane", key)) in scenario.map.lane_ids
    ]
    assert bool(lights) == bool(len(scenario.lights.lane))


@pytest.mark.parametrize("path", shared_params("data/av2_*/*-*"))
def test_argoverse(path: Path) -> None:
    (scenario,) = scenarios_of("argoverse", path)
    check(scenario)
    assert len(scenario.map.drivable) and {"speed limits", "traffic lights"} == set(
        scenario.tags["unknown"].split(", ")
    )


@pytest.mark.parametrize("path", shared_params("data/commonroad/*.xml*"))
def test_commonroad(path: Path) -> None:
    reader = load_source("commonroad")
    (log,) = (log for item in reader.items(LogChoice(data=path)) for log in reader.scenarios(item))
    assert isinstance(log, Recording)
    found = list(choose_egos(log, "all"))
    for scenario in found:
        check(scenario)
    assert found and "drivable area" in found[0].tags["unknown"]
    with pytest.raises(BadInput, match="recorded from outside"):
        list(choose_egos(log))


@pytest.mark.parametrize("path", shared_params("data/womd_proto/*.tfrecord*"))
def test_waymo_proto(path: Path) -> None:
    source = load_source("waymo-proto")
    for log in source.scenarios(source.items(LogChoice(data=path))[0]):
        if isinstance(log, Refused):
            assert "no Scenario message" in log.reason and "example" in path.name
        else:
            (scenario,) = choose_egos(log)
            check(scenario)
            assert scenario.map.has_speed_limit.any()
