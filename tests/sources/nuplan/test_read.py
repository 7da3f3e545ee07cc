"""Reading of made logs and maps: frames, boxes, lights, borders, the cut, and files that are broken."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from radp.bench.convert import bench_convert
from radp.cli.convert import DataConvert
from radp.runs.errors import BadInput
from radp.scenario import Ego, LightState, ObjectType, Scenario
from radp.scenario.store import ScenarioStore
from radp.sources.convert import convert
from radp.sources.nuplan.layers import find_map, key_of, read_layers
from radp.sources.nuplan.log_db import UNTAGGED, LogDb, Pick, yaw_of
from radp.sources.nuplan.road import city_road
from radp.sources.nuplan.scenario import read_scenario
from radp.sources.nuplan.source import NUPLAN
from radp.sources.settings import LogChoice
from tests.sources.nuplan.made_files import CITY, FRAMES, PERIOD_US, T0_US, X0, Y0, frame_token, make_log, make_map

pytest.importorskip("pyogrio", reason='pip install "radp[nuplan]"')
KIND = "changing_lane"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nuplan")
    make_log(folder / "db" / "good.db", [(1000, KIND), (1300, "behind_long_vehicle")])
    make_map(folder / "maps")
    return folder


@pytest.fixture(scope="module")
def scenario(data: Path) -> Scenario:
    (item,) = NUPLAN.items(LogChoice(db=data / "db", maps=data / "maps"))
    first, second = NUPLAN.scenarios(item)
    assert isinstance(first, Scenario)
    assert isinstance(second, Scenario)
    assert (first.kind, second.kind) == (KIND, "behind_long_vehicle")
    first.validate()
    return first


def test_frames(scenario: Scenario) -> None:
    first = 1000 - 60  # 3 s before the tag at 20 Hz
    assert scenario.token == frame_token("good", 1000)
    assert (scenario.start, scenario.frames) == (20, 151)
    np.testing.assert_array_equal(scenario.time_us, T0_US + PERIOD_US * np.arange(first - 40, first + 301, 2))
    np.testing.assert_allclose(np.diff(scenario.ego[:, Ego.X]), 0.5)
    assert (scenario.ego[:, Ego.AY] == 0.1).all()
    assert scenario.route == ("10", "30", "11")
    assert scenario.goal is not None


def test_untagged_drives_are_20_s_from_their_frame(data: Path) -> None:
    with LogDb(data / "db" / "good.db") as log:
        pick = Pick(frame_token("good", 1000), UNTAGGED, T0_US + 1000 * PERIOD_US, log.path, CITY)
        found = read_scenario(log, pick, data / "maps")
        early = Pick(frame_token("good", 80), KIND, T0_US + 80 * PERIOD_US, log.path, CITY)
        short = read_scenario(log, early, data / "maps")
    assert (found.frames, found.time_us[found.start]) == (201, pick.time_us)
    assert (short.start, short.frames) == (10, 151), "only 1 s of history lies before it"


def test_boxes(scenario: Scenario) -> None:
    tracks = scenario.tracks
    kinds = [ObjectType(kind) for kind in tracks.type]
    assert kinds == [ObjectType.VEHICLE, ObjectType.PEDESTRIAN, ObjectType.TRAFFIC_CONE], "by type, not as in the file"
    assert tracks.valid.all()
    assert (tracks.state[0, :, 3] == 4.0).all()
    assert (tracks.state[2, :, 3:] == 0.0).all(), "static objects have no velocity"
    assert (tracks.state[1, :, 3:] == 0.0).all()
    assert scenario.tags["unknown"] == "velocities"


def test_lights(scenario: Scenario) -> None:
    assert [scenario.map.lane_ids[lane] for lane in scenario.lights.lane] == ["301"]
    frames = (scenario.time_us - T0_US) // PERIOD_US
    expected = np.where(frames < FRAMES // 2, LightState.RED, LightState.UNKNOWN)
    np.testing.assert_array_equal(scenario.lights.state[:, 0], expected)


def test_road(scenario: Scenario, data: Path) -> None:
    road = scenario.map
    assert road.lane_ids == ("101", "102", "111", "112", "302", "301"), "connectors in the order of their polygons"
    assert "901" in city_road(read_layers(find_map(data / "maps", CITY)), CITY)[0].lane_ids
    for lane in range(len(road)):
        assert road.right[lane][0, 0] < road.right[lane][-1, 0], "borders run with the lane"
        assert road.left[lane][0, 1] > road.right[lane][0, 1]
    lanes = road.lane_index
    assert road.left_neighbor[lanes["102"]] == lanes["101"]
    assert road.right_neighbor[lanes["101"]] == lanes["102"]
    assert (road.left_neighbor[lanes["101"]], road.left_neighbor[lanes["302"]]) == (-1, -1)
    assert road.successors[lanes["102"]].tolist() == [lanes["302"]]
    assert road.predecessors[lanes["112"]].tolist() == [lanes["302"]]
    assert road.has_speed_limit.tolist() == [True, True, False, True, False, False]
    assert [road.stop_lines.ids[i] for i in road.lane_stop_lines[lanes["301"]]] == ["70"]
    assert road.drivable.ids == ("60", "61", "62")
    np.testing.assert_allclose(road.centerlines[lanes["102"]][0], [X0, Y0 + 3.0], atol=1e-6)


def test_same_part_of_a_city_is_one_map(data: Path) -> None:
    (item,) = NUPLAN.items(LogChoice(db=data / "db", maps=data / "maps"))
    assert len({id(scenario.map) for scenario in NUPLAN.scenarios(item)}) == 1


def test_ids_and_headings() -> None:
    assert [key_of(v) for v in (17, 17.0, "17", np.int64(17), None, float("nan"), -1, "")] == ["17"] * 4 + [None] * 4
    half = np.array([[np.cos(0.4), 0.0, 0.0, np.sin(0.4)], [-2 * np.cos(0.4), 0.0, 0.0, -2 * np.sin(0.4)]])
    np.testing.assert_allclose(yaw_of(half), 0.8)


LOST = {"e": "lidar_box", "f": "scenario_tag", "g": "traffic_light_status", "h": "ego_pose", "i": "track"}


def broken_folder(data: Path, folder: Path) -> Path:
    """A good log between broken ones: cut short, empty, text, and without one of the tables."""
    good = (data / "db" / "good.db").read_bytes()
    folder.mkdir()
    (folder / "a.db").write_bytes(good[: len(good) // 2])
    (folder / "good.db").write_bytes(good)
    (folder / "c.db").write_bytes(b"")
    (folder / "d.db").write_bytes(b"hello" * 1000)
    for name, table in LOST.items():
        path = make_log(folder / f"{name}.db", [(1000, KIND)], box_step=50)
        with sqlite3.connect(path) as connection:
            connection.execute(f"DROP TABLE {table}")
        connection.close()
    return folder


def test_broken_logs_cost_themselves_only(data: Path, tmp_path: Path) -> None:
    logs = broken_folder(data, tmp_path / "db")
    card = convert(NUPLAN, LogChoice(db=logs, maps=data / "maps"), tmp_path / "store")
    assert ScenarioStore.open(tmp_path / "store").tokens() == [frame_token("good", f) for f in (1000, 1300)]
    failed = card["failed"]
    assert len(failed) == 3 + len(LOST), failed
    assert {"a", "c", "d"} < set(failed)
    for name, table in LOST.items():
        reason = failed.get(name) or failed[frame_token(name, 1000)]
        assert f"no such table: {table}" in reason
        assert f"{name}.db" in reason
    assert all("\n" not in reason for reason in failed.values())


def test_values_of_the_wrong_type(data: Path, tmp_path: Path) -> None:
    changes = {
        "text": "UPDATE lidar_pc SET token = 'abcd' WHERE token IN (SELECT lidar_pc_token FROM scenario_tag); "
        "UPDATE scenario_tag SET lidar_pc_token = 'abcd'",
        "word": "UPDATE ego_pose SET x = 'somewhere'",
        "hole": "DELETE FROM ego_pose WHERE rowid % 7 = 0",
        "kind": "UPDATE category SET name = 'spaceship' WHERE name = 'vehicle'",
    }
    for name, change in changes.items():
        path = make_log(tmp_path / "db" / f"{name}.db", [(1000, KIND)], box_step=50, goals=name != "hole")
        with sqlite3.connect(path) as connection:
            connection.executescript(change)
        connection.close()
    wanted = tmp_path / "all.yaml"
    wanted.write_text(f"scenario_types: [{KIND}]\n")
    logs = LogChoice(db=tmp_path / "db", maps=data / "maps", filter=wanted)
    card = convert(NUPLAN, logs, tmp_path / "store", isolated=False)
    reasons = {name: card["failed"].get(name) or card["failed"][frame_token(name, 1000)] for name in changes}
    assert "no blob" in reasons["text"]
    assert "no number" in reasons["word"]
    assert "has no ego pose" in reasons["hole"]
    assert "spaceship" in reasons["kind"]


@pytest.mark.parametrize(
    ("layer", "row", "sentence"),
    [
        ("lanes_polygons", 102, "lane 102 has no usable polygon"),
        ("baseline_paths", 5302, "connector 302 has no usable centre line"),
        ("boundaries", 1011, "lane 101 has no usable left border"),
        ("lane_groups_polygons", 11, "roadblock 11 has no usable polygon"),
        ("intersections", 50, "row 50 of intersections has no usable polygon"),
        ("lanes_polygons", 901, None),  # 5 km away
    ],
)
def test_empty_geometry(data: Path, tmp_path: Path, layer: str, row: int, sentence: str | None) -> None:
    make_map(tmp_path / "maps", empty=(layer, row))
    card = convert(NUPLAN, LogChoice(db=data / "db", maps=tmp_path / "maps"), tmp_path / "store", isolated=False)
    assert card["scenarios"] == (2 if sentence is None else 0)
    assert set(card["failed"]) == (set() if sentence is None else {frame_token("good", f) for f in (1000, 1300)})
    assert all(sentence is not None and sentence in reason for reason in card["failed"].values())


def test_broken_maps(data: Path, tmp_path: Path) -> None:
    whole = (data / "maps" / CITY / "1" / "map.gpkg").read_bytes()
    sentences = {}
    for name, content in (("cut", whole[: len(whole) // 3]), ("text", b"map"), ("none", None)):
        path = tmp_path / name / CITY / "1" / "map.gpkg"
        path.parent.mkdir(parents=True)
        if content is not None:
            path.write_bytes(content)
        logs = LogChoice(db=data / "db", maps=tmp_path / name)
        card = convert(NUPLAN, logs, tmp_path / f"{name}-store", isolated=False)
        assert card["scenarios"] == 0
        sentences[name] = card["failed"][frame_token("good", 1000)]
    make_map(tmp_path / "layer", without="boundaries")
    card = convert(NUPLAN, LogChoice(db=data / "db", maps=tmp_path / "layer"), tmp_path / "layer-store", isolated=False)
    assert "the layer boundaries is missing" in card["failed"][frame_token("good", 1000)]
    assert "holds no map of us-ma-boston" in sentences["none"]
    assert "map.gpkg" in sentences["cut"]
    assert "not a readable map" in sentences["text"]


def test_command(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = tmp_path / "some14.yaml"
    wanted.write_text(f"scenario_types: [{KIND}]\nscenario_tokens: ['{frame_token('good', 1000)}', '{'0' * 16}']\n")
    logs = LogChoice(db=data / "db", maps=data / "maps", filter=wanted)
    code = DataConvert("nuplan", tmp_path / "store", logs=logs)()
    assert code == 1
    said = capsys.readouterr().out
    assert "1 scenarios" in said
    assert "1 of its scenarios are in none of the 1 logs" in said
    wanted.write_text(f"scenario_types: [{KIND}]\n")
    assert DataConvert("nuplan", tmp_path / "again", logs=logs)() == 0
    assert ScenarioStore.open(tmp_path / "again").kinds() == {KIND: 1}


def test_what_must_be_given(data: Path, tmp_path: Path) -> None:
    for options, sentence in (
        (LogChoice(db=data / "db"), "nuplan needs --db"),
        (LogChoice(db=tmp_path / "no", maps=data / "maps"), "does not exist"),
        (LogChoice(db=data / "maps", maps=data / "maps"), "holds no .db files"),
    ):
        with pytest.raises(BadInput, match=sentence):
            NUPLAN.items(options)


def test_the_speed_of_conversion_is_reported_for_each_log(data: Path) -> None:
    figures = bench_convert(data / "db", data / "maps", repeats=1)
    assert figures["logs"] and all(log["scenarios"] > 0 < log["cpu_ms"] for log in figures["logs"].values())
