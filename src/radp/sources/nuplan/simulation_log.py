"""nuplan-devkit's SimulationLog files: xz around msgpack around a pickle, read without running anything of it.

A log holds what was driven and planned, everybody around, and the name of the map; neither the map itself nor the
expert's drive nor the route. The route is rebuilt from the driven path where a map is given.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from radp.road.road_map import NO_ROAD
from radp.runs.errors import BadInput
from radp.scenario import PACIFICA, Box, LightState, ObjectType, RoadMap, Scenario, Tracks, TrafficLights
from radp.scenario.as_ego import route_of_path
from radp.sim.plan import Plan
from radp.sim.planner import plan_from_poses
from radp.sim.rollout import Rollout
from radp.sources.convert import REBUILT, UNKNOWN, SourceError
from radp.sources.log_files import read_bytes, reading
from radp.sources.nuplan.cut import open_city
from radp.sources.nuplan.holders import Holder, HolderMachine
from radp.sources.nuplan.layers import find_map
from radp.sources.settings import LogChoice
from radp.sources.sound import check_ego, room_for

SUFFIX = ".msgpack.xz"
BINARY = {0xC4: 1, 0xC5: 2, 0xC6: 4}  # msgpack's code of bytes -> width of their number
MOST_SAMPLES = 2_000  # 200 s; the devkit drives 15 s
MOST_PLANNED = 1_000  # states of a plan; the devkit has 81
MOST_LIGHTS = 10_000  # of one sample; a city has some thousand connectors
MOST_LISTED = 500_000  # boxes of all samples, each of them a few objects; a crowded log has 45,000
LIGHTS = {0: LightState.GREEN, 1: LightState.YELLOW, 2: LightState.RED, 3: LightState.UNKNOWN}
HORIZON = 80


@dataclass(frozen=True)
class LoggedRun:
    """A SimulationLog as arrays: S samples, A objects."""

    name: str
    token: str
    kind: str
    planner: str
    map_name: str
    time_us: np.ndarray  # (S,)
    ego: np.ndarray  # (S, 11) columns Ego
    plans: list[tuple[np.ndarray, np.ndarray]]  # S times (n,) s from now and poses (n, 3) of the rear axle in the world
    tracks: Tracks
    lights: list[dict[str, int]]  # S times connector -> LightState
    goal: np.ndarray | None  # (3,)


def read_log(path: Path) -> LoggedRun:
    """The log in a file; SourceError where it is damaged or no SimulationLog."""
    name = path.name
    log = _unpickle(read_bytes(path), name)
    if not (isinstance(log, Holder) and log.kind.endswith(".SimulationLog")):
        found = log.kind if isinstance(log, Holder) else type(log).__name__
        raise SourceError(f"{name}: expected a SimulationLog of nuplan-devkit, found {found or 'something else'}")
    with reading(name, "simulation_history"):
        history = log.get("simulation_history")
        samples = history.get("data")
        if not isinstance(samples, list) or not 2 <= len(samples) <= MOST_SAMPLES:
            raise ValueError(f"expected 2 to {MOST_SAMPLES} samples")
        map_name = _text(history.get("map_api").args[-1])
        goal = history.get("mission_goal")
    with reading(name, "ego_state"):
        states = [sample.get("ego_state") for sample in samples]
        ego = np.array([ego_state(state) for state in states])
        time_us = np.array([_time_us(state) for state in states], dtype=np.int64)
    count = len(time_us)
    while count > 2 and time_us[count - 1] <= time_us[count - 2]:  # the devkit may write the last sample twice
        count -= 1
    samples, ego, time_us = samples[:count], ego[:count], time_us[:count]
    with reading(name, "trajectory"):
        plans = [planned(sample.get("trajectory"), int(now)) for sample, now in zip(samples, time_us)]
    with reading(name, "observation"):
        tracks = tracks_of([sample.get("observation").get("tracked_objects") for sample in samples])
    with reading(name, "traffic_light_status"):
        lights = [_lights(sample) for sample in samples]
    with reading(name, "scenario"):
        token, kind = _scenario(log, path)
        where = None if goal is None else np.array(_pose(goal))
        planner = log.get("planner").kind.rsplit(".", 1)[-1]
    with reading(name, "ego_state"):
        check_ego(ego)
    return LoggedRun(name, token, kind, planner, map_name, time_us, ego, plans, tracks, lights, where)


def _unpickle(raw: bytes, name: str) -> Any:
    width = BINARY.get(raw[0]) if raw else None
    if width is None or int.from_bytes(raw[1 : 1 + width], "big") != len(raw) - 1 - width:
        raise SourceError(f"{name}: expected one block of bytes in msgpack")
    try:
        return HolderMachine(raw[1 + width :]).load()
    except (IndexError, KeyError):
        raise SourceError(f"{name}: the pickle cannot be read (it is damaged)") from None
    except (ValueError, TypeError, AttributeError, struct.error, ArithmeticError) as error:
        text = " ".join(str(error).split()) or type(error).__name__
        raise SourceError(f"{name}: the pickle cannot be read ({text})") from None


def _scenario(log: Holder, path: Path) -> tuple[str, str]:
    """Token and kind: the folders above the devkit's file are KIND/LOG/TOKEN."""
    parts = [_text(part) for part in log.get("file_path").args]
    token = parts[-1].split(".")[0] if parts else path.name.removesuffix(SUFFIX)
    kind = parts[-4] if len(parts) >= 4 else "unknown"
    return token, kind


