"""Waymo Open Motion as GPUDrive and PufferDrive keep it: one JSON object per scenario of 9.1 s.

There are centre lines, painted lines, road edges and tracks; there is no lane graph, no speed limit, and only rarely
a traffic light. Frame 10 is the moment from which Waymo's challenges predict; drives begin there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from radp.scenario import LightState, ObjectType, Tracks, TrafficLights
from radp.scenario.recording import Recording, no_lights
from radp.sources.convert import REBUILT, UNKNOWN, FileItem, SourceError
from radp.sources.log_files import find_logs, read_json, reading
from radp.sources.roads import BuiltRoad, LaneDraft, RoadDraft, build_road, clean_line, clean_ring
from radp.sources.settings import LogChoice
from radp.sources.sound import room_for

START = 10  # the frame that Waymo calls current
BIKE_LANE = 3  # map_element_id
TYPES = {"vehicle": ObjectType.VEHICLE, "pedestrian": ObjectType.PEDESTRIAN, "cyclist": ObjectType.BICYCLE}
LIGHTS = {"stop": LightState.RED, "caution": LightState.YELLOW, "go": LightState.GREEN, "unknown": LightState.UNKNOWN}
MISSING_BEYOND = 1e6  # m; Waymo's local frames are smaller


@dataclass(frozen=True)
class WaymoJson:
    """Source of GPUDrive / PufferDrive JSON, plain or compressed with gzip or xz."""

    name: str = "waymo-json"

    def items(self, options: LogChoice) -> list[FileItem]:
        return find_logs(options, (".json", ".json.gz", ".json.xz"))

    def scenarios(self, item: FileItem) -> Iterator[Recording]:
        yield read_recording(item.path)


WAYMO_JSON = WaymoJson()


def read_recording(path: Path) -> Recording:
    """The log in a file; SourceError names what is wrong with it."""
    data, name = read_json(path), path.name
    with reading(name, "scenario"):
        return _recording(data, name)


def _recording(data: dict[str, Any], name: str) -> Recording:
    for field in ("objects", "roads"):
        if not isinstance(data.get(field), list):
            raise SourceError(f"{name}: field '{field}' is missing")
    with reading(name, "objects"):
        tracks = read_tracks(data["objects"])
    with reading(name, "metadata"):
        index = int((data.get("metadata") or {})["sdc_track_index"])
        if not 0 <= index < len(tracks):
            raise SourceError(f"{name}: sdc_track_index is {index}, expected 0..{len(tracks) - 1}")
    states = data.get("tl_states") or {}
    with reading(name, "roads"):
        road = read_road(data["roads"], states, name)
    with reading(name, "tl_states"):
        lights = read_lights(states, road, tracks.valid.shape[1])
    unknown = (*road.unknown, *(() if len(lights.lane) else ("traffic lights",)))
    return Recording(
        token=str(data.get("scenario_id") or name.split(".")[0]),
        source="waymo",
        map=road.map,
        time_us=np.arange(tracks.valid.shape[1], dtype=np.int64) * 100_000,
        tracks=tracks,
        lights=lights,
        sdc=tracks.ids[index],
        start=min(START, tracks.valid.shape[1] // 4),
        tags={REBUILT: ", ".join((*road.rebuilt, "route")), UNKNOWN: ", ".join(unknown)},
    )


def read_tracks(objects: list[dict[str, Any]]) -> Tracks:
    """All objects; frames that are not valid (or hold numbers out of all bounds) are zeros."""
    if not objects:
        raise ValueError("there is no object")
    frames = len(objects[0]["position"])
    room_for(len(objects), frames)
    state, valid = np.zeros((len(objects), frames, 5)), np.zeros((len(objects), frames), dtype=bool)
    for i, one in enumerate(objects):
        position = np.array([(p["x"], p["y"]) for p in one["position"]], dtype=np.float64)
        velocity = np.array([(v["x"], v["y"]) for v in one["velocity"]], dtype=np.float64)
        heading = np.asarray(one["heading"], dtype=np.float64).reshape(-1, 1)
        rows = np.concatenate((position, heading, velocity), axis=1)
        if len(rows) != frames:
            raise ValueError(f"object {one.get('id')} has {len(rows)} frames, the first one {frames}")
        valid[i] = np.asarray(one["valid"], dtype=bool) & (np.abs(rows) < MISSING_BEYOND).all(axis=1)
        state[i, valid[i]] = rows[valid[i]]
    size = np.array([(one["length"], one["width"], one.get("height", 1.6)) for one in objects], dtype=np.float64)
    return Tracks(
        ids=tuple(str(one["id"]) for one in objects),
        type=np.array([TYPES.get(one["type"], ObjectType.GENERIC_OBJECT) for one in objects], dtype=np.uint8),
        size=size,
        state=state,
        valid=valid,
    )


def read_road(roads: list[dict[str, Any]], lights: dict[str, Any], name: str) -> BuiltRoad:
    """The road map; features without a usable geometry are passed over."""
    draft = RoadDraft(name.split(".")[0])
    into = {
        "road_line": draft.lines,
        "road_edge": draft.edges,
        "crosswalk": draft.crosswalks,
        "driveway": draft.surfaces,
    }
    for feature in roads:
        kind = feature["type"]
        points = [(p["x"], p["y"]) for p in feature["geometry"]]
        shape = clean_ring(points) if kind in ("crosswalk", "driveway") else clean_line(points)
        if shape is None:
            continue
        if kind == "lane" and feature.get("map_element_id") != BIKE_LANE:
            draft.add(LaneDraft(str(feature["id"]), shape))
        elif kind in into:
            into[kind].append(shape)
    for lane, state in lights.items():
        draft.stops[str(lane)] = np.array([state["x"][0], state["y"][0]], dtype=np.float64)
    return build_road(draft)


def read_lights(states: dict[str, Any], road: BuiltRoad, frames: int) -> TrafficLights:
    """Lights of lanes that the map has."""
    known = {str(lane): rows for lane, rows in states.items() if str(lane) in road.map.lane_index}
    if not known:
        return no_lights(frames)
    state = np.zeros((frames, len(known)), dtype=np.uint8)
    for column, rows in enumerate(known.values()):
        for frame, word in zip(rows["time_index"], rows["state"]):
            if 0 <= int(frame) < frames:
                state[int(frame), column] = LIGHTS.get(str(word), LightState.UNKNOWN)
    return TrafficLights(np.array([road.map.lane_index[lane] for lane in known], dtype=np.int64), state)
