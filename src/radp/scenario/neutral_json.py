"""The neutral JSON: one object per scenario (or drive), optionally gzip-compressed.

A scenario has `expert`, `agents`, `map`, `traffic_lights`, `route_roadblock_ids`, `mission_goal`, `scenario_type` and
`dt`; a drive has `ego` (the executed states) as well. Times are integer microseconds, poses as in `Scenario`.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import shapely

from radp.geometry.ragged import Polygons, Ragged
from radp.road.roadblocks import union_of_members
from radp.runs.errors import BadInput
from radp.runs.files import write_atomically
from radp.scenario import Areas, Box, Ego, LightState, ObjectType, RoadMap, Scenario, Tracks, TrafficLights
from radp.storage.unpacking import MOST_JSON_BYTES, gunzip, parse_json

EGO_KEYS = tuple(column.name.lower() for column in Ego)
BOX_KEYS = tuple(column.name.lower() for column in Box)
DEFAULT_HEIGHT = 1.6
EnumType = TypeVar("EnumType", bound=IntEnum)


class NeutralJsonError(BadInput):
    """A file that is not a neutral rollout; the message names the file, the field and what was expected."""


def load_json(path: Path) -> dict[str, Any]:
    """Read `.json` or `.json.gz`."""
    try:
        raw = gunzip(path.read_bytes(), MOST_JSON_BYTES)
        data = parse_json(raw)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise NeutralJsonError(f"{path}: not a readable JSON file ({error})") from None
    if b"\\ud" in raw.lower() and not _is_text(data):
        raise NeutralJsonError(f"{path}: it holds half a surrogate pair, which is no text")
    if not isinstance(data, dict):
        raise NeutralJsonError(f"{path}: expected one JSON object, found {type(data).__name__}")
    return data


def _is_text(data: Any) -> bool:
    """Whether all strings in it can be written as UTF-8."""
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def save_json(data: dict[str, Any], path: Path) -> None:
    """Write `.json` or, by its suffix, `.json.gz`, whole or not at all."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False).encode()
    write_atomically(path, gzip.compress(text, 6, mtime=0) if path.suffix == ".gz" else text)


def read_scenario(path: Path) -> Scenario:
    """The scenario in a file; its executed `ego`, if there is one, is ignored here."""
    return scenario_from_json(load_json(path), name=str(path))


@contextmanager
def reading(name: str, field: str) -> Iterator[None]:
    """Whatever goes wrong while a field is read becomes one sentence with the names of the file and the field."""
    try:
        yield
    except NeutralJsonError:
        raise
    except KeyError as error:
        raise NeutralJsonError(f"{name}: {field}: field {error} is missing") from None
    except (TypeError, ValueError, IndexError, AttributeError, OverflowError, shapely.errors.ShapelyError) as error:
        raise NeutralJsonError(f"{name}: {field}: {' '.join(str(error).split())}") from None


def scenario_from_json(data: dict[str, Any], name: str = "rollout") -> Scenario:
    """Build and validate a `Scenario`; `name` stands in error messages."""
    for field in ("expert", "map", "agents"):
        if field not in data:
            raise NeutralJsonError(f"{name}: field '{field}' is missing")
    with reading(name, "expert"):
        time_us, ego = states_from_json(data["expert"])
    with reading(name, "map"):
        road_map = map_from_json(data["map"])
    with reading(name, "agents"):
        tracks = tracks_from_json(data["agents"], len(time_us))
    with reading(name, "traffic_lights"):
        lights = _lights_from_json(data.get("traffic_lights", []), road_map, len(time_us))
    with reading(name, "route_roadblock_ids"):
        route = tuple(str(block) for block in data.get("route_roadblock_ids", []))
    with reading(name, "mission_goal"):
        goal = None if data.get("mission_goal") is None else np.asarray(data["mission_goal"], dtype=np.float64)
    with reading(name, "tags"):
        tags = {str(k): str(v) for k, v in data.get("tags", {}).items()}
    with reading(name, "scenario"):
        scenario = Scenario(
            token=str(data.get("name") or data.get("token") or Path(name).name.split(".")[0]),
            kind=str(data.get("scenario_type", "unknown")),
            source=str(data.get("source", "rollout_json")),
            map=road_map,
            time_us=time_us,
            ego=ego,
            tracks=tracks,
            lights=lights,
            route=route,
            goal=goal,
            start=int(data.get("start", 0)),
            dt=float(data.get("dt", 0.1)),
            tags=tags,
        )
        scenario.validate()
    return scenario


def states_from_json(states: dict[str, list[float]]) -> tuple[np.ndarray, np.ndarray]:
    """time_us (T,), ego states (T, 11); columns that are missing are 0."""
    time_us = np.asarray(states["time_us"], dtype=np.int64)
    out = np.zeros((len(time_us), len(Ego)))
    for column, key in enumerate(EGO_KEYS):
        if key in states:
            out[:, column] = _column(states, key, len(time_us))
        elif column <= Ego.HEADING:
            raise KeyError(key)
    return time_us, out


