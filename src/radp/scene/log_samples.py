"""Samples kept as logs: states of the traffic once a log, lanes once a map, and a Scene built when it is read.

    maps/KEY.map              one road map, compressed without loss
    shard-00000.safetensors   traffic and lights of some logs, and the samples taken from them
    manifest.json             how samples were taken, and the number of shards

Every vehicle of a log can be the ego at every frame, so a sample costs little more than its own future; what `read`
gives equals `scenes_from_log(as_ego(scenario, track), [frame])` bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from radp.geometry.limits import array_fault, index_fault, states_fault
from radp.geometry.ragged import Ragged, offsets_fault
from radp.road.route import correct_route
from radp.runs.claim import claimed
from radp.runs.errors import BadInput
from radp.runs.manifest import Manifest
from radp.scenario import Box, LightState, RoadMap, Scenario, Tracks
from radp.scenario.as_ego import as_ego, longest_run, possible_egos, with_ego_track
from radp.scenario.splits import Split
from radp.scene.builder import (
    FUTURE,
    PUBLISHED,
    Moment,
    SceneConfig,
    check_step,
    ego_future,
    ego_state,
    empty_arrays,
    fill,
    to_scene,
)
from radp.scene.samples import iter_batches
from radp.scene.scene import EgoColumn, Scene
from radp.scene.settings import SampleChoice
from radp.sim.observation import HISTORY
from radp.storage.arrays import map_arrays
from radp.storage.errors import StoreError
from radp.storage.keyed import RecordFolder
from radp.storage.records import content_hash
from radp.storage.shards import Arrays, ShardFiles, ShardRows

LOGS = Manifest("manifest.json", "radp-log-samples", 1, "store of log samples")
LOG_FIELDS = ("states", "valid", "types", "sizes", "light_lanes", "light_states")
SAMPLE_FIELDS = ("log", "frame", "first", "last", "ego", "pose", "ego_current_state", "ego_agent_future",
                 "route", "route_offsets")  # fmt: skip


@dataclass(frozen=True)
class EgoWindow:
    """One ego of one log: the log seen from it, its object number and its window of frames."""

    scenario: Scenario
    ego: int
    window: slice


def drives_of(scenario: Scenario, choice: SampleChoice) -> Iterator[EgoWindow]:
    """The logged ego first, then other vehicles; each tracked long enough for one sample."""
    frames = choice.history + 1 + choice.future
    total = len(scenario.time_us)
    if total >= frames:
        yield EgoWindow(scenario, len(scenario.tracks), slice(0, total))
    names = possible_egos(scenario, frames)
    wanted = min(choice.other_egos, len(names))
    for k in range(wanted):
        name = names[k * len(names) // wanted]
        track = scenario.tracks.ids.index(name)
        yield EgoWindow(as_ego(scenario, name), track, longest_run(scenario.tracks.valid[track]))


def sample_frames(frames: int, choice: SampleChoice, number: int) -> range:
    """Frames of a drive that become samples; drives of one log begin at different frames, so that moments differ."""
    return range(choice.history + number * 3 % choice.stride, frames - choice.future, choice.stride)


def log_arrays(scenario: Scenario) -> dict[str, np.ndarray]:
    """T frames, A+1 objects of which the last is the ego: what scenes of this log need beside the map."""
    everyone = with_ego_track(scenario)
    return {
        "states": everyone.state.transpose(1, 0, 2),  # (T, A+1, 5): a window of time lies in one piece
        "valid": everyone.valid.T,
        "types": everyone.type,
        "sizes": everyone.size,
        "light_lanes": scenario.lights.lane.astype(np.int64),
        "light_states": scenario.lights.state,
    }


def sample_arrays(scenarios: Sequence[Scenario], choice: SampleChoice) -> dict[str, np.ndarray]:
    """n samples of the logs of one shard, in the order of logs, drives and frames."""
    rows: dict[str, list[Any]] = {name: [] for name in SAMPLE_FIELDS if not name.startswith("route")}
    routes = []
    for log, scenario in enumerate(scenarios):
        check_step(scenario)
        for number, drive in enumerate(drives_of(scenario, choice)):
            ego, begin = drive.scenario.ego, drive.window.start
            apart = np.hypot(*(ego[:, :2] - scenario.ego[drive.window, :2]).T)
            for frame in sample_frames(len(ego), choice, number):
                if apart[frame] > choice.reach:
                    continue
                here = (log, begin + frame, begin, drive.window.stop, drive.ego, ego[frame, :3],
                        ego_state(ego[max(0, frame - 1)], ego[frame]), _padded(ego_future(ego, frame)))  # fmt: skip
                for name, value in zip(rows, here):
                    rows[name].append(value)
                routes.append(correct_route(scenario.map, drive.scenario.route, ego[frame, :3]))
    blocks, count = Ragged.from_rows(routes, dtype=np.int32), len(routes)
    numbers = {name: np.array(rows[name], dtype=np.int32) for name in ("log", "frame", "first", "last", "ego")}
    return numbers | {
        "pose": np.array(rows["pose"], dtype=np.float64).reshape(count, 3),
        "ego_current_state": np.array(rows["ego_current_state"], dtype=np.float32).reshape(count, len(EgoColumn)),
        "ego_agent_future": np.array(rows["ego_agent_future"], dtype=np.float32).reshape(count, FUTURE, 3),
        "route": blocks.values,
        "route_offsets": blocks.offsets,
    }


def _padded(future: np.ndarray) -> np.ndarray:
    """(n <= 80, 3) -> (80, 3): zeros where the log has ended."""
    return np.concatenate((future, np.zeros((FUTURE - len(future), 3))))


def write_log_samples(
    path: Path | str, scenarios: Sequence[Scenario] | Split, choice: SampleChoice | None = None, workers: int = 1
) -> LogSamples:
    """Make the store of all scenarios; shards that are there are kept, so a killed run goes on with the same call."""
    path, choice = Path(path), choice or SampleChoice()
    if not 1 <= choice.future <= FUTURE:
        raise BadInput(f"future is {choice.future}, expected from 1 to {FUTURE} frames")
    settings = {**asdict(choice), "logs": len(scenarios)}
    if choice.future == FUTURE:
        del settings["future"]  # stores of whole futures do not mention them
    shards, count = ShardFiles(path), -(-len(scenarios) // choice.logs_per_shard)
    if not LOGS.is_in(path):  # 0.1.0 wrote the manifest last: shards say themselves what they were begun with
        for file in path.glob("shard-*"):
            if (found := map_arrays(file)[1]["settings"]) != settings:
                raise BadInput(f"{path} was begun with other settings ({found}); choose another folder")
    with claimed(path):
        LOGS.begin(path, {"settings": settings, "shards": count})
        maps_of(path).clean()
        shards.fill(count, partial(_shard, path, scenarios, choice, settings), workers)
    return LogSamples.open(path)


def maps_of(path: Path) -> RecordFolder[RoadMap]:
    return RecordFolder(path / "maps", RoadMap, ".map")


def _shard(
    path: Path, scenarios: Sequence[Scenario] | Split, choice: SampleChoice, settings: dict[str, Any], number: int
) -> tuple[dict[str, np.ndarray], Any]:
    """Arrays and note of one shard; its maps are written on the way."""
    first = number * choice.logs_per_shard
    logs = [scenarios[i] for i in range(first, min(first + choice.logs_per_shard, len(scenarios)))]
    maps, notes = maps_of(path), []
    arrays: dict[str, np.ndarray] = {}
    for i, scenario in enumerate(logs):
        key = content_hash(scenario.map)
        if key not in maps:
            maps.write(key, scenario.map)
        arrays |= {f"{i}.{name}": array for name, array in log_arrays(scenario).items()}
        notes.append({"token": scenario.token, "kind": scenario.kind, "map": key, "tags": scenario.tags})
    arrays |= {f"samples.{name}": array for name, array in sample_arrays(logs, choice).items()}
    return arrays, {"settings": settings, "logs": notes}


def check_samples(part: Arrays, logs: Sequence[Arrays]) -> None:
    """Shapes and types of a shard's samples, and that they lie in its logs; ValueError names what is wrong."""
    count, numbers = len(part["log"]), ("log", "frame", "first", "last", "ego")
    shapes: dict[str, tuple[type, tuple[int | None, ...]]] = {
        **dict.fromkeys(numbers, (np.int32, (count,))),
        "pose": (np.float64, (count, 3)),
        "ego_current_state": (np.float32, (count, len(EgoColumn))),
        "ego_agent_future": (np.float32, (count, FUTURE, 3)),
        "route": (np.int32, (None,)),
    }
    for name, (dtype, shape) in shapes.items():
        fault = array_fault(part[name], dtype, shape)
        if fault := fault or (states_fault(part[name]) if dtype in (np.float32, np.float64) else ""):
            raise ValueError(f"{name} {fault}")
    offsets = part["route_offsets"]
    if fault := offsets_fault(offsets, len(part["route"])) or index_fault(part["log"], len(logs)):
        raise ValueError(f"samples: {fault}")
    if len(offsets) != count + 1:
        raise ValueError(f"samples: {len(offsets) - 1} routes for {count} samples")
    frames, objects = (np.array([log["states"].shape[axis] for log in logs], np.int64) for axis in (0, 1))
    log, frame, first, last, ego = (part[name] for name in numbers)
    if count and not ((first >= 0) & (first <= frame) & (frame < last) & (last <= frames[log])).all():
        raise ValueError("a sample lies outside the frames of its log")
    if count and not ((ego >= 0) & (ego < objects[log])).all():
        raise ValueError("the ego of a sample is no object of its log")


