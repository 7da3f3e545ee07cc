"""The log of `made_logs` as files in the format of every source, small and sound: what mutations start from."""

from __future__ import annotations

import json
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

from tests.sources.made_logs import FRAMES, ROADS, scenarionet, waymo_json

AV2_MAP = "log_map_archive_made____city.json"
LANES = {str(key): points for key, (kind, points) in ROADS.items() if kind == "lane"}
EXITS = {"1": ("2", "3")}


def write_waymo_json(folder: Path) -> Path:
    path = folder / "made.json"
    path.write_text(json.dumps(waymo_json()))
    return path


def write_scenarionet(folder: Path) -> Path:
    path = folder / "made.pkl"
    path.write_bytes(pickle.dumps(scenarionet()))
    return path


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def field(number: int, value: int | float | bytes, width: int = 8) -> bytes:
    """A field of a message: int as varint, float with 8 or 4 bytes, bytes with their length."""
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | (1 if width == 8 else 5)) + struct.pack("<d" if width == 8 else "<f", value)


def _polyline(number: int, points: np.ndarray) -> bytes:
    return b"".join(field(number, field(1, float(x)) + field(2, float(y))) for x, y in points)


def _feature(key: int, kind: str, points: np.ndarray) -> bytes:
    if kind == "lane":
        exits = b"".join(field(10, int(other)) for other in EXITS.get(str(key), ()))
        return field(3, field(1, 25.0) + field(2, 2) + _polyline(8, points[::4]) + exits)
    number, line = {"road_line": (4, 2), "road_edge": (5, 2), "crosswalk": (8, 1)}[kind]
    return field(number, _polyline(line, points if kind == "crosswalk" else points[::4]))


def _track(one: dict[str, Any]) -> bytes:
    states = b""
    for p, v, heading, valid in zip(one["position"], one["velocity"], one["heading"], one["valid"]):
        sizes = b"".join(field(n, one[name], 4) for n, name in ((5, "length"), (6, "width"), (7, "height")))
        moves = b"".join(field(n, float(x), 4) for n, x in ((8, heading), (9, v["x"]), (10, v["y"])))
        states += field(3, field(2, p["x"]) + field(3, p["y"]) + sizes + moves + field(11, int(valid)))
    return field(1, one["id"]) + field(2, {"vehicle": 1, "pedestrian": 2}[one["type"]]) + states


def waymo_scenario() -> bytes:
    """One Scenario message."""
    log = waymo_json()
    tracks = b"".join(field(2, _track(one)) for one in log["objects"])
    lights = b"".join(field(7, field(1, field(1, 2) + field(2, 6 if t < 30 else 4))) for t in range(FRAMES))
    features = b"".join(field(8, field(1, key) + _feature(key, kind, line)) for key, (kind, line) in ROADS.items())
    times = field(1, np.arange(0, FRAMES / 10, 0.1)[:FRAMES].astype("<f8").tobytes())
    return times + tracks + field(5, b"made") + field(6, 0) + lights + features + field(10, 10)


def tfrecord(content: bytes) -> bytes:
    return struct.pack("<QI", len(content), 0) + content + b"\0" * 4


def write_waymo_proto(folder: Path) -> Path:
    path = folder / "made.tfrecord"
    path.write_bytes(tfrecord(waymo_scenario()))
    return path


