"""One log in the formats of several sources: all readers find the same traffic on the same road."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pytest

from radp.cli.main import main
from radp.runs.errors import BadInput
from radp.scenario import Box, LightState, ObjectType, RoadMap
from radp.scenario.egos import choose_egos
from radp.scenario.recording import Recording
from radp.scenario.store import ScenarioStore
from radp.sources.argoverse.categories import EGO_TO_CENTER
from radp.sources.convert import Refused, SourceError, load_source
from radp.sources.settings import LogChoice
from tests.sources.made_formats import WRITERS, commonroad, tfrecord, waymo_scenario, write_sensor
from tests.sources.made_logs import waymo_json


def read(source: str, data: Path) -> Recording:
    reader = load_source(source)
    (item,) = reader.items(LogChoice(data=data))
    (found,) = reader.scenarios(item)
    assert isinstance(found, Recording)
    return found


def links(road: RoadMap) -> dict[str, set[str]]:
    return {road.lane_ids[i]: {road.lane_ids[j] for j in road.successors[i]} for i in range(len(road))}


def boxes() -> dict[str, np.ndarray]:
    """Track -> (FRAMES, 5) columns Box; NaN where it is not seen."""
    out = {}
    for one in waymo_json()["objects"]:
        moments = zip(one["position"], one["heading"], one["velocity"])
        rows = [(p["x"], p["y"], heading, v["x"], v["y"]) for p, heading, v in moments]
        out[str(one["id"])] = np.where(np.array(one["valid"])[:, None], rows, np.nan)
    return out


def turned(vectors: np.ndarray, angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return vectors @ np.array([[c, s], [-s, c]])


def assert_same_traffic(log: Recording) -> None:
    """The tracks of the log; Argoverse gives the ego by its rear axle, and CommonRoad was given full tracks alone."""
    wanted = boxes()
    if log.source.startswith("argoverse"):
        wanted["AV"] = wanted.pop("7") + np.array([EGO_TO_CENTER, 0.0, 0.0, 0.0, 0.0])
    if log.source == "commonroad":
        del wanted["9"]
    assert set(wanted) == set(log.tracks.ids)
    for key, rows in wanted.items():
        place, seen = log.tracks.ids.index(key), ~np.isnan(rows).any(1)
        np.testing.assert_array_equal(log.tracks.valid[place], seen)
        found, rows = log.tracks.state[place, seen], rows[seen]
        np.testing.assert_allclose(found[:, :2], rows[:, :2], atol=1e-4)
        np.testing.assert_allclose(found[:, Box.VX :], rows[:, Box.VX :], atol=1e-3)
        np.testing.assert_allclose(np.cos(found[:, Box.HEADING] - rows[:, Box.HEADING]), 1.0, atol=1e-6)
        assert log.tracks.type[place] == (ObjectType.PEDESTRIAN if key == "11" else ObjectType.VEHICLE)


@pytest.mark.parametrize("name", WRITERS)
def test_all_readers_find_the_same(tmp_path: Path, name: str) -> None:
    source, write = WRITERS[name]
    write(tmp_path)
    log = read(source, tmp_path)
    assert_same_traffic(log)
    assert links(log.map) == {"1": {"2", "3"}, "2": set(), "3": set(), "4": set(), "5": set()}
    assert log.sdc == {"argoverse": "AV", "commonroad": None}.get(source, "7")
    np.testing.assert_array_equal(np.diff(log.time_us), 100_000)
    if name == "waymo-proto":
        np.testing.assert_allclose(log.map.speed_limit, 25 * 0.44704)
        assert [log.map.lane_ids[i] for i in log.lights.lane] == ["2"] and len(log.map.crosswalks) == 1
        assert (log.lights.state[:30] == LightState.GREEN).all() and (log.lights.state[30:] == LightState.RED).all()
    if source == "argoverse":
        assert log.map.is_connector.tolist() == [lane == "3" for lane in log.map.lane_ids]
        assert "speed limits" in log.tags["unknown"] and len(log.map.drivable) == 1


def test_a_record_of_another_kind_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord"
    path.write_bytes(b"".join(map(tfrecord, (b"\x0a\x03abc", b"\xff\xff", waymo_scenario()))))
    reader = load_source("waymo-proto")
    other, junk, log = reader.scenarios(reader.items(LogChoice(data=path))[0])
    assert isinstance(other, Refused) and "no Scenario message" in other.reason and other.name == "x.tfrecord#0"
    assert isinstance(junk, Refused) and "cut short" in junk.reason
    assert isinstance(log, Recording) and log.token == "made"
    path.write_bytes(tfrecord(waymo_scenario())[:-9])
    with pytest.raises(SourceError, match="the last record is cut short"):
        list(reader.scenarios(reader.items(LogChoice(data=path))[0]))


def written(root: ET.Element, folder: Path) -> Path:
    (folder / "made.xml").write_bytes(ET.tostring(root))
    return folder


def test_commonroad_knows_neighbours_signs_and_what_stands(tmp_path: Path) -> None:
    root = commonroad()
    one, five = (root.find(f"lanelet[@id='{key}']") for key in "15")
    assert one is not None and five is not None
    one.append(ET.Element("adjacentRight", ref="5", drivingDir="same"))
    five.append(ET.Element("adjacentLeft", ref="1", drivingDir="same"))
    one.remove(one.find("speedLimit"))
    five.remove(five.find("speedLimit"))
    one.append(ET.Element("trafficSignRef", ref="70"))
    sign = "<trafficSignID>274</trafficSignID><additionalValue>8.5</additionalValue>"
    root.append(ET.fromstring(f'<trafficSign id="70"><trafficSignElement>{sign}</trafficSignElement></trafficSign>'))
    shape = "<shape><circle><radius>0.4</radius></circle></shape>"
    state = "<position><point><x>30</x><y>-5</y></point></position><orientation><exact>0</exact></orientation>"
    zone = f"<type>constructionZone</type>{shape}<initialState>{state}</initialState>"
    root.append(ET.fromstring(f'<staticObstacle id="12">{zone}</staticObstacle>'))
    log = read("commonroad", written(root, tmp_path))
    first, second = log.map.lane_index["1"], log.map.lane_index["5"]
    assert log.map.right_neighbor[first] == second and log.map.left_neighbor[second] == first
    assert log.map.speed_limit[first] == 8.5 and not log.map.has_speed_limit[second]
    assert np.allclose(log.map.left[first][:, 1], 0.0) and np.allclose(log.map.right[first][:, 1], -3.6)
    stands = log.tracks.ids.index("12")
    assert log.tracks.valid[stands].all() and (log.tracks.state[stands, :, :2] == (30.0, -5.0)).all()
    assert log.tracks.type[stands] == ObjectType.BARRIER and tuple(log.tracks.size[stands, :2]) == (0.8, 0.8)


def test_commonroad_in_seconds_and_at_another_rate(tmp_path: Path) -> None:
    """Before 2018b times are seconds. Steps said to be 0.2 s apart: twice as many frames, everybody half as fast."""
    root = commonroad()
    for time in root.iterfind(".//time/exact"):
        time.text = str(0.1 * int(time.text or ""))
    assert_same_traffic(read("commonroad", written(root, tmp_path)))
    slow = commonroad()
    slow.attrib["timeStepSize"] = "0.2"
    log = read("commonroad", written(slow, tmp_path))
    track = log.tracks.state[log.tracks.ids.index("7")]
    np.testing.assert_allclose(track[::2, :2], boxes()["7"][:, :2], atol=1e-9)
    np.testing.assert_allclose(np.diff(track[:, 0]), 0.4, atol=1e-9)


def test_argoverse_boxes_turn_with_the_ego(tmp_path: Path) -> None:
    place, turn = write_sensor(tmp_path), 0.4
    poses = pa.feather.read_table(place).to_pydict()
    x, y = turned(np.stack((poses["tx_m"], poses["ty_m"]), 1), turn).T
    count = len(x)
    poses |= {"tx_m": x, "ty_m": y, "qw": [np.cos(turn / 2)] * count, "qz": [np.sin(turn / 2)] * count}
    pa.feather.write_feather(pa.table(poses), place)
    log = read("argoverse", tmp_path)
    found = log.tracks.state[log.tracks.ids.index("8")]
    np.testing.assert_allclose(found[:, :2], turned(boxes()["8"][:, :2], turn), atol=1e-6)
    np.testing.assert_allclose(found[:, Box.HEADING], turn, atol=1e-9)


def test_the_verb_keeps_every_ego_of_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(commonroad(), tmp_path)
    with pytest.raises(BadInput, match="recorded from outside"):
        list(choose_egos(read("commonroad", tmp_path)))
    given = ["data", "convert", "--source", "commonroad", "--data", str(tmp_path / "made.xml")]
    assert main([*given, "--ego", "all", "--out", str(tmp_path / "all")]) == 0
    store = ScenarioStore.open(tmp_path / "all")
    assert {scenario.tags["ego"] for scenario in store} >= {"7", "8"}
    assert f"{tmp_path / 'all'}: {len(store)} scenarios on 1 maps from 1 logs" in capsys.readouterr().out