def _text(value: Any) -> str:
    """A name; anything else could be a list in a list in a list, whose text has no end."""
    if not isinstance(value, (str, int)):
        raise ValueError(f"expected a name, found a {type(value).__name__}")
    return str(value)


def _number(value: Any) -> float:
    if not isinstance(value, (int, float, np.integer, np.floating)) or isinstance(value, bool):
        raise ValueError(f"expected a number, found a {type(value).__name__}")
    return float(value)


def _pose(holder: Holder) -> list[float]:
    return [_number(holder.get(name)) for name in ("x", "y", "heading")]


def _vector(holder: Holder) -> list[float]:
    return [_number(holder.get(name)) for name in ("_x", "_y")]


def _time_us(state: Holder) -> int:
    return int(_number(state.get("_time_point").get("time_us")))


def ego_state(state: Holder) -> list[float]:
    """The 11 columns of an EgoState; its box centre becomes the rear axle."""
    x, y, heading = rear_axle(state)
    dynamic = state.get("_dynamic_car_state")
    motion = [*_vector(dynamic.get("_rear_axle_velocity_2d")), *_vector(dynamic.get("_rear_axle_acceleration_2d"))]
    turning = [_number(dynamic.get(name)) for name in ("_angular_velocity", "_angular_acceleration")]
    steering = [_number(state.get("_tire_steering_angle")), _number(dynamic.get("_tire_steering_rate"))]
    return [x, y, heading, *motion, *turning, *steering]


def rear_axle(state: Holder) -> tuple[float, float, float]:
    """x, y, heading of an EgoState's rear axle."""
    x, y, heading = _pose(state.get("_car_footprint").get("_center"))
    back = PACIFICA.rear_axle_to_center
    return x - back * np.cos(heading), y - back * np.sin(heading), heading


def planned(trajectory: Holder, now_us: int) -> tuple[np.ndarray, np.ndarray]:
    """Times (n,) s from now and poses (n, 3); none where the trajectory is of an unknown class."""
    states = trajectory.args[0] if trajectory.args and isinstance(trajectory.args[0], list) else []
    if not states and trajectory.state is not None:
        states = trajectory.get("_trajectory")
    if len(states) > MOST_PLANNED:
        raise ValueError(f"a plan has {len(states)} states, expected at most {MOST_PLANNED}")
    times = np.array([(_time_us(state) - now_us) * 1e-6 for state in states])
    poses = np.array([rear_axle(state) for state in states]).reshape(-1, 3)
    ahead = times >= -1e-9
    return times[ahead], poses[ahead]


def tracks_of(frames: Sequence[Holder]) -> Tracks:
    """TrackedObjects of S frames -> tracks in the order in which they appear."""
    lists = [frame.get("tracked_objects") for frame in frames]
    if sum(len(boxes) for boxes in lists) > MOST_LISTED:
        raise ValueError(f"more than {MOST_LISTED} boxes")
    index: dict[str, int] = {}
    rows = []
    for frame, boxes in enumerate(lists):
        for box in boxes:
            track = _text(box.get("_metadata").get("track_token"))
            rows.append((index.setdefault(track, len(index)), frame, _type(box), *_box(box)))
    room_for(len(index), len(frames))
    types, sizes = np.zeros(len(index), dtype=np.uint8), np.zeros((len(index), 3))
    state = np.zeros((len(index), len(frames), len(Box)))
    valid = np.zeros((len(index), len(frames)), dtype=bool)
    for row, frame, kind, size, values in reversed(rows):  # the first box of a track has the last word
        types[row], sizes[row], state[row, frame], valid[row, frame] = kind, size, values, True
    return Tracks(tuple(index), types, sizes, state, valid)


def _type(box: Holder) -> int:
    value = box.get("_tracked_object_type").args[0]
    if not isinstance(value, int) or value not in ObjectType.__members__.values():
        raise ValueError(f"a box is of an unknown type, expected 0 to {int(max(ObjectType))}")
    return int(value)


