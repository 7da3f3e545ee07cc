"""Hand-made roads and logs: few lanes with round numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from radp.scenario import Box, Ego, ObjectType, RoadMap, Scenario, Tracks, TrafficLights
from radp.scenario.neutral_json import map_from_json

WIDTH = 4.0
CONNECTOR = {"kind": "connector", "index": None}


def lane(
    name: str, points: list, block: str, successors: tuple[str, ...] = (), index: int = 1, **more: Any
) -> dict[str, Any]:
    """A lane 4 m wide as neutral JSON; `points` is its centreline."""
    line = np.asarray(points, dtype=np.float64)
    step = np.gradient(line, axis=0)
    normal = np.stack((-step[:, 1], step[:, 0]), 1) / np.hypot(*step.T)[:, None]
    row = {
        "id": name,
        "kind": "lane",
        "centerline": line.tolist(),
        "left": (line + WIDTH / 2 * normal).tolist(),
        "right": (line - WIDTH / 2 * normal).tolist(),
        "speed_limit_mps": None,
        "roadblock_id": block,
        "predecessors": [],
        "successors": list(successors),
        "index": index,
    }
    return row | more


def road(*lanes: dict[str, Any]) -> RoadMap:
    rows = {row["id"]: row for row in lanes}
    for row in lanes:
        for follower in row["successors"]:
            rows[follower]["predecessors"] = [*rows[follower]["predecessors"], row["id"]]
    return map_from_json({"lanes": list(lanes)})


def fork():
    """a, then left or straight on; straight on goes on for long."""
    return road(
        lane("1", [(0, 0), (60, 0)], "a", ("2", "3")),
        lane("2", [(60, 0), (70, 3), (75, 15)], "left", ("5",), **CONNECTOR),
        lane("3", [(60, 0), (75, 0)], "straight", ("4",), **CONNECTOR),
        lane("4", [(75, 0), (500, 0)], "b"),
        lane("5", [(75, 15), (75, 500)], "c"),
    )


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
        source="test",
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
