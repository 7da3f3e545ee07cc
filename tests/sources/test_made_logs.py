"""Logs made by hand: what is rebuilt, who can be the ego, and how broken or hostile files end."""

from __future__ import annotations

import gzip
import json
import os
import pickle
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from radp.scenario import Ego, LightState
from radp.scenario.egos import choose_egos
from radp.scenario.recording import NoEgo
from radp.scenario.store import ScenarioStore
from radp.sources.convert import SourceError, convert, load_source
from radp.sources.scenarionet.unpickle import load_plain
from radp.sources.settings import LogChoice
from radp.sources.waymo.gpudrive import read_recording
from tests.sources.made_logs import scenarionet, waymo_json


@pytest.fixture
def waymo(tmp_path: Path) -> Path:
    path = tmp_path / "made.json"
    path.write_text(json.dumps(waymo_json()))
    return path


def test_lanes_are_linked_and_bordered(waymo: Path) -> None:
    road = read_recording(waymo).map
    after = {road.lane_ids[i]: {road.lane_ids[j] for j in road.successors[i]} for i in range(len(road))}
    assert after == {"1": {"2", "3"}, "2": set(), "3": set(), "4": set(), "5": set()}
    one, five, four = (road.lane_index[name] for name in ("1", "5", "4"))
    assert np.allclose(road.left[one][:, 1], 0.0) and np.allclose(road.right[one][:, 1], -3.6)  # painted lines
    assert np.allclose(road.left[five][5:-5, 1], -3.6)
    assert np.allclose(road.right[five][5:-5, 1], -5.4 - 1.85)  # the edge is too far to be the border
    assert np.allclose(road.left[four][5:-5, 1], 0.0)  # drives the other way: its left is the middle of the street
    assert road.right_neighbor[one] == five and road.left_neighbor[five] == one and road.left_neighbor[four] == -1
    assert road.roadblock[one] == road.roadblock[five] != road.roadblock[four]


def test_the_surface_reaches_to_the_edges_of_the_road(waymo: Path) -> None:
    import shapely

    areas = read_recording(waymo).map.drivable.polygons
    surface = shapely.union_all([shapely.Polygon(areas[i][0], areas[i][1:]) for i in range(len(areas))])
    assert surface.contains(shapely.Point(50, -8.9)) and not surface.contains(shapely.Point(50, -9.2))
    assert surface.contains(shapely.Point(150, 3.5)) and not surface.contains(shapely.Point(150, -8.0))


def test_the_logged_ego(waymo: Path) -> None:
    log = read_recording(waymo)
    (scenario,) = choose_egos(log)
    scenario.validate()
    assert (scenario.token, scenario.kind, scenario.frames, scenario.start) == ("made", "straight", 81, 20)
    assert scenario.tags["backfilled"] == "10" and "lane borders" in scenario.tags["rebuilt"]
    assert scenario.tags["unknown"] == "speed limits" and not scenario.map.has_speed_limit.any()
    rear = 1.461 * 4.8 / 5.176
    assert np.allclose(scenario.ego[:, Ego.X], 20 - rear + 0.8 * (np.arange(101) - 10)) and np.allclose(
        scenario.ego[:, Ego.VX], 8
    )
    lanes = [scenario.map.roadblocks.ids[scenario.map.roadblock[scenario.map.lane_index[n]]] for n in ("1", "2")]
    assert list(scenario.route) == lanes  # 20 m to 92 m are on lane 1; beyond the log it goes straight on
    assert "7" not in scenario.tracks.ids and np.allclose(
        scenario.tracks.state[0, :, 0], 5 + 0.8 * (np.arange(101) - 10)
    )
    late = scenario.tracks.ids.index("9")
    assert not scenario.tracks.valid[late, :50].any() and scenario.tracks.valid[late, 50:].all()
    states = scenario.lights.state[:, 0]
    assert states[10] == LightState.GREEN and states[40] == LightState.RED and not states[:10].any()


def test_every_vehicle_with_a_full_track_may_be_the_ego(waymo: Path) -> None:
    log = read_recording(waymo)
    assert [s.tags["ego"] for s in choose_egos(log, "all")] == ["7", "8", "10"]
    (other,) = choose_egos(log, "8")
    assert other.token == "made:8" and "7" in other.tracks.ids
    with pytest.raises(ValueError, match="'9' is not there from start to end"):
        list(choose_egos(log, "9"))
    with pytest.raises(ValueError, match="'11' is a PEDESTRIAN"):
        list(choose_egos(log, "11"))
    with pytest.raises(NoEgo, match="has no track 'no such track'"):
        list(choose_egos(log, "no such track"))


def test_scenarionet_knows_links_limits_and_lights(tmp_path: Path) -> None:
    (tmp_path / "made.pkl").write_bytes(pickle.dumps(scenarionet()))
    (log,) = load_source("scenarionet").scenarios(load_source("scenarionet").items(LogChoice(data=tmp_path))[0])
    (scenario,) = choose_egos(log)
    road = scenario.map
    assert road.speed_limit[road.lane_index["1"]] == pytest.approx(25 * 0.44704)
    assert {road.lane_ids[j] for j in road.successors[road.lane_index["1"]]} == {"2", "3"}
    assert scenario.lights.state[15, 0] == LightState.GREEN and scenario.lights.state[60, 0] == LightState.UNKNOWN
    assert "lane successors" not in scenario.tags["rebuilt"]