def _column(rows: dict[str, Any], key: str, count: int) -> np.ndarray:
    """A list of `count` numbers; a shorter one must not be stretched silently."""
    values = np.asarray(rows[key], dtype=np.float64)
    if values.shape != (count,):
        raise ValueError(f"{key} has shape {values.shape}, expected {(count,)}")
    return values


def _member(kind: type[EnumType], value: Any, field: str) -> EnumType:
    """The member of an enum by its name in a file."""
    try:
        return kind[value]
    except KeyError:
        raise ValueError(f"{field} is {value!r}, expected one of {', '.join(m.name for m in kind)}") from None


def tracks_from_json(agents: list[dict[str, Any]], frames: int) -> Tracks:
    """A tracks over `frames` frames; boxes beyond the last frame are dropped."""
    state = np.zeros((len(agents), frames, len(Box)))
    valid = np.zeros((len(agents), frames), dtype=bool)
    for i, agent in enumerate(agents):
        frame = np.asarray(agent["frame"], dtype=np.int64)
        keep = (frame >= 0) & (frame < frames)
        valid[i, frame[keep]] = True
        for column, key in enumerate(BOX_KEYS):
            if key in agent:
                state[i, frame[keep], column] = _column(agent, key, len(frame))[keep]
    kinds = np.array([_member(ObjectType, agent["type"], "type") for agent in agents], dtype=np.uint8)
    size = [(a["length"], a["width"], a.get("height", DEFAULT_HEIGHT)) for a in agents]
    return Tracks(
        ids=tuple(str(agent["track_id"]) for agent in agents),
        type=kinds,
        size=np.asarray(size, dtype=np.float64).reshape(-1, 3),
        state=state,
        valid=valid,
    )


def _lights_from_json(rows: list[dict[str, Any]], road_map: RoadMap, frames: int) -> TrafficLights:
    for row in rows:
        if str(row["lane_connector_id"]) not in road_map.lane_index:
            raise ValueError(f"lane_connector_id is '{row['lane_connector_id']}', which the map does not have")
    lane_of = [road_map.lane_index[str(row["lane_connector_id"])] for row in rows]
    lanes = sorted(set(lane_of))
    state = np.zeros((frames, len(lanes)), dtype=np.uint8)
    for row, lane in zip(rows, lane_of):
        if 0 <= row["frame"] < frames:
            state[row["frame"], lanes.index(lane)] = _member(LightState, row["status"], "status")
    return TrafficLights(lane=np.array(lanes, dtype=np.int64), state=state)


def _areas_from_json(rows: list[dict[str, Any]]) -> Areas:
    rings = [[row["polygon"], *row.get("holes", [])] for row in rows]
    return Areas(tuple(str(row["id"]) for row in rows), Polygons.from_rings(rings))


def map_from_json(data: dict[str, Any]) -> RoadMap:
    """The road map; lane areas are left border + reversed right border, roadblocks the union of their lanes."""
    lanes = data["lanes"]
    ids = tuple(str(lane["id"]) for lane in lanes)
    position = {name: i for i, name in enumerate(ids)}
    block_ids = tuple(dict.fromkeys(str(lane["roadblock_id"]) for lane in lanes))
    block_position = {name: i for i, name in enumerate(block_ids)}
    roadblock = np.array([block_position[str(lane["roadblock_id"])] for lane in lanes], dtype=np.int64)
    is_connector = np.array([lane["kind"] == "connector" for lane in lanes], dtype=bool)
    stop_lines = _areas_from_json(data.get("stop_lines", []))
    left_neighbor, right_neighbor = _neighbors(lanes, roadblock, is_connector)
    polygons = [np.concatenate([lane["left"], lane["right"][::-1]]) for lane in lanes]
    limits = [lane.get("speed_limit_mps") for lane in lanes]
    return RoadMap(
        lane_ids=ids,
        is_connector=is_connector,
        centerlines=Ragged.from_rows([lane["centerline"] for lane in lanes], width=2),
        left=Ragged.from_rows([lane["left"] for lane in lanes], width=2),
        right=Ragged.from_rows([lane["right"] for lane in lanes], width=2),
        lane_polygons=Polygons.from_exteriors(polygons),
        speed_limit=np.array([limit or 0.0 for limit in limits]),
        has_speed_limit=np.array([bool(limit) for limit in limits], dtype=bool),
        predecessors=_links(lanes, "predecessors", position),
        successors=_links(lanes, "successors", position),
        left_neighbor=left_neighbor,
        right_neighbor=right_neighbor,
        roadblock=roadblock,
        lane_stop_lines=_links(lanes, "stop_line_ids", stop_lines.index),
        roadblocks=Areas(block_ids, union_of_members(polygons, roadblock, len(block_ids))),
        intersections=_areas_from_json(data.get("intersections", [])),
        drivable=_areas_from_json(data.get("drivable_areas", [])),
        stop_lines=stop_lines,
        crosswalks=_areas_from_json(data.get("crosswalks", [])),
        name=str(data.get("name", "")),
    )


