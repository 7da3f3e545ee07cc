"""ScenarioNet files: one dict per scenario with tracks, map features and lights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from radp.scenario import LightState, ObjectType, Tracks, TrafficLights
from radp.scenario.recording import Recording, no_lights, usual_start
from radp.sources.convert import REBUILT, UNKNOWN, FileItem, SourceError
from radp.sources.log_files import find_logs, reading
from radp.sources.motion import MISSING_BEYOND, at_center
from radp.sources.roads import BuiltRoad, build_road
from radp.sources.scenarionet.road import read_draft
from radp.sources.scenarionet.unpickle import load_plain
from radp.sources.settings import LogChoice
from radp.sources.sound import room_for

TYPES = {
    "VEHICLE": ObjectType.VEHICLE,
    "PEDESTRIAN": ObjectType.PEDESTRIAN,
    "CYCLIST": ObjectType.BICYCLE,
    "TRAFFIC_CONE": ObjectType.TRAFFIC_CONE,
    "TRAFFIC_BARRIER": ObjectType.BARRIER,
}
LIGHT_WORDS = (("STOP", LightState.RED), ("CAUTION", LightState.YELLOW), ("GO", LightState.GREEN))
REAR_AXLE_TO_CENTER = {"nuscenes": 1.35}  # m; sets whose ego position is the rear axle, not the centre of the box
MOST_SECONDS = 1e12  # of a time stamp; beyond it microseconds leave 64 bits
WAYMO_FRAMES, WAYMO_START = 91, 10


@dataclass(frozen=True)
class ScenarioNet:
    """Source of ScenarioNet pickles; the summaries that lie beside them are passed over."""

    name: str = "scenarionet"

    def items(self, options: LogChoice) -> list[FileItem]:
        return find_logs(options, (".pkl", ".pkl.gz", ".pkl.xz"), lambda path: not path.name.startswith("dataset_"))

    def scenarios(self, item: FileItem) -> Iterator[Recording]:
        yield read_recording(item.path)


SCENARIONET = ScenarioNet()


def read_recording(path: Path) -> Recording:
    """The log in a file; SourceError names what is wrong with it."""
    data, name = load_plain(path), path.name
    with reading(name, "scenario"):
        return _recording(data, name)


def _recording(data: dict[str, Any], name: str) -> Recording:
    for field in ("tracks", "map_features"):
        if not isinstance(data.get(field), dict):
            raise SourceError(f"{name}: field '{field}' is missing")
    with reading(name, "metadata"):
        meta = data.get("metadata") or {}
        sdc = str(meta.get("sdc_id", data.get("sdc_track_index")))
        dataset = str(meta.get("dataset", "waymo"))
    with reading(name, "tracks"):
        tracks = read_tracks(data["tracks"])
        if sdc not in tracks.ids:
            raise SourceError(f"{name}: sdc_id is {sdc!r}, which is no track")
        if dataset in REAR_AXLE_TO_CENTER:
            at_center(tracks.state[tracks.ids.index(sdc)], REAR_AXLE_TO_CENTER[dataset])
    frames = tracks.valid.shape[1]
    with reading(name, "map_features"):
        lights_seen = data.get("dynamic_map_states") or {}
        road = build_road(read_draft(data["map_features"], lights_seen, dataset, _near(tracks), name))
    with reading(name, "dynamic_map_states"):
        lights = read_lights(lights_seen, road, frames)
    with reading(name, "ts"):
        time_us = read_times(meta.get("ts", data.get("ts")), frames)
    unknown = (*road.unknown, *(() if len(lights.lane) else ("traffic lights",)))
    return Recording(
        token=str(meta.get("scenario_id") or data.get("id") or name.split(".")[0]),
        source=f"scenarionet-{dataset}",
        map=road.map,
        time_us=time_us,
        tracks=tracks,
        lights=lights,
        sdc=sdc,
        start=WAYMO_START if (dataset, frames) == ("waymo", WAYMO_FRAMES) else usual_start(frames),
        tags={REBUILT: ", ".join((*road.rebuilt, "route")), UNKNOWN: ", ".join(unknown)},
    )


def _near(tracks: Tracks) -> np.ndarray:
    """(2, 2): low and high corner of all that moves, by which maps of whole towns are cut."""
    seen = tracks.state[tracks.valid][:, :2]
    return np.stack((seen.min(axis=0), seen.max(axis=0)))


def read_times(stamps: Any, frames: int) -> np.ndarray:
    """Seconds (T,) -> microseconds (T,); 10 Hz where they are missing or do not increase."""
    if stamps is not None and len(stamps) >= frames:
        seconds = np.asarray(stamps[:frames], dtype=np.float64)
        if not (np.abs(seconds) < MOST_SECONDS).all():
            raise ValueError("a time stamp is no second of any date")
        time_us = np.round(seconds * 1e6).astype(np.int64)
        if (np.diff(time_us) > 0).all():
            return time_us - time_us[0]
    return np.arange(frames, dtype=np.int64) * 100_000


def read_tracks(rows: dict[str, Any]) -> Tracks:
    """All tracks; sizes are medians over the valid frames."""
    if not rows:
        raise ValueError("there is no track")
    ids = tuple(str(name) for name in rows)
    frames = len(next(iter(rows.values()))["state"]["position"])
    room_for(len(ids), frames)
    state, valid = np.zeros((len(ids), frames, 5)), np.zeros((len(ids), frames), dtype=bool)
    size, kinds = np.ones((len(ids), 3)), np.zeros(len(ids), dtype=np.uint8)
    for i, row in enumerate(rows.values()):
        values = row["state"]
        position, velocity = (np.asarray(values[name], dtype=np.float64) for name in ("position", "velocity"))
        table = np.concatenate((position[:, :2], _column(values["heading"]), velocity), axis=1)
        sound = np.isfinite(table).all(axis=1) & (np.abs(table) < MISSING_BEYOND).all(axis=1)
        valid[i] = np.asarray(values["valid"], dtype=bool).reshape(-1) & sound
        state[i, valid[i]] = table[valid[i]]
        kinds[i] = TYPES.get(str(row.get("type")), ObjectType.GENERIC_OBJECT)
        if valid[i].any():
            size[i] = np.median(_sizes(values)[valid[i]], axis=0)
        if kinds[i] in (ObjectType.VEHICLE, ObjectType.BICYCLE):  # some converters mix them up
            size[i, :2] = size[i, :2].max(), size[i, :2].min()
    return Tracks(ids, kinds, size, state, valid)


def _column(values: Any) -> np.ndarray:
    return np.asarray(values, dtype=np.float64).reshape(-1, 1)


def _sizes(values: dict[str, Any]) -> np.ndarray:
    """(T, 3) length, width, height in either of the two layouts."""
    if "size" in values:
        return np.asarray(values["size"], dtype=np.float64)
    return np.concatenate([_column(values[name]) for name in ("length", "width", "height")], axis=1)


def read_lights(states: dict[str, Any], road: BuiltRoad, frames: int) -> TrafficLights:
    """Lights of lanes that the map has; moments in which a light was not seen are UNKNOWN."""
    known = {}
    for key, row in states.items():
        lane = str(row.get("lane", key))
        words = row.get("state", {}).get("object_state")
        if lane in road.map.lane_index and words is not None:
            known[road.map.lane_index[lane]] = words
    if not known:
        return no_lights(frames)
    state = np.full((frames, len(known)), int(LightState.UNKNOWN), dtype=np.uint8)
    for column, words in enumerate(known.values()):
        seen = [str(word) for word in words[:frames]]
        meaning = {word: next((s for part, s in LIGHT_WORDS if part in word), LightState.UNKNOWN) for word in set(seen)}
        state[: len(seen), column] = [meaning[word] for word in seen]
    return TrafficLights(np.array(list(known), dtype=np.int64), state)
