"""Hand-made logs on hand-made roads: an ego that stands or drives on, a few objects, a few lights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from radp.scenario import Box, Ego, LightState, ObjectType, RoadMap, Scenario, Tracks, TrafficLights
from radp.scenario.neutral_json import scenario_from_json
from tests.made_roads import lane, road

FAR = (1000.0, 1000.0, 0.0)  # an ego that is in nobody's way
GREEN, RED, YELLOW = LightState.GREEN, LightState.RED, LightState.YELLOW

LANE = 3.5  # m, width of a lane of `made_scenario`
SPLIT = (100.0, 120.0)  # its connectors lie between these distances
LENGTH = 400.0
FRAMES = 151
DT = 0.1


def tracks(objects: list[dict[str, Any]], frames: int) -> Tracks:
    """Each object: type, size (length, width), state (5,) or (frames, 5), valid (frames,) or True."""
    state = np.zeros((len(objects), frames, len(Box)))
    valid = np.zeros((len(objects), frames), dtype=bool)
    for i, thing in enumerate(objects):
        valid[i] = thing.get("valid", True)
        state[i] = np.where(valid[i][:, None], np.broadcast_to(thing["state"], (frames, len(Box))), 0.0)
    return Tracks(
        ids=tuple(thing.get("id", str(i)) for i, thing in enumerate(objects)),
        type=np.array([thing.get("type", ObjectType.VEHICLE) for thing in objects], dtype=np.uint8),
        size=np.array([(*thing.get("size", (4.0, 2.0)), 1.5) for thing in objects]).reshape(-1, 3),
        state=state,
        valid=valid,
    )


def log(
    road_map: RoadMap | None = None,
    objects: list[dict[str, Any]] | None = None,
    ego: np.ndarray | tuple[float, float, float] = (0.0, 0.0, 0.0),
    frames: int = 101,
    lights: dict[str, np.ndarray | int] | None = None,
    route: tuple[str, ...] = (),
    start: int = 20,
) -> Scenario:
    """A log whose ego stands at a pose (3,) or follows states (frames, 11); lights: lane id -> LightState (frames,)."""
    road_map = road_map or road()
    states = np.zeros((frames, len(Ego)))
    states[:, : np.shape(ego)[-1]] = ego
    names = sorted(lights or {}, key=road_map.lane_index.__getitem__)
    light_state = np.zeros((frames, len(names)), dtype=np.uint8)
    for i, name in enumerate(names):
        light_state[:, i] = (lights or {})[name]
    scenario = Scenario(
        token="made",
        kind="made",
        source="made",
        map=road_map,
        time_us=np.arange(frames, dtype=np.int64) * 100_000,
        ego=states,
        tracks=tracks(objects or [], frames),
        lights=TrafficLights(np.array([road_map.lane_index[n] for n in names], dtype=np.int64), light_state),
        route=route,
        start=start,
    )
    scenario.validate()
    return scenario


def still(
    road_map: RoadMap, objects: Sequence[tuple], ego: tuple[float, float, float] = FAR, frames: int = 60,
    lights: dict[int, Any] | None = None, start: int = 0,
) -> Scenario:  # fmt: skip
    """A log in which all stand still. Objects are (type, x, y, heading, speed[, length, width]).

    lights: index of a connector -> state, or states (start + frames,).
    """
    rows = [
        {
            "id": f"{ObjectType(kind).name.lower()}{i:02d}", "type": kind, "size": size or (4.0, 2.0),
            "state": (x, y, heading, speed * np.cos(heading), speed * np.sin(heading)),
        }
        for i, (kind, x, y, heading, speed, *size) in enumerate(objects)
    ]  # fmt: skip
    lit = {road_map.lane_ids[i]: state for i, state in (lights or {}).items()}
    return log(road_map, rows, ego, start + frames, lit, start=start)


def car(x: float, y: float = 0.0, heading: float = 0.0, speed: float = 0.0, *size: float) -> tuple:
    """An object for `still`."""
    return (ObjectType.VEHICLE, x, y, heading, speed, *size)


def street(s: np.ndarray, lateral: float, radius: float | None) -> np.ndarray:
    """(S,) distances -> (S, 2) points `lateral` to the left of a line that goes east, then bends left from 40 m on."""
    if radius is None:
        return np.stack((s, np.full_like(s, lateral)), -1)
    turn = np.maximum(0.0, s - 40.0) / radius
    x = np.minimum(s, 40.0) + radius * np.sin(turn)
    y = radius * (1.0 - np.cos(turn))
    return np.stack((x - lateral * np.sin(turn), y + lateral * np.cos(turn)), -1)


def strip(name: int, block: int, start: float, end: float, lateral: float, radius: float | None, **more) -> dict:
    """A lane or connector between two distances along the street."""
    s = np.linspace(start, end, max(2, int(end - start) + 1))
    sides = {"left": LANE / 2, "right": -LANE / 2}
    borders = {side: street(s, lateral + shift, radius).tolist() for side, shift in sides.items()}
    return lane(str(name), street(s, lateral, radius), str(block), **{"speed_limit_mps": 10.0, **borders, **more})


def thing(name: str, s: float, lateral: float = 0.0, speed: float = 0.0, heading: float = 0.0, **more) -> dict:
    """An object on the straight street; it appears at frame `first` and goes straight on at its speed."""
    first = more.pop("first", 0)
    frames = np.arange(first, FRAMES)
    vx, vy = speed * math.cos(heading), speed * math.sin(heading)
    row = {
        "track_id": name, "type": "VEHICLE", "length": 4.6, "width": 1.9, "frame": frames.tolist(),
        "x": (s + vx * DT * frames).tolist(), "y": (lateral + vy * DT * frames).tolist(),
        "heading": [heading] * len(frames), "vx": [vx] * len(frames), "vy": [vy] * len(frames),
    }  # fmt: skip
    return {**row, **more}


def made_scenario(
    speed: float = 8.0,
    things: tuple[dict, ...] = (),
    lights: tuple[str, ...] = (),
    radius: float | None = None,
    second_lane: bool = False,
    only_left_leads_on: bool = False,
    start: float = 20.0,
) -> Scenario:
    """Street 10 -> connectors 11 -> street 12, lane ids 101 111 121 (and 102 112 122 on the left of them).

    lights: status of the connectors, one for each second, the last one stays. The expert drives on at constant speed.
    """
    lit = {"stop_line_ids": [900]} if lights else {}
    right, left = {"index": 2}, {"index": 1}
    parts = [(1, 0.0, right)] + ([(2, LANE, left)] if second_lane else [])
    lanes = []
    for k, lateral, place in parts:
        goes_on = not (only_left_leads_on and k == 1)
        joint = {"kind": "connector", **lit}
        ends = {"successors": [110 + k]} if goes_on else {}
        lanes.append(strip(100 + k, 10, 0.0, SPLIT[0], lateral, radius, **ends, **place))
        if goes_on:
            links = {"predecessors": [100 + k], "successors": [120 + k]}
            lanes.append(strip(110 + k, 11, *SPLIT, lateral, radius, **links, **joint, **place))
            lanes.append(strip(120 + k, 12, SPLIT[1], LENGTH, lateral, radius, predecessors=[110 + k], **place))
    s = start + speed * DT * np.arange(FRAMES)
    points = street(s, 0.0, radius)
    heading = np.zeros(FRAMES) if radius is None else np.maximum(0.0, s - 40.0) / radius
    width = np.array([-LANE / 2, LANE * (len(parts) - 0.5)])
    crossing = np.concatenate(
        (street(np.array(SPLIT), width[1], radius), street(np.array(SPLIT[::-1]), width[0], radius))
    )
    states = {"x": points[:, 0], "y": points[:, 1], "heading": heading, "vx": np.full(FRAMES, speed)}
    rows = [
        {"frame": f, "lane_connector_id": lane["id"], "status": lights[min(f // 10, len(lights) - 1)]}
        for f in range(FRAMES if lights else 0)
        for lane in lanes
        if lane["kind"] == "connector"
    ]
    stop = [[SPLIT[0] - 0.5, -2.0], [SPLIT[0] + 0.5, -2.0], [SPLIT[0] + 0.5, 6.0], [SPLIT[0] - 0.5, 6.0]]
    data = {
        "name": "made", "scenario_type": "made", "dt": DT, "agents": list(things), "traffic_lights": rows,
        "expert": {"time_us": [100_000 * i for i in range(FRAMES)], **{k: v.tolist() for k, v in states.items()}},
        "route_roadblock_ids": [10, 11, 12], "mission_goal": None,
        "map": {
            "lanes": lanes, "intersections": [{"id": 700, "polygon": crossing.tolist()}],
            "drivable_areas": [{"id": 800, "polygon": crossing.tolist()}],
            "stop_lines": [{"id": 900, "polygon": stop}] if lights else [],
        },
    }  # fmt: skip
    return scenario_from_json(data)


def cut_short(scenario: Scenario, frames: int) -> Scenario:
    """The log up to its start and so many frames from there on."""
    last, tracks, lights = scenario.start + frames, scenario.tracks, scenario.lights
    return replace(
        scenario,
        time_us=scenario.time_us[:last],
        ego=scenario.ego[:last],
        tracks=replace(tracks, state=tracks.state[:, :last], valid=tracks.valid[:, :last]),
        lights=replace(lights, state=lights.state[:last]),
    )