def _links(lanes: list[dict[str, Any]], field: str, position: dict[str, int]) -> Ragged:
    rows = [[position[str(i)] for i in lane.get(field, []) if str(i) in position] for lane in lanes]
    return Ragged.from_rows(rows, dtype=np.int64)


def _neighbors(
    lanes: list[dict[str, Any]], roadblock: np.ndarray, is_connector: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Lanes of the same roadblock whose `index` differs by one; connectors have no neighbours."""
    place = {
        (int(roadblock[i]), lane["index"]): i
        for i, lane in enumerate(lanes)
        if not is_connector[i] and lane.get("index") is not None
    }
    sides = np.full((2, len(lanes)), -1, dtype=np.int64)
    for (block, index), i in place.items():
        sides[0, i] = place.get((block, index - 1), -1)
        sides[1, i] = place.get((block, index + 1), -1)
    return sides[0], sides[1]


def scenario_to_json(scenario: Scenario) -> dict[str, Any]:
    """The inverse of `scenario_from_json`."""
    lights = scenario.lights
    frames, columns = np.nonzero(lights.state)
    return {
        "name": scenario.token,
        "source": scenario.source,
        "scenario_type": scenario.kind,
        "dt": scenario.dt,
        "start": scenario.start,
        "expert": states_to_json(scenario.time_us, scenario.ego),
        "agents": tracks_to_json(scenario.tracks),
        "traffic_lights": [
            {
                "frame": int(frame),
                "lane_connector_id": _id(scenario.map.lane_ids[lights.lane[column]]),
                "status": LightState(lights.state[frame, column]).name,
            }
            for frame, column in zip(frames, columns)
        ],
        "route_roadblock_ids": [_id(block) for block in scenario.route],
        "mission_goal": None if scenario.goal is None else scenario.goal.tolist(),
        "tags": scenario.tags,
        "map": map_to_json(scenario.map),
    }


def states_to_json(time_us: np.ndarray, ego: np.ndarray) -> dict[str, list[float]]:
    """Equally long lists of ego states."""
    columns = {key: ego[:, i].tolist() for i, key in enumerate(EGO_KEYS)}
    return {"time_us": time_us.tolist(), **columns}


def tracks_to_json(tracks: Tracks) -> list[dict[str, Any]]:
    """One dict per object, holding the frames in which it exists."""
    rows = []
    for i, name in enumerate(tracks.ids):
        frame = np.flatnonzero(tracks.valid[i])
        length, width, height = tracks.size[i].tolist()
        row = {"track_id": name, "type": ObjectType(tracks.type[i]).name, "length": length, "width": width,
               "height": height, "frame": frame.tolist()}  # fmt: skip
        row.update({key: tracks.state[i, frame, column].tolist() for column, key in enumerate(BOX_KEYS)})
        rows.append(row)
    return rows


def map_to_json(road_map: RoadMap) -> dict[str, Any]:
    """Lanes and areas; lane indices are counted from the leftmost lane of a roadblock."""
    lanes = [
        {
            "id": _id(road_map.lane_ids[i]),
            "kind": "connector" if road_map.is_connector[i] else "lane",
            "centerline": road_map.centerlines[i].tolist(),
            "left": road_map.left[i].tolist(),
            "right": road_map.right[i].tolist(),
            "speed_limit_mps": float(road_map.speed_limit[i]) if road_map.has_speed_limit[i] else None,
            "roadblock_id": _id(road_map.roadblocks.ids[road_map.roadblock[i]]),
            "predecessors": [_id(road_map.lane_ids[j]) for j in road_map.predecessors[i]],
            "successors": [_id(road_map.lane_ids[j]) for j in road_map.successors[i]],
            "index": _index_from_left(road_map, i),
            "stop_line_ids": [_id(road_map.stop_lines.ids[j]) for j in road_map.lane_stop_lines[i]],
        }
        for i in range(len(road_map))
    ]
    return {
        "name": road_map.name,
        "lanes": lanes,
        "intersections": _areas_to_json(road_map.intersections),
        "drivable_areas": _areas_to_json(road_map.drivable),
        "stop_lines": _areas_to_json(road_map.stop_lines),
        "crosswalks": _areas_to_json(road_map.crosswalks),
    }


def _areas_to_json(areas: Areas) -> list[dict[str, Any]]:
    rows = []
    for i, name in enumerate(areas.ids):
        exterior, *holes = areas.polygons[i] or [np.zeros((0, 2))]
        row: dict[str, Any] = {"id": _id(name), "polygon": exterior.tolist()}
        if holes:
            row["holes"] = [hole.tolist() for hole in holes]
        rows.append(row)
    return rows


def _index_from_left(road_map: RoadMap, lane: int) -> int:
    index = 1
    while (left := int(road_map.left_neighbor[lane])) >= 0:
        lane, index = left, index + 1
    return index


def _id(name: str) -> int | str:
    """Ids that are plain numbers are written as numbers, as they were read."""
    return int(name) if name.isdecimal() and str(int(name)) == name else name