def log_fault(log: Arrays, road_map: RoadMap) -> str:
    """What is wrong with the arrays of one log, in words; nothing if all is right."""
    states, types, lanes = log["states"], log["types"], log["light_lanes"]
    if fault := array_fault(states, np.float64, (None, len(types), len(Box))):
        return f"states {fault}"
    frames, names = len(states), tuple(map(str, range(len(types))))
    everyone = Tracks(names, types, log["sizes"], states.transpose(1, 0, 2), log["valid"].T)
    faults = (f"{name} {fault}" for name, fault in everyone.faults(frames) if fault)
    lights = array_fault(lanes, np.int64, (None,)) or index_fault(lanes, len(road_map))
    shown = array_fault(log["light_states"], np.uint8, (frames, lanes.size))
    return next(faults, "") or lights or shown or index_fault(log["light_states"], len(LightState))


class LogSamples:
    """N samples, built when they are read.

    `kind`, `token` and `tags` tell what sample i comes from; `log` (N,) numbers the logs, `frame` (N,) and `ego` (N,)
    say which frame and object of it (the logged ego is the last object).
    """

    def __init__(self, path: Path, config: SceneConfig = PUBLISHED) -> None:
        self.path, self.config = path, config
        self.notes: list[dict[str, Any]] = []
        self._logs: list[dict[str, np.ndarray]] = []
        self._map_files = maps_of(path)
        self._maps: dict[str, RoadMap] = {}
        self._sound: set[int] = set()  # logs that were checked
        parts: list[dict[str, np.ndarray]] = []
        try:
            manifest = LOGS.read(path)
            self.future = int(manifest.get("settings", {}).get("future", FUTURE))  # frames that each ego has at least
            for arrays, note in ShardFiles(path).open(manifest["shards"]):
                part = {name: arrays[f"samples.{name}"] for name in SAMPLE_FIELDS}
                logs = [{name: arrays[f"{i}.{name}"] for name in LOG_FIELDS} for i in range(len(note["logs"]))]
                check_samples(part, logs)
                parts.append({**part, "log": part["log"] + len(self._logs)})
                self._logs += logs
                self.notes += [{name: log[name] for name in ("token", "kind", "map", "tags")} for log in note["logs"]]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise error if isinstance(error, BadInput) else StoreError(f"{path} cannot be used ({error})") from None
        self._rows = ShardRows(parts, "log")
        self.log, self.frame, self.ego = (self._rows.whole(name, np.int32) for name in ("log", "frame", "ego"))

    @classmethod
    def open(cls, path: Path | str, config: SceneConfig = PUBLISHED) -> LogSamples:
        return cls(Path(path), config)

    def _map(self, key: str) -> RoadMap:
        """The road map, decoded at the first call."""
        if key not in self._maps:
            self._maps[key] = self._map_files.read(key)
        return self._maps[key]

    def __len__(self) -> int:
        return len(self._rows)

    def kinds(self) -> np.ndarray:
        """(N,) kind of the log of each sample."""
        return np.array([note["kind"] for note in self.notes])[self.log]

    def read(self, indices: Sequence[int] | np.ndarray) -> Scene:
        places = self._rows.places(indices)
        arrays = empty_arrays(len(places), self.config, with_future=True)
        for b, (sample, k) in enumerate(places):
            fill(arrays, b, self._moment(sample, k), self.config)
            arrays["ego_current_state"][b] = sample["ego_current_state"][k]
            arrays["ego_agent_future"][b] = sample["ego_agent_future"][k]
        return to_scene(arrays)

    def moment(self, index: int) -> Moment:
        """Sample `index` in the world frame; `skip` is its ego, whose own track is among the states."""
        ((sample, k),) = self._rows.places([index])
        return self._moment(sample, k)

    def _log(self, number: int, road_map: RoadMap) -> Arrays:
        """The arrays of a log; its values are looked at when it is first used, StoreError if they are wrong."""
        log = self._logs[number]
        if number not in self._sound:
            if fault := log_fault(log, road_map):
                raise StoreError(f"{self.path}: log {self.notes[number]['token']!r} cannot be used: {fault}")
            self._sound.add(number)
        return log

    def _moment(self, sample: Arrays, k: int) -> Moment:
        number, frame = int(sample["log"][k]), int(sample["frame"][k])
        road_map = self._map(self.notes[number]["map"])
        log = self._log(number, road_map)
        states, valid = log["states"], log["valid"]
        past = slice(max(int(sample["first"][k]), frame - HISTORY + 1), frame + 1)
        after = slice(frame + 1, min(int(sample["last"][k]), frame + 1 + FUTURE))
        first, last = sample["route_offsets"][k], sample["route_offsets"][k + 1]
        route = sample["route"][first:last].astype(np.int64)
        if fault := index_fault(route, len(road_map.roadblocks)):
            raise StoreError(f"{self.path}: the route of a sample {fault}")
        return Moment(
            road_map=road_map,
            pose=sample["pose"][k],
            states=states[past],
            valid=valid[past],
            types=log["types"],
            sizes=log["sizes"],
            light_lanes=log["light_lanes"],
            light_states=log["light_states"][frame],
            route=route,
            skip=int(sample["ego"][k]),
            future_states=states[after],
            future_valid=valid[after],
        )

    def iter_batches(
        self, batch: int, generator: torch.Generator | None = None, drop_last: bool = True
    ) -> Iterator[Scene]:
        return iter_batches(self, batch, generator, drop_last)

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process gets the path and maps the files itself."""
        return LogSamples, (self.path, self.config)
