"""What the devkit shows a planner (history buffer, map, route, lights) as an Observation."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from radp.integrations.nuplan_map import road_around
from radp.scenario import Box, Briefing, Ego, LightState, ObjectType, RoadMap, Scenario, Tracks, TrafficLights
from radp.sim.observation import HISTORY, Observation

STRAY = 0.4  # share of the radius after which the road is asked for again


@dataclass(frozen=True)
class Sighting:
    """The objects of one sample: ids, type (A,), size (A, 3), state (A, 5). `seen` keeps the devkit's object alive."""

    ids: list[str]
    type: np.ndarray
    size: np.ndarray
    state: np.ndarray
    seen: Any


class DriveMemory:
    """The memory of one drive in the devkit."""

    def __init__(
        self,
        map_api: Any,
        route: Sequence[str] | None,
        goal: Any,
        layers: Any,
        point: Any,
        seed: int = 0,
        radius: float = 250.0,
    ) -> None:
        self._api, self._layers, self._point = map_api, layers, point
        self._route = tuple(str(block) for block in route or ())
        self._goal = None if goal is None else np.array([goal.x, goal.y, goal.heading], dtype=np.float64)
        self._seed, self._radius = seed, radius
        self._scenario: Scenario | None = None
        self._sightings: OrderedDict[int, Sighting] = OrderedDict()

    def observe(self, current_input: Any) -> tuple[Observation, Scenario | None]:
        """What is seen now, for one world, and the scenario behind it if its piece of road is a new one."""
        states = list(current_input.history.ego_states)[-HISTORY:]
        seen = [self._sighting(sample) for sample in list(current_input.history.observations)[-HISTORY:]]
        step = int(current_input.iteration.index)
        ego = np.array([ego_row(state) for state in states])
        fresh = self._scenario is None or self._has_strayed(ego[-1])
        if fresh:
            self._scenario = self._make_scenario(ego[-1], int(states[-1].time_us))
        scenario = self._scenario
        assert scenario is not None
        lights = light_row(scenario.briefing, current_input.traffic_light_data)
        observation = observation_of(scenario.briefing, step, states, ego, seen, lights, self._seed)
        return observation, scenario if fresh else None

    def _sighting(self, sample: Any) -> Sighting:
        """Samples stay in the buffer for 2 s: each is read once."""
        key = id(sample)
        if key not in self._sightings:
            self._sightings[key] = read_objects(sample)
            while len(self._sightings) > HISTORY + 1:
                self._sightings.popitem(last=False)
        self._sightings.move_to_end(key)
        return self._sightings[key]

    def _has_strayed(self, ego: np.ndarray) -> bool:
        assert self._scenario is not None
        return bool(np.hypot(*(ego[:2] - self._scenario.ego[0, :2])) > STRAY * self._radius)

    def _make_scenario(self, ego: np.ndarray, time_us: int) -> Scenario:
        """A scenario without a log: the road around the ego, the route, and the ego as it is now."""
        road = road_around(self._api, self._layers, self._point, ego[:2], self._route, self._radius)
        token = self._scenario.token if self._scenario is not None else f"{road.name}-{time_us}"
        return Scenario(
            token=token,
            kind="unknown",
            source="nuplan-devkit",
            map=road,
            time_us=np.array([time_us]),
            ego=ego[None],
            tracks=Tracks((), np.zeros(0, np.uint8), np.zeros((0, 3)), np.zeros((0, 1, 5)), np.zeros((0, 1), bool)),
            lights=no_lights(road),
            route=self._route,
            goal=self._goal,
        )


def light_row(briefing: Briefing, lights: Any) -> np.ndarray:
    """The devkit's lights -> (C,) LightState in step with the briefing's connectors."""
    column = {briefing.map.lane_ids[lane]: i for i, lane in enumerate(briefing.light_lanes)}
    row = np.full(len(column), LightState.ABSENT, dtype=np.uint8)
    for light in lights or ():
        place = column.get(str(light.lane_connector_id), column.get(f"{light.lane_connector_id}c"))
        if place is not None:
            row[place] = LightState[light.status.name]
    return row


