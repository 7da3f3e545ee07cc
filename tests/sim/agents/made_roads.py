"""Small hand-made roads and scenarios with known answers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from radp.geometry.ragged import Polygons, Ragged
from radp.scenario import (
    NO_AREAS,
    Areas,
    Box,
    Ego,
    LightState,
    ObjectType,
    RoadMap,
    Scenario,
    Tracks,
    TrafficLights,
)  # fmt: skip

WIDTH = 4.0  # m, of a lane
FAR = (1000.0, 1000.0, 0.0)  # an ego that is in nobody's way


def line(x0: float, y0: float, x1: float, y1: float, spacing: float = 1.0) -> np.ndarray:
    """Points from one place to another, about `spacing` apart."""
    count = max(2, round(np.hypot(x1 - x0, y1 - y0) / spacing) + 1)
    return np.linspace((x0, y0), (x1, y1), count)


def arc(x: float, y: float, heading: float, radius: float, angle: float, count: int = 20) -> np.ndarray:
    """Points of a bend that starts at a pose; positive angles bend to the left."""
    turn = np.linspace(0.0, angle, count) * np.sign(angle)
    side = np.sign(angle)
    local = np.column_stack([np.sin(turn), side * (1 - np.cos(turn))]) * radius
    c, s = np.cos(heading), np.sin(heading)
    return local @ np.array([[c, s], [-s, c]]) + (x, y)


class RoadMaker:
    """Collects lanes; every area is the centre line widened to both sides."""

    def __init__(self) -> None:
        self.lanes: list[dict] = []
        self.stops: list[np.ndarray] = []
        self.crossings: list[np.ndarray] = []

    def add(
        self, centre: np.ndarray, after: Sequence[int] = (), connector: bool = False, limit: float = 0.0,
        stops: Sequence[np.ndarray] = (),
    ) -> int:  # fmt: skip
        """Append a lane or connector that follows the lanes `after`; returns its index."""
        first = len(self.stops)
        self.stops.extend(stops)
        self.lanes.append({
            "centre": centre, "after": list(after), "connector": connector, "limit": limit,
            "stops": list(range(first, len(self.stops))),
        })  # fmt: skip
        return len(self.lanes) - 1

    def build(self) -> RoadMap:
        step = [np.gradient(lane["centre"], axis=0) for lane in self.lanes]
        normal = [np.column_stack([-d[:, 1], d[:, 0]]) / np.linalg.norm(d, axis=1)[:, None] for d in step]
        left = [lane["centre"] + n * WIDTH / 2 for lane, n in zip(self.lanes, normal)]
        right = [lane["centre"] - n * WIDTH / 2 for lane, n in zip(self.lanes, normal)]
        areas = Polygons.from_exteriors([np.concatenate([a, b[::-1]]) for a, b in zip(left, right)])
        count = len(self.lanes)
        follow = [[j for j in range(count) if i in self.lanes[j]["after"]] for i in range(count)]
        limits = np.array([lane["limit"] for lane in self.lanes])
        names = tuple(str(i) for i in range(count))
        road = RoadMap(
            lane_ids=names,
            is_connector=np.array([lane["connector"] for lane in self.lanes]),
            centerlines=Ragged.from_rows([lane["centre"] for lane in self.lanes], width=2),
            left=Ragged.from_rows(left, width=2),
            right=Ragged.from_rows(right, width=2),
            lane_polygons=areas,
            speed_limit=limits,
            has_speed_limit=limits > 0,
            predecessors=Ragged.from_rows([lane["after"] for lane in self.lanes], dtype=np.int64),
            successors=Ragged.from_rows(follow, dtype=np.int64),
            left_neighbor=np.full(count, -1),
            right_neighbor=np.full(count, -1),
            roadblock=np.arange(count),
            lane_stop_lines=Ragged.from_rows([lane["stops"] for lane in self.lanes], dtype=np.int64),
            roadblocks=Areas(names, areas),
            intersections=_areas(self.crossings),
            drivable=NO_AREAS,
            stop_lines=_areas(self.stops),
            crosswalks=NO_AREAS,
        )
        road.validate()
        return road


def _areas(exteriors: list[np.ndarray]) -> Areas:
    return Areas(tuple(str(i) for i in range(len(exteriors))), Polygons.from_exteriors(exteriors))


def square(x0: float, y0: float, x1: float, y1: float) -> np.ndarray:
    return np.array([(x0, y0), (x1, y0), (x1, y1), (x0, y1)])


def make(
    road: RoadMap, objects: Sequence[tuple], ego: tuple[float, float, float] = FAR, frames: int = 60,
    lights: dict[int, Sequence[int] | int] | None = None, start: int = 0,
) -> Scenario:  # fmt: skip
    """Objects are (type, x, y, heading, speed[, length, width]); they and the ego stand still in the log.

    lights: connector -> state, or states per frame.
    """
    total = start + frames
    state, size = np.zeros((len(objects), total, len(Box))), np.zeros((len(objects), 3))
    for i, (_, x, y, heading, speed, *dims) in enumerate(objects):
        state[i] = (x, y, heading, speed * np.cos(heading), speed * np.sin(heading))
        size[i] = (*(dims or (4.0, 2.0)), 1.5)
    log = np.zeros((total, len(Ego)))
    log[:, :3] = ego
    lanes = sorted(lights or {})
    signal = np.zeros((total, len(lanes)), dtype=np.uint8)
    for column, lane in enumerate(lanes):
        signal[:, column] = (lights or {})[lane]
    tracks = Tracks(
        ids=tuple(f"{ObjectType(o[0]).name.lower()}{i:02d}" for i, o in enumerate(objects)),
        type=np.array([o[0] for o in objects], dtype=np.uint8),
        size=size,
        state=state,
        valid=np.ones((len(objects), total), dtype=bool),
    )
    scenario = Scenario(
        token="made", kind="made", source="made", map=road, time_us=np.arange(total, dtype=np.int64) * 100_000, ego=log,
        tracks=tracks, lights=TrafficLights(np.array(lanes, dtype=np.int64), signal), route=(), start=start,
    )  # fmt: skip
    scenario.validate()
    return scenario


def car(x: float, y: float = 0.0, heading: float = 0.0, speed: float = 0.0, *size: float) -> tuple:
    return (ObjectType.VEHICLE, x, y, heading, speed, *size)


GREEN, RED, YELLOW = LightState.GREEN, LightState.RED, LightState.YELLOW