class Bomb:
    """A pickle of it would run a command."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple:
        return os.system, (self.command,)


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_that_would_run_code_does_not(tmp_path: Path, protocol: int) -> None:
    mark = tmp_path / "was here"
    data = {**scenarionet(), "extra": Bomb(f"touch '{mark}'")}
    (tmp_path / "bomb.pkl").write_bytes(pickle.dumps(data, protocol=protocol))
    with pytest.raises(SourceError, match=r"bomb\.pkl: the pickle cannot be read \(it asks for \w+\.system"):
        load_plain(tmp_path / "bomb.pkl")
    assert not mark.exists()


@pytest.mark.parametrize("name", ("eval", "exec", "getattr", "open", "__import__", "object", "type"))
def test_no_builtin_that_leads_further_is_admitted(tmp_path: Path, name: str) -> None:
    (tmp_path / "x.pkl").write_bytes(f"cbuiltins\n{name}\n.".encode())
    with pytest.raises(SourceError, match=f"it asks for builtins.{name}"):
        load_plain(tmp_path / "x.pkl")


def hostile_json() -> dict[str, bytes]:
    log, text = waymo_json(), json.dumps(waymo_json())
    empty_geometry = {**log, "roads": [{**r, "geometry": []} for r in log["roads"]]}
    short = {**log, "objects": [log["objects"][0], {**log["objects"][1], "heading": [0.0]}]}
    return {
        "nan": text.replace("8.0", "NaN", 1).encode(),
        "infinity": text.replace("8.0", "-Infinity", 1).encode(),
        "truncated": text[: len(text) // 2].encode(),
        "gzip": gzip.compress(text.encode())[:500],
        "empty": b"",
        "list": b"[]",
        "deep": b"[" * 100_000,
        "binary": bytes(range(256)) * 4,
        "no objects": json.dumps({**log, "objects": []}).encode(),
        "no geometry": json.dumps(empty_geometry).encode(),
        "uneven": json.dumps(short).encode(),
        "no sdc": json.dumps({**log, "metadata": {"sdc_track_index": 99}}).encode(),
        "no roads": json.dumps({k: v for k, v in log.items() if k != "roads"}).encode(),
        "text for number": text.replace("8.0", '"fast"', 1).encode(),
    }


def test_hostile_files_cost_only_themselves(tmp_path: Path, waymo: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    bad = hostile_json()
    for name, content in bad.items():
        (logs / f"{name}.json").write_bytes(content)
    (logs / "good.json").write_bytes(waymo.read_bytes())
    card = convert(
        load_source("waymo-json"), LogChoice(data=logs), tmp_path / "out", finish=partial(choose_egos, ego="sdc")
    )
    assert ScenarioStore.open(tmp_path / "out").tokens() == ["made"]
    assert set(card["failed"]) == {f"{name}.json" for name in bad}
    for name, reason in card["failed"].items():
        assert name in reason and "\n" not in reason and len(reason) < 300


def test_one_lane_without_geometry_costs_only_itself(tmp_path: Path) -> None:
    log = waymo_json()
    log["roads"].append({"id": 99, "type": "lane", "map_element_id": 2, "geometry": []})
    log["roads"].append({"id": 98, "type": "lane", "map_element_id": 2, "geometry": [{"x": 1.0, "y": 1.0}] * 5})
    (tmp_path / "x.json").write_text(json.dumps(log))
    assert set(read_recording(tmp_path / "x.json").map.lane_ids) == {"1", "2", "3", "4", "5"}


@pytest.mark.parametrize(
    "content",
    (b"<commonRoad", b"<other/>", b'<!DOCTYPE x [<!ENTITY a "b">]><commonRoad/>', b"<commonRoad/>",
     b'<commonRoad timeStepSize="0"/>', b'<commonRoad timeStepSize="0.1"/>'),
)  # fmt: skip
def test_broken_xml_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.xml").write_bytes(content)
    with pytest.raises(SourceError, match=r"^x\.xml: "):
        list(load_source("commonroad").scenarios(load_source("commonroad").items(LogChoice(data=tmp_path))[0]))


@pytest.mark.parametrize("content", (b"", b"PAR1PAR1", b"ARROW1\0\0"))
def test_broken_tables_are_one_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "city_SE3_egovehicle.feather").write_bytes(content)
    (tmp_path / "log" / "annotations.feather").write_bytes(content)
    (tmp_path / "scenario_x.parquet").write_bytes(content)
    source = load_source("argoverse")
    items = source.items(LogChoice(data=tmp_path))
    assert [item.name for item in items] == ["log", "scenario_x.parquet"]
    for item in items:
        with pytest.raises(SourceError, match="cannot be read"):
            list(source.scenarios(item))