def no_lights(road: RoadMap) -> TrafficLights:
    """A place for the light of every connector; none is known yet."""
    connectors = np.flatnonzero(road.is_connector)
    return TrafficLights(connectors, np.zeros((1, len(connectors)), dtype=np.uint8))


def ego_row(state: Any) -> np.ndarray:
    """The devkit's EgoState -> (11,) columns Ego."""
    moving, row = state.dynamic_car_state, np.zeros(len(Ego))
    row[[Ego.X, Ego.Y, Ego.HEADING]] = state.rear_axle.x, state.rear_axle.y, state.rear_axle.heading
    row[[Ego.VX, Ego.VY]] = moving.rear_axle_velocity_2d.x, moving.rear_axle_velocity_2d.y
    row[[Ego.AX, Ego.AY]] = moving.rear_axle_acceleration_2d.x, moving.rear_axle_acceleration_2d.y
    row[[Ego.YAW_RATE, Ego.YAW_ACCEL]] = moving.angular_velocity, moving.angular_acceleration
    row[[Ego.STEERING, Ego.STEERING_RATE]] = state.tire_steering_angle, moving.tire_steering_rate
    return np.nan_to_num(row)


def read_objects(sample: Any) -> Sighting:
    """The devkit's DetectionsTracks -> arrays; static objects have no velocity, types that radp lacks are left out."""
    ids, kinds, sizes, states = [], [], [], []
    for thing in sample.tracked_objects:
        kind = ObjectType.__members__.get(thing.tracked_object_type.name)
        if kind is None:
            continue
        speed = getattr(thing, "velocity", None)
        ids.append(str(thing.track_token))
        kinds.append(kind)
        sizes.append((thing.box.length, thing.box.width, thing.box.height))
        pose = (thing.center.x, thing.center.y, thing.center.heading)
        states.append((*pose, speed.x, speed.y) if speed is not None else (*pose, 0.0, 0.0))
    state = np.nan_to_num(np.array(states, dtype=np.float64).reshape(-1, len(Box)))
    size = np.array(sizes, dtype=np.float64).reshape(-1, 3)
    return Sighting(ids, np.array(kinds, dtype=np.uint8), size, state, sample)


def observation_of(
    briefing: Briefing,
    step: int,
    states: Sequence[Any],
    ego: np.ndarray,
    seen: Sequence[Sighting],
    lights: np.ndarray,
    seed: int,
) -> Observation:
    """Samples (at most 21, the last is now) -> Observation of one world. Objects seen now come first."""
    known, names = len(states), list(dict.fromkeys(name for sighting in reversed(seen) for name in sighting.ids))
    place = {name: i for i, name in enumerate(names)}
    count, late = len(names), slice(HISTORY - known, HISTORY)
    agents, valid = np.zeros((1, HISTORY, count, len(Box))), np.zeros((1, HISTORY, count), dtype=bool)
    kinds, sizes = np.zeros((1, count), dtype=np.uint8), np.zeros((1, count, 3))
    for k, sighting in enumerate(seen, start=HISTORY - len(seen)):
        rows = [place[name] for name in sighting.ids]
        agents[0, k, rows], valid[0, k, rows] = sighting.state, True
        kinds[0, rows], sizes[0, rows] = sighting.type, sighting.size
    time_us = np.zeros((1, HISTORY), dtype=np.int64)
    time_us[0, late] = [int(state.time_us) for state in states]
    time_us[0, : HISTORY - known] = time_us[0, HISTORY - known] - 100_000 * np.arange(HISTORY - known, 0, -1)
    past, there = np.zeros((1, HISTORY, len(Ego))), np.zeros((1, HISTORY), dtype=bool)
    past[0, late], there[0, late] = ego, True
    digest = hashlib.blake2b(f"{seed}:{briefing.token}:{step}".encode(), digest_size=8).digest()
    seeds = np.array([int.from_bytes(digest, "little")], dtype=np.uint64)
    return Observation((briefing,), step, time_us, past, there, agents, valid, kinds, sizes, (lights,), seeds)