def _bounds(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    along = np.diff(points, axis=0, append=2 * points[-1:] - points[-2:-1])
    normal = np.stack((-along[:, 1], along[:, 0]), axis=1) / np.hypot(*along.T)[:, None]
    return points + 1.8 * normal, points - 1.8 * normal


def commonroad() -> ET.Element:
    """The root element of a document of version 2018b."""
    root = ET.Element("commonRoad", timeStepSize="0.1", commonRoadVersion="2018b", benchmarkID="made")
    for key, points in LANES.items():
        lanelet = ET.SubElement(root, "lanelet", id=key)
        for side, line in zip(("leftBound", "rightBound"), _bounds(points[::10])):
            bound = ET.SubElement(lanelet, side)
            for x, y in line:
                _texts(ET.SubElement(bound, "point"), x=x, y=y)
        for other in EXITS.get(key, ()):
            ET.SubElement(lanelet, "successor", ref=other)
        ET.SubElement(lanelet, "speedLimit").text = "13.9"
    for one in waymo_json()["objects"]:
        if not all(one["valid"]):
            continue
        obstacle = ET.SubElement(root, "obstacle", id=str(one["id"]))
        _texts(obstacle, role="dynamic", type="car" if one["type"] == "vehicle" else "pedestrian")
        _texts(ET.SubElement(ET.SubElement(obstacle, "shape"), "rectangle"), length=one["length"], width=one["width"])
        for frame in range(FRAMES):
            state = ET.SubElement(obstacle, "initialState" if frame == 0 else "state")
            _texts(ET.SubElement(ET.SubElement(state, "position"), "point"), **_place(one["position"][frame]))
            for name, value in (("orientation", one["heading"][frame]), ("time", frame),
                                ("velocity", abs(one["velocity"][frame]["x"]))):  # fmt: skip
                _texts(ET.SubElement(state, name), exact=value)
    return root


def _place(point: dict[str, float]) -> dict[str, float]:
    return {"x": point["x"], "y": point["y"]}


def _texts(parent: ET.Element, **values: Any) -> None:
    for name, value in values.items():
        ET.SubElement(parent, name).text = str(value)


def write_commonroad(folder: Path) -> Path:
    path = folder / "made.xml"
    path.write_bytes(ET.tostring(commonroad(), encoding="utf-8"))
    return path


def av2_map() -> dict[str, Any]:
    segments = {}
    for key, points in LANES.items():
        left, right = ([{"x": float(x), "y": float(y), "z": 0.0} for x, y in line] for line in _bounds(points[::10]))
        segments[key] = {"id": int(key), "lane_type": "VEHICLE", "is_intersection": key == "3",
                         "left_lane_boundary": left, "right_lane_boundary": right,
                         "successors": [int(other) for other in EXITS.get(key, ())],
                         "left_neighbor_id": None, "right_neighbor_id": None}  # fmt: skip
    ring = [{"x": x, "y": y} for x, y in ((-10.0, -20.0), (210.0, -20.0), (210.0, 10.0), (-10.0, 10.0))]
    return {"lane_segments": segments, "drivable_areas": {"1": {"area_boundary": ring}}, "pedestrian_crossings": {}}


def forecasting_table() -> pa.Table:
    rows: dict[str, list[Any]] = {name: [] for name in ("track_id", "object_type", "timestep", "position_x",
                                  "position_y", "heading", "velocity_x", "velocity_y")}  # fmt: skip
    for i, one in enumerate(waymo_json()["objects"]):
        for frame in range(FRAMES):
            if one["valid"][frame]:
                p, v = one["position"][frame], one["velocity"][frame]
                values = ("AV" if i == 0 else str(one["id"]), one["type"], frame, p["x"], p["y"],
                          one["heading"][frame], v["x"], v["y"])  # fmt: skip
                for column, value in zip(rows.values(), values):
                    column.append(value)
    return pa.table(rows)


def write_forecasting(folder: Path) -> Path:
    (folder / AV2_MAP).write_text(json.dumps(av2_map()))
    path = folder / "scenario_made.parquet"
    pa.parquet.write_table(forecasting_table(), path)
    return path


def sensor_tables() -> tuple[pa.Table, pa.Table]:
    """Poses of the ego, and boxes in its frame."""
    objects = waymo_json()["objects"]
    ego, boxes = objects[0], []
    stamps = [10**18 + frame * 10**8 for frame in range(FRAMES)]
    unit = {"qw": 1.0, "qx": 0.0, "qy": 0.0, "qz": 0.0}
    poses = [
        {"timestamp_ns": stamp, **unit, "tx_m": p["x"], "ty_m": p["y"], "tz_m": 0.0}
        for stamp, p in zip(stamps, ego["position"])
    ]
    for one in objects[1:]:
        for frame, stamp in enumerate(stamps):
            if one["valid"][frame]:
                dx, dy = (one["position"][frame][axis] - ego["position"][frame][axis] for axis in "xy")
                category = "REGULAR_VEHICLE" if one["type"] == "vehicle" else "PEDESTRIAN"
                half = one["heading"][frame] / 2
                turn = {**unit, "qw": float(np.cos(half)), "qz": float(np.sin(half))}
                boxes.append({"timestamp_ns": stamp, **turn, "tx_m": dx, "ty_m": dy, "track_uuid": str(one["id"]),
                              "category": category, "length_m": one["length"], "width_m": one["width"],
                              "height_m": one["height"]})  # fmt: skip
    return pa.Table.from_pylist(poses), pa.Table.from_pylist(boxes)


def write_sensor(folder: Path) -> Path:
    (folder / "map").mkdir(exist_ok=True)
    (folder / "map" / AV2_MAP).write_text(json.dumps(av2_map()))
    poses, boxes = sensor_tables()
    pa.feather.write_feather(poses, folder / "city_SE3_egovehicle.feather")
    pa.feather.write_feather(boxes, folder / "annotations.feather")
    return folder / "city_SE3_egovehicle.feather"


WRITERS: dict[str, tuple[str, Callable[[Path], Path]]] = {  # format -> source, writer
    "waymo-json": ("waymo-json", write_waymo_json),
    "waymo-proto": ("waymo-proto", write_waymo_proto),
    "scenarionet": ("scenarionet", write_scenarionet),
    "commonroad": ("commonroad", write_commonroad),
    "argoverse-forecasting": ("argoverse", write_forecasting),
    "argoverse-sensor": ("argoverse", write_sensor),
}
