"""Files with right checksums and wrong content: refused with a sentence wherever they come in, before any kernel."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from radp.geometry.ragged import Polygons, Ragged
from radp.scenario import Scenario
from radp.scenario import store as stores
from radp.scenario.neutral_json import NeutralJsonError, scenario_from_json, scenario_to_json
from radp.scenario.splits import open_split
from radp.scenario.store import ScenarioStore, ScenarioWriter, StoreError
from radp.storage.codec import VERSION, CodecError, decode_array, decode_strings, encode_strings
from radp.storage.records import pack_blobs, unpack_blobs
from tests.small_scenarios import small_scenario

BASE = small_scenario()
ROAD = BASE.map


def changed(array: np.ndarray, index: Any, value: float) -> np.ndarray:
    out = array.copy()
    out[index] = value
    return out


def of_map(**fields: Any) -> Scenario:
    return replace(BASE, map=replace(ROAD, **fields))


def of_tracks(**fields: Any) -> Scenario:
    return replace(BASE, tracks=replace(BASE.tracks, **fields))


def of_lights(**fields: Any) -> Scenario:
    return replace(BASE, lights=replace(BASE.lights, **fields))


def values(rows: Ragged, index: Any, value: float) -> Ragged:
    return replace(rows, values=changed(rows.values, index, value))


def moved(areas: Polygons, value: float) -> Polygons:
    return replace(areas, rings=values(areas.rings, (0, 0), value))


FAR_LINE = Ragged.from_rows([[(0, 0), (9e7, 0)]] * 3, width=2)
WRONG: dict[str, tuple[Scenario, str]] = {
    "successors": (of_map(successors=values(ROAD.successors, 0, 2**40)), "successors points to 1099511627776"),
    "predecessors": (of_map(predecessors=values(ROAD.predecessors, 0, -5)), "predecessors points to -5"),
    "stop lines": (of_map(lane_stop_lines=values(ROAD.lane_stop_lines, 0, 7)), "lane_stop_lines points to 7"),
    "left": (of_map(left_neighbor=changed(ROAD.left_neighbor, 0, 2**40)), "left_neighbor points to"),
    "right": (of_map(right_neighbor=changed(ROAD.right_neighbor, 0, -2)), "right_neighbor points to -2"),
    "circle": (of_map(left_neighbor=np.array([1, 0, -1])), "left_neighbor leads round in a circle"),
    "own left": (of_map(left_neighbor=np.array([0, -1, -1])), "left_neighbor leads round in a circle"),
    "block": (of_map(roadblock=changed(ROAD.roadblock, 1, 2**40)), "roadblock points to"),
    "offsets": (
        of_map(centerlines=replace(ROAD.centerlines, offsets=np.array([0, 5, 99, 15]))),
        "centerlines has offsets that do not cut 15 values",
    ),
    "first offset": (of_map(left=replace(ROAD.left, offsets=np.array([-9, 5, 10, 15]))), "left has offsets"),
    "ring offsets": (
        of_map(lane_polygons=replace(ROAD.lane_polygons, offsets=np.array([0, 1, 2, 2**40]))),
        "lane_polygons has offsets",
    ),
    "integers": (of_map(successors=replace(ROAD.successors, values=ROAD.successors.values.astype(float))), "float64"),
    "single": (of_map(speed_limit=ROAD.speed_limit.astype(np.float32)), "speed_limit holds float32, expected float64"),
    "NaN limit": (of_map(speed_limit=changed(ROAD.speed_limit, 0, np.nan)), "speed_limit holds a value that is not"),
    "negative limit": (of_map(speed_limit=changed(ROAD.speed_limit, 1, -3.0)), "speed_limit holds -3"),
    "limit of nothing": (of_map(speed_limit=changed(ROAD.speed_limit, 1, 0.0)), "lane '2' has a speed limit that is"),
    "far area": (of_map(intersections=replace(ROAD.intersections, polygons=moved(ROAD.intersections.polygons, 1e308))),
                 r"intersections holds 1e\+308"),
    "NaN area": (of_map(stop_lines=replace(ROAD.stop_lines, polygons=moved(ROAD.stop_lines.polygons, np.nan))),
                 "stop_lines holds a value that is not finite"),
    "names": (of_map(crosswalks=replace(ROAD.stop_lines, ids=())), "crosswalks has 0 ids for 1 areas"),
    "long lane": (of_map(centerlines=FAR_LINE), r"lane '1' has a centerline of 9e\+07 m"),
    "far lane": (of_map(right=values(ROAD.right, (7, 1), -9e8)), r"lane '2' has a right that holds -9e\+08"),
    "NaN ego": (replace(BASE, ego=changed(BASE.ego, (4, 3), np.nan)), "ego holds a value that is not finite"),
    "far ego": (replace(BASE, ego=changed(BASE.ego, (0, 1), 1e308)), r"ego holds 1e\+308"),
    "fast ego": (replace(BASE, ego=changed(BASE.ego, (0, 3), 1e7)), r"ego holds 1e\+07, expected -1e\+06 to 1e\+06"),
    "flat ego": (replace(BASE, ego=BASE.ego.ravel()), "ego has shape"),
    "far goal": (replace(BASE, goal=np.array([0.0, 2e8, 0.0])), r"goal holds 2e\+08"),
    "gap": (replace(BASE, time_us=BASE.time_us + 10**9 * (np.arange(6) > 2)), "time_us goes on by 1000.1 s at frame 3"),
    "microseconds": (replace(BASE, time_us=np.arange(6)), "time_us goes on by 1e-06 s at frame 1, expected about 0.1"),
    "end of time": (replace(BASE, time_us=BASE.time_us + 2**62), "time_us holds"),
    "float times": (replace(BASE, time_us=BASE.time_us.astype(float)), "time_us holds float64, expected int64"),
    "dt": (replace(BASE, dt=1e-9), "dt is 1e-09"),
    "negative size": (of_tracks(size=changed(BASE.tracks.size, (0, 1), -2.0)), "tracks.size holds -2"),
    "no size": (of_tracks(size=changed(BASE.tracks.size, (0, 0), 0.0)), "a length or width of 0"),
    "huge size": (of_tracks(size=changed(BASE.tracks.size, (1, 0), 1e9)), r"tracks.size holds 1e\+09"),
    "kinds": (of_tracks(type=np.array([0, 200], np.uint8)), "tracks.type holds 200"),
    "signed kinds": (of_tracks(type=np.array([0, -1], np.int8)), "tracks.type holds int8"),
    "twins": (of_tracks(ids=("car", "car")), "tracks.ids are not unique"),
    "one name": (of_tracks(ids=("car",)), r"tracks.type has shape \(2,\), expected \(1,\)"),
    "light lane": (of_lights(lane=np.array([2**40])), "lights.lane points to"),
    "light state": (of_lights(state=changed(BASE.lights.state, (0, 0), 9)), "lights.state points to 9"),
}  # fmt: skip


@pytest.fixture()
def unchecked(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, list[Scenario]], Path]:
    """Writes a store as somebody would who does not ask radp whether it is right; checksums are."""

    def write(path: Path, items: list[Scenario]) -> Path:
        with monkeypatch.context() as patch:
            patch.setattr(stores.Scenario, "validate", lambda self: None)
            with ScenarioWriter(path) as writer:
                for scenario in items:
                    writer.add(scenario)
        return path

    return write


@pytest.mark.parametrize("name", WRONG)
def test_a_store_with_wrong_content_is_refused(name: str, tmp_path: Path, unchecked: Any) -> None:
    scenario, words = WRONG[name]
    store = ScenarioStore.open(unchecked(tmp_path / "store", [scenario]))
    with pytest.raises(StoreError, match=words) as caught:
        store[0]
    assert str(tmp_path / "store") in str(caught.value)


@pytest.mark.parametrize("name", WRONG)
def test_nothing_wrong_is_written(name: str, tmp_path: Path) -> None:
    scenario, words = WRONG[name]
    with ScenarioWriter(tmp_path / "store") as writer, pytest.raises(ValueError, match=words):
        writer.add(scenario)


def test_scenarios_with_wrong_content_count_as_missing_where_that_is_allowed(tmp_path: Path, unchecked: Any) -> None:
    items = [small_scenario("a"), replace(WRONG["successors"][0], token="b"), small_scenario("c")]
    path = unchecked(tmp_path / "store", items)
    split = open_split(path, allow_missing=True)
    assert split.tokens() == ["a", "c"] and [scenario.token for scenario in split] == ["a", "c"]
    assert split.missing == 1 and "2 of 3 scenarios can be read" in split.incomplete
    assert split[:1].missing == split.select([1]).missing == 1


JSON_WRONG: list[tuple[str, Any, str]] = [
    ("map.lanes.0.speed_limit_mps", float("nan"), "speed_limit holds a value that is not finite"),
    ("map.lanes.0.speed_limit_mps", -3, "speed_limit holds -3"),
    ("map.lanes.0.speed_limit_mps", "13", "speed_limit holds"),
    ("map.lanes.0.centerline.0.0", 1e308, r"1e\+308"),
    ("map.stop_lines.0.polygon.0.0", float("nan"), "stop_lines holds a value that is not finite"),
    ("agents.0.length", -4.5, "tracks.size holds -4.5"),
    ("agents.0.width", 0, "length or width of 0"),
    ("agents.0.x.1", 1e308, r"tracks.state holds 1e\+308"),
    ("expert.x.2", float("inf"), "ego holds a value that is not finite"),
    ("expert.time_us.5", 10**9 + 10**6, "time_us goes on by"),
    ("expert.time_us.5", 10**30, "expert"),
    ("mission_goal.0", 1e300, "goal holds"),
    ("dt", float("nan"), "dt is nan"),
]


@pytest.mark.parametrize(("place", "value", "words"), JSON_WRONG, ids=[f"{p}={v}" for p, v, _ in JSON_WRONG])
def test_neutral_json_with_wrong_content_is_refused(place: str, value: Any, words: str) -> None:
    data: Any = json.loads(json.dumps(scenario_to_json(BASE)))
    *way, last = [int(key) if key.isdecimal() else key for key in place.split(".")]
    inside = data
    for key in way:
        inside = inside[key]
    inside[last] = value
    with pytest.raises(NeutralJsonError, match=words):
        scenario_from_json(data, "x.json")


def test_a_few_bytes_cannot_ask_for_gigabytes() -> None:
    for shape in ((2**32 - 1, 8), (2**31,), (2**16, 2**16, 2)):
        blob = struct.pack(f"<BBB{len(shape)}I", VERSION, 2, len(shape), *shape) + bytes(64)
        with pytest.raises(CodecError, match="its shape would be"):
            decode_array(blob)
    with pytest.raises(CodecError, match="are said to hold"):
        decode_array(struct.pack("<BBB1I", VERSION, 0, 1, 2**29) + struct.pack("<BBBI", 255, 0, 8, 0) + bytes(9))
    with pytest.raises(CodecError, match="are said to hold"):
        decode_strings(struct.pack("<BI", VERSION, 2**32 - 1) + bytes(9))


def test_strings_are_strings() -> None:
    for text in ('{"a": 1}', '"abc"', "[1, 2]", '["a", null]', "[" * 100_000):
        raw = encode_strings(["x"])[:1] + struct.pack("<I", len(text))
        with pytest.raises(CodecError, match="not an encoded list of strings"):
            decode_strings(raw + pa.compress(text.encode(), "zstd", asbytes=True))


@pytest.mark.parametrize("length", ["-5", "x", "9" * 30, "1e3", ""])
def test_a_table_of_blobs_that_does_not_fit_is_refused(length: str) -> None:
    whole = pack_blobs({"a": b"abc"})
    table = encode_strings(["a", length])
    body = struct.pack("<I", len(table)) + table + b"abc"
    with pytest.raises(CodecError, match="is said to have"):
        unpack_blobs(whole[:8] + struct.pack("<I", zlib.crc32(body)) + body)
