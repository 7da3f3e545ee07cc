"""Logs that ask for too much, or hold numbers and names that no log has: each is refused at once, with a reason."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from radp.cli.main import main
from radp.runs.errors import printable
from radp.scenario.egos import choose_egos
from radp.sources.convert import SourceError, convert_item, load_source
from radp.sources.settings import LogChoice
from tests.sources import made_formats as made
from tests.sources.made_logs import FRAMES, scenarionet, waymo_json


def convert_all(source: str, data: Path, ego: str = "all") -> tuple[list[str], list[str]]:
    """Tokens of the scenarios of a folder, and the reasons for what was refused."""
    reader = load_source(source)
    tokens, reasons = [], []
    for item in reader.items(LogChoice(data=data, ego=ego)):
        try:
            found = convert_item(reader, partial(choose_egos, ego=ego), item)
        except SourceError as error:
            reasons.append(str(error))
            continue
        tokens += [row["token"] for row in found.rows.scenarios]
        reasons += [part.reason for part in found.refused] + ([found.empty] if found.empty else [])
    return tokens, reasons


@pytest.mark.parametrize("name", made.WRITERS)
def test_the_made_logs_are_sound(tmp_path: Path, name: str) -> None:
    source, write = made.WRITERS[name]
    write(tmp_path)
    tokens, reasons = convert_all(source, tmp_path)
    assert tokens and not reasons


Change = Callable[[Any], Any]


def _set(place: tuple[Any, ...], value: Any) -> Change:
    """Replace what lies at a place of nested containers; a function gets what is there."""

    def change(data: Any) -> None:
        for key in place[:-1]:
            data = data[key]
        data[place[-1]] = value(data[place[-1]]) if callable(value) else value

    return change


def _positions(value: float) -> Change:
    return lambda one: [{"x": value, "y": 0.0, "z": 0.0}] * FRAMES


JSON: dict[str, tuple[Change, str]] = {
    "lane point at 9e8 m": (_set(("roads", 0, "geometry", 3, "x"), 9e8), "9e\\+08 m"),
    "lane of 5000 km": (_set(("roads", 0, "geometry"), [{"x": x, "y": 0.0} for x in (0.0, 5e6)]), "m long"),
    "negative size": (_set(("objects", 1, "width"), -1.9), "has the size"),
    "size of 1e9 m": (_set(("objects", 1, "length"), 1e9), "has the size"),
    "infinite size": (_set(("objects", 1, "length"), float("1e999")), "has the size"),
    "token with a bell": (_set(("scenario_id",), "a\x07b"), r"token is 'a\\x07b'"),
    "half a character": (_set(("scenario_id",), "a\ud800"), r"token is 'a\\ud800'"),
    "token of 300 characters": (_set(("scenario_id",), "x" * 300), "1 to 200 printable characters"),
    "lane with an escape": (_set(("roads", 0, "id"), "\x1b[2J"), "lane is"),
    "speed of 1e5 m/s": (_set(("objects", 1, "velocity"), [{"x": 1e5, "y": 0.0}] * FRAMES), "vx = 100000"),
    "no frames": (_set(("objects",), lambda rows: [{**r, "position": [], "velocity": [], "heading": [], "valid": []}
                                                   for r in rows]), "objects"),
    "roads of text": (_set(("roads",), ["a"] * 5), "roads"),
    "number as objects": (_set(("objects", 0, "position"), 7), "objects"),
    "sdc of text": (_set(("metadata",), {"sdc_track_index": "1e9"}), "metadata"),
}  # fmt: skip


@pytest.mark.parametrize("name", JSON)
def test_waymo_json(tmp_path: Path, name: str) -> None:
    change, reason = JSON[name]
    data = waymo_json()
    change(data)
    (tmp_path / "x.json").write_text(json.dumps(data).replace("Infinity", "1e999"))
    tokens, reasons = convert_all("waymo-json", tmp_path)
    assert not tokens and len(reasons) == 1
    assert re.search(reason, reasons[0]), reasons


PICKLES: dict[str, tuple[Change, str]] = {
    "gap of 1000 s": (_set(("metadata", "ts"), lambda ts: ts + 1000.0 * (np.arange(FRAMES) > 40)), "1000.1 s"),
    "steps of 1 us": (_set(("metadata", "ts"), np.arange(FRAMES) * 1e-6), "1e-06 s"),
    "time of 1e300": (_set(("metadata", "ts"), np.arange(FRAMES) * 1e300), "no second of any date"),
    "limit of -5": (_set(("map_features", "1", "speed_limit_mph"), -5.0), "speed limit is -"),
    "limit that is no number": (_set(("map_features", "1", "speed_limit_mph"), float("nan")), "speed limit is nan"),
    "limit of 1e9": (_set(("map_features", "1", "speed_limit_mph"), 1e9), "speed limit is 4"),
    "negative size": (_set(("tracks", "8", "state", "length"), np.full((FRAMES, 1), -4.0)), "has the size"),
    "broken size": (_set(("tracks", "8", "state", "length"), np.full((FRAMES, 1), np.nan)), "has the size"),
    "a million frames": (
        _set(("tracks", "7", "state", "position"), np.broadcast_to(0.0, (1_000_000, 3)).copy()), "1000000 frames"),
    "lane at 1e308": (_set(("map_features", "1", "polyline"), np.array([[0.0, 0.0], [1e308, 0.0]])), "1e\\+308"),
    "complex": (_set(("tracks", "7", "state", "heading"), [{}] * FRAMES), "tracks"),
    "texts": (_set(("tracks", "7", "state", "position"), ["a"] * FRAMES), "tracks"),
    "nobody": (_set(("tracks",), {}), "no track"),
    "sdc elsewhere": (_set(("metadata", "sdc_id"), "../../etc"), "no track"),
}  # fmt: skip


@pytest.mark.parametrize("name", PICKLES)
def test_scenarionet(tmp_path: Path, name: str) -> None:
    change, reason = PICKLES[name]
    data = scenarionet()
    change(data)
    (tmp_path / "x.pkl").write_bytes(pickle.dumps(data))
    tokens, reasons = convert_all("scenarionet", tmp_path, ego="sdc")
    assert not tokens and len(reasons) == 1 and re.search(reason, reasons[0]), reasons


def _time(value: str) -> Callable[[ET.Element], None]:
    def change(root: ET.Element) -> None:
        list(root.iter("time"))[-1][0].text = value

    return change


def _text(path: str, value: str) -> Callable[[ET.Element], None]:
    def change(root: ET.Element) -> None:
        for found in root.iterfind(path):
            found.text = value

    return change


XML: dict[str, tuple[Callable[[ET.Element], None], str]] = {
    "time of 4e7": (_time("40000000"), "40000001 frames"),
    "time of 1e300": (_time("1e300"), "obstacle"),
    "negative limit": (_text("lanelet/speedLimit", "-3"), "speed limit is -3"),
    "limit that is no number": (_text("lanelet/speedLimit", "nan"), "speed limit is nan"),
    "point at 9e8 m": (_text("lanelet/leftBound/point/x", "9e8"), "9e\\+08 m"),
    "negative size": (_text("obstacle/shape/rectangle/width", "-2"), "has the size"),
    "position of 1e308 m": (_text("obstacle/state/position/point/x", "1e308"), "track has x = 1e\\+308"),
}


@pytest.mark.parametrize("name", XML)
def test_commonroad(tmp_path: Path, name: str) -> None:
    change, reason = XML[name]
    root = made.commonroad()
    change(root)
    (tmp_path / "x.xml").write_bytes(ET.tostring(root))
    tokens, reasons = convert_all("commonroad", tmp_path)
    assert not tokens and len(reasons) == 1 and re.search(reason, reasons[0]), reasons


DTD = '<!DOCTYPE commonRoad [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]><commonRoad>&b;</commonRoad>'
DOCUMENTS = {
    "utf-8": DTD.encode(),
    "with a mark": DTD.encode("utf-8-sig"),
    "utf-16": DTD.encode("utf-16"),
    "utf-16 big": b"\xfe\xff" + DTD.encode("utf-16-be"),
    "utf-16 without a mark": DTD.encode("utf-16-le"),
    "declared utf-16": ('<?xml version="1.0" encoding="utf-16"?>' + DTD).encode("utf-16"),
    "latin": b'<?xml version="1.0" encoding="iso-8859-1"?>' + DTD.encode(),
    "utf-7": b'<?xml version="1.0" encoding="utf-7"?>' + DTD.encode("utf-7"),
    "utf-7 hidden": b'<?xml version="1.0" encoding="utf-7"?>+ADw-+ACE-DOCTYPE x+AD4-<commonRoad/>',
    "ebcdic": ('<?xml version="1.0" encoding="cp037"?>' + DTD).encode("cp037"),
    "utf-32": DTD.encode("utf-32"),
    "behind a comment": b"<!-- x --><?a b?>" + DTD.encode(),
    "outside": b'<!DOCTYPE x SYSTEM "file:///etc/passwd"><commonRoad/>',
    "deep": b"<commonRoad>" + b"<a>" * 100_000 + b"</a>" * 100_000 + b"</commonRoad>",
    "wide": b"<commonRoad>" + b"<a/>" * 5_000_000 + b"</commonRoad>",
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_no_document_brings_a_type_of_its_own(tmp_path: Path, name: str) -> None:
    (tmp_path / "x.xml").write_bytes(DOCUMENTS[name])
    tokens, reasons = convert_all("commonroad", tmp_path)
    assert not tokens and len(reasons) == 1 and reasons[0].startswith("x.xml: ")
    assert "timeStepSize" not in reasons[0], "it was read"


FORECASTS: dict[str, tuple[Callable[[pa.Table], pa.Table], str]] = {
    "timestep -1": (lambda t: _with(t, "timestep", pa.array([-1] * t.num_rows)), "timestep is -1"),
    "timestep 1e9": (lambda t: _with(t, "timestep", pa.array([10**9] * t.num_rows)), "1000000001 frames"),
    "text for numbers": (lambda t: _with(t, "heading", pa.array(["a"] * t.num_rows)), "something else than numbers"),
    "lists": (lambda t: _with(t, "position_x", pa.array([[1.0]] * t.num_rows)), "something else than numbers"),
    "nothing": (lambda t: _with(t, "track_id", pa.array([None] * t.num_rows, pa.string())), "without a value"),
    "position of 1e308 m": (lambda t: _with(t, "position_x", pa.array([1e308] * t.num_rows)), "x = 1e\\+308"),
    "no rows": (lambda t: t.slice(0, 0), "no rows"),
    "a control character": (lambda t: _with(t, "track_id", pa.array(["AV", *["\x1b"] * (t.num_rows - 1)])), "track is"),
}  # fmt: skip


def _with(table: pa.Table, column: str, values: pa.Array) -> pa.Table:
    return table.set_column(table.column_names.index(column), column, values)


@pytest.mark.parametrize("name", FORECASTS)
def test_argoverse_forecasting(tmp_path: Path, name: str) -> None:
    change, reason = FORECASTS[name]
    path = made.write_forecasting(tmp_path)
    pa.parquet.write_table(change(made.forecasting_table()), path)
    tokens, reasons = convert_all("argoverse", tmp_path)
    assert not tokens and len(reasons) == 1 and re.search(reason, reasons[0]), reasons


def test_a_table_whose_texts_point_outside_is_refused(tmp_path: Path) -> None:
    """Offsets beyond the end of a column crash what trusts them."""
    made.write_sensor(tmp_path)
    path = tmp_path / "annotations.feather"
    _, boxes = made.sensor_tables()
    pa.feather.write_feather(boxes, path, compression="uncompressed")
    offsets = np.cumsum([0, *(len(name) for name in boxes["track_uuid"].to_pylist())]).astype("<i4")
    broken = np.where(np.arange(len(offsets)) < 5, offsets, 2**31 - 1).astype("<i4")
    assert offsets.tobytes() in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(offsets.tobytes(), broken.tobytes()))
    tokens, reasons = convert_all("argoverse", tmp_path)
    assert not tokens and "annotations.feather" in reasons[0]


@pytest.mark.parametrize(("field", "value"), (("tx_m", float("nan")), ("tx_m", 1e308), ("length_m", -4.0)))
def test_argoverse_sensor(tmp_path: Path, field: str, value: float) -> None:
    made.write_sensor(tmp_path)
    _, boxes = made.sensor_tables()
    pa.feather.write_feather(_with(boxes, field, pa.array([value] * boxes.num_rows)), tmp_path / "annotations.feather")
    tokens, reasons = convert_all("argoverse", tmp_path)
    assert not tokens and len(reasons) == 1


RECORDS = {
    "length of 2^63": b"\xff" * 8 + b"\0" * 20,
    "length of 65 MB": (65 << 20).to_bytes(8, "little") + b"\0" * 100,
    "endless number": made.tfrecord(b"\x0a" + b"\xff" * 100),
    "text for a double": made.tfrecord(made.waymo_scenario() + made.field(1, b"1234567")),
    "no frame": made.tfrecord(made.field(1, b"") + made.field(2, b"") + made.field(5, b"a") + made.field(8, b"")),
    "sdc of -1": made.tfrecord(made.waymo_scenario() + made.field(6, (1 << 64) - 1)),
    "time of 1e300": made.tfrecord(made.waymo_scenario() + made.field(1, 1e300)),
    "limit of -5": made.tfrecord(
        made.waymo_scenario()
        + made.field(8, made.field(1, 99) + made.field(3, made.field(1, -5.0) + made._polyline(8, made.LANES["1"])))
    ),
    "half a name": made.tfrecord(made.waymo_scenario() + made.field(5, b"a\x1b[0m")),
}


@pytest.mark.parametrize("name", RECORDS)
def test_waymo_proto(tmp_path: Path, name: str) -> None:
    (tmp_path / "x.tfrecord").write_bytes(RECORDS[name])
    tokens, reasons = convert_all("waymo-proto", tmp_path)
    assert not tokens and len(reasons) == 1


def test_a_conversion_without_scenarios_says_why(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    data = waymo_json()
    for one in data["objects"]:
        one["valid"] = [False] * 50 + [True] * (FRAMES - 50)
    (logs / "late.json").write_text(json.dumps(data))
    words = ["data", "convert", "--source", "waymo-json", "--data", str(logs), "--ego", "7x", "--out"]
    assert main([*words, str(tmp_path / "one")]) == 1
    said = capfd.readouterr()
    assert "empty: late.json: log 'made' has no track '7x'" in said.out and "no scenario came out" in said.err
    assert main([*words, str(tmp_path / "one")]) == 1  # taken up, it says the same
    assert "empty: late.json: log 'made' has no track '7x'" in capfd.readouterr().out


def test_nobody_to_drive_is_explained(tmp_path: Path) -> None:
    root = made.commonroad()
    for found in root.iterfind("obstacle/type"):
        found.text = "pedestrian"
    (tmp_path / "x.xml").write_bytes(ET.tostring(root))
    _, reasons = convert_all("commonroad", tmp_path)
    assert reasons == [
        "log 'made': of 0 vehicles 0 are not there from start to end, 0 drive less than 5 m, 0 leave the lanes"
    ]


def test_what_steers_a_terminal_is_shown_by_number() -> None:
    assert printable("a\x1b[31mb\x07\r\ud800\u202eé\n") == "a\\x1b[31mb\\x07\\r\\ud800\\u202eé\n"