def _box(box: Holder) -> tuple[list[float], list[float]]:
    """length, width, height and x, y, heading, velocity; static objects have none."""
    shape = box.get("_box")
    size = [_number(shape.get(name)) for name in ("_length", "_width", "_height")]
    try:
        velocity = np.nan_to_num(_vector(box.get("_velocity"))).tolist()
    except KeyError:
        velocity = [0.0, 0.0]
    return size, [*_pose(shape.get("_center")), *velocity]


def _lights(sample: Holder) -> dict[str, int]:
    found = {}
    lights = sample.get("traffic_light_status")
    if len(lights) > MOST_LIGHTS:
        raise ValueError(f"{len(lights)} lights in one sample, expected at most {MOST_LIGHTS}")
    for light in lights:
        status = light.get("status")
        value = status.args[0] if isinstance(status, Holder) else status
        known = LIGHTS.get(value, LightState.UNKNOWN) if isinstance(value, int) else LightState.UNKNOWN
        found[_text(light.get("lane_connector_id"))] = int(known)
    return found


def road_of(log: LoggedRun, maps: Path | None) -> RoadMap:
    """The part of the log's map that it drives through; no road without a folder of maps."""
    if maps is None:
        return NO_ROAD
    return open_city(find_map(maps, log.map_name), log.map_name).around(log.ego[:, :2], ())


def scenario_of(log: LoggedRun, maps: Path | None) -> Scenario:
    """The log as a scenario: the drive itself stands in for the expert's, which the file does not hold."""
    road = road_of(log, maps)
    route, goal = route_of_path(road, log.ego[:, :3]) if len(road) else ((), None)
    known = {name: lane for name, lane in road.lane_index.items() if road.is_connector[lane]}
    known |= {name[:-1]: lane for name, lane in known.items() if name.endswith("c")}
    lanes = sorted({known[name] for lit in log.lights for name in lit if name in known})
    column = {lane: i for i, lane in enumerate(lanes)}
    state = np.zeros((len(log.time_us), len(lanes)), dtype=np.uint8)
    for frame, lit in enumerate(log.lights):
        for name, value in lit.items():
            if name in known:
                state[frame, column[known[name]]] = value
    unknown = "expert" if len(road) else "expert, map"
    return Scenario(
        token=log.token,
        kind=log.kind,
        source="nuplan-log",
        map=road,
        time_us=log.time_us,
        ego=log.ego,
        tracks=log.tracks,
        lights=TrafficLights(np.array(lanes, dtype=np.int64), state),
        route=route,
        goal=goal if log.goal is None else log.goal,
        tags={"map": log.map_name, "planner": log.planner, UNKNOWN: unknown} | ({REBUILT: "route"} if route else {}),
    )


def rollout_of(log: LoggedRun, maps: Path | None) -> Rollout:
    """The drive with its plans, every 0.1 s for 8 s; a shorter plan goes straight on."""
    scenario = scenario_of(log, maps)
    whole = all(len(times) >= 2 for times, _ in log.plans)
    plans = np.stack([_on_grid(*plan, pose) for plan, pose in zip(log.plans, log.ego[:, :3])]) if whole else None
    return Rollout(scenario, log.time_us, log.ego, log.tracks, planner=log.planner, plans=plans)


def _on_grid(times: np.ndarray, poses: np.ndarray, now: np.ndarray) -> np.ndarray:
    """(80, 4) x, y, cos, sin in the ego frame."""
    plan = plan_from_poses(now[None], poses[None], times[None])
    return Plan(plan.trajectory, plan.times).on_grid(HORIZON)[0].to(torch.float32).numpy()


def read_simulation_log(path: Path, maps: Path | None = None) -> Rollout:
    """The drive in a SimulationLog file."""
    with reading(path.name, "log"):
        return rollout_of(read_log(path), maps)


@dataclass(frozen=True)
class SimulationLogItem:
    name: str
    path: Path
    maps: Path | None


class NuPlanLog:
    """SimulationLog files under `data`, with the maps under `maps` where they are."""

    name = "nuplan-log"

    def items(self, options: LogChoice) -> list[SimulationLogItem]:
        place = options.data
        if place is None or not place.exists():
            raise BadInput(f"{place or '--data'} does not exist: expected a {SUFFIX} file or a folder of them")
        files = [place] if place.is_file() else sorted(p for p in place.rglob(f"*{SUFFIX}") if p.is_file())
        return [
            SimulationLogItem(file.relative_to(place).as_posix() if file != place else file.name, file, options.maps)
            for file in files
        ]

    def scenarios(self, item: SimulationLogItem) -> Iterator[Scenario]:
        with reading(item.name, "log"):
            scenario = scenario_of(read_log(item.path), item.maps)
        yield scenario


NUPLAN_LOG = NuPlanLog()
