"""Small stand-ins of the devkit's interfaces: modules with the classes that radp touches, and a map api over a road."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import Enum, IntEnum
from functools import cached_property
from itertools import pairwise
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import shapely

from radp.integrations import nuplan_devkit
from radp.scenario import Box, Ego, LightState, ObjectType, RoadMap, Scenario


@dataclass(frozen=True)
class StateSE2:
    x: float
    y: float
    heading: float


@dataclass(frozen=True)
class StateVector2D:
    x: float
    y: float


@dataclass(frozen=True)
class Point2D:
    x: float
    y: float


@dataclass(frozen=True)
class TimePoint:
    time_us: int


class SemanticMapLayer(IntEnum):
    LANE = 0
    INTERSECTION = 1
    CROSSWALK = 4
    LANE_CONNECTOR = 11
    CARPARK_AREA = 15
    ROADBLOCK = 17
    ROADBLOCK_CONNECTOR = 18


@dataclass
class EgoState:
    rear_axle: StateSE2
    dynamic_car_state: Any
    tire_steering_angle: float
    time_point: TimePoint
    car_footprint: Any

    @property
    def time_us(self) -> int:
        return self.time_point.time_us

    @classmethod
    def build_from_rear_axle(
        cls,
        rear_axle_pose: StateSE2,
        rear_axle_velocity_2d: StateVector2D,
        rear_axle_acceleration_2d: StateVector2D,
        tire_steering_angle: float,
        time_point: TimePoint,
        vehicle_parameters: Any,
        is_in_auto_mode: bool = True,
        angular_vel: float = 0.0,
        angular_accel: float = 0.0,
        tire_steering_rate: float = 0.0,
    ) -> EgoState:
        moving = SimpleNamespace(
            rear_axle_velocity_2d=rear_axle_velocity_2d,
            rear_axle_acceleration_2d=rear_axle_acceleration_2d,
            angular_velocity=angular_vel,
            angular_acceleration=angular_accel,
            tire_steering_rate=tire_steering_rate,
        )
        footprint = SimpleNamespace(vehicle_parameters=vehicle_parameters)
        return cls(rear_axle_pose, moving, tire_steering_angle, time_point, footprint)


class InterpolatedTrajectory:
    def __init__(self, trajectory: list[EgoState]) -> None:
        assert len(trajectory) > 1
        assert all(b.time_us > a.time_us for a, b in pairwise(trajectory))
        self._trajectory = trajectory

    def get_sampled_trajectory(self) -> list[EgoState]:
        return self._trajectory


class AbstractPlanner:
    def __new__(cls, *args: Any, **kwargs: Any) -> AbstractPlanner:
        instance = super().__new__(cls)
        instance._compute_trajectory_runtimes = []
        return instance

    def compute_trajectory(self, current_input: Any) -> Any:
        return self.compute_planner_trajectory(current_input)


class DetectionsTracks:
    def __init__(self, tracked_objects: list[Any]) -> None:
        self.tracked_objects = tracked_objects


TrackedObjectType = Enum("TrackedObjectType", [kind.name for kind in ObjectType])
TrafficLightStatusType = Enum("TrafficLightStatusType", ["GREEN", "YELLOW", "RED", "UNKNOWN"])


class Piece:
    """A lane or connector of a road, as the devkit shows it."""

    def __init__(self, api: MapApi, lane: int) -> None:
        self._road, self._api, self._lane = api.road, api, lane
        self.id = api.road.lane_ids[lane]

    @property
    def polygon(self) -> shapely.Polygon:
        return shapely.Polygon(self._road.lane_polygons[self._lane][0])

    baseline_path = property(lambda self: _line(self._road.centerlines[self._lane]))
    left_boundary = property(lambda self: _line(self._road.left[self._lane]))
    right_boundary = property(lambda self: _line(self._road.right[self._lane][::-1]))  # real ones may run backwards
    incoming_edges = property(lambda self: [self._api.lanes[i] for i in self._road.predecessors[self._lane]])
    outgoing_edges = property(lambda self: [self._api.lanes[i] for i in self._road.successors[self._lane]])

    @property
    def speed_limit_mps(self) -> float | None:
        return float(self._road.speed_limit[self._lane]) if self._road.has_speed_limit[self._lane] else None

    @property
    def stop_lines(self) -> list[Any]:
        lines = self._road.stop_lines
        return [_area(lines, i) for i in self._road.lane_stop_lines[self._lane]]

    @property
    def index(self) -> int:
        lane, index = self._lane, 1
        while (left := int(self._road.left_neighbor[lane])) >= 0:
            lane, index = left, index + 1
        return index

    def get_roadblock_id(self) -> str:
        return self._road.roadblocks.ids[self._road.roadblock[self._lane]]


def _line(points: np.ndarray) -> Any:
    return SimpleNamespace(linestring=shapely.LineString(points))


def _area(areas: Any, i: int) -> Any:
    rings = areas.polygons[i]
    return SimpleNamespace(id=areas.ids[i], polygon=shapely.Polygon(rings[0]) if rings else shapely.Polygon())


class MapApi:
    """The public interface of the devkit's map over a RoadMap."""

    def __init__(self, road: RoadMap, map_name: str = "us-ma-boston") -> None:
        self.road, self.map_name = road, map_name
        self.asked = 0

    @cached_property
    def lanes(self) -> list[Piece]:
        return [Piece(self, i) for i in range(len(self.road))]

    def get_available_map_objects(self) -> list[SemanticMapLayer]:
        return list(SemanticMapLayer)

    def get_proximal_map_objects(self, point: Point2D, radius: float, layers: list[Any]) -> dict[Any, list[Any]]:
        self.asked += 1
        patch = shapely.box(point.x - radius, point.y - radius, point.x + radius, point.y + radius)
        return {layer: [t for t in self._all(layer) if t.polygon.intersects(patch)] for layer in layers}

    def _all(self, layer: SemanticMapLayer) -> list[Any]:
        if layer in (SemanticMapLayer.LANE, SemanticMapLayer.LANE_CONNECTOR):
            wanted = layer == SemanticMapLayer.LANE_CONNECTOR
            return [lane for lane, is_connector in zip(self.lanes, self.road.is_connector) if is_connector == wanted]
        if layer in (SemanticMapLayer.ROADBLOCK, SemanticMapLayer.ROADBLOCK_CONNECTOR):
            blocks = [self._block(i) for i in range(len(self.road.roadblocks))]
            return [b for b in blocks if b.is_connector == (layer == SemanticMapLayer.ROADBLOCK_CONNECTOR)]
        areas = {
            SemanticMapLayer.INTERSECTION: self.road.intersections,
            SemanticMapLayer.CROSSWALK: self.road.crosswalks,
        }
        found = areas.get(layer)
        return [] if found is None else [_area(found, i) for i in range(len(found))]

    def _block(self, i: int) -> Any:
        block, members = _area(self.road.roadblocks, i), self.road.lanes_of_roadblock[i]
        block.interior_edges = [self.lanes[lane] for lane in members]
        block.is_connector = bool(self.road.is_connector[members].all())
        return block

    def get_map_object(self, object_id: str, layer: SemanticMapLayer) -> Any:
        return next((thing for thing in self._all(layer) if thing.id == object_id), None)


def ego_state(time_us: int, row: np.ndarray) -> EgoState:
    return EgoState.build_from_rear_axle(
        StateSE2(*row[: Ego.HEADING + 1]), StateVector2D(*row[[Ego.VX, Ego.VY]]), StateVector2D(*row[[Ego.AX, Ego.AY]]),
        row[Ego.STEERING], TimePoint(int(time_us)), "pacifica", angular_vel=row[Ego.YAW_RATE],
        angular_accel=row[Ego.YAW_ACCEL], tire_steering_rate=row[Ego.STEERING_RATE],
    )  # fmt: skip


def detections(scenario: Scenario, frame: int) -> DetectionsTracks:
    tracks, things = scenario.tracks, []
    for i in np.flatnonzero(tracks.valid[:, frame]):
        row = tracks.state[i, frame]
        thing = SimpleNamespace(
            track_token=tracks.ids[i],
            tracked_object_type=TrackedObjectType[ObjectType(tracks.type[i]).name],
            center=StateSE2(row[Box.X], row[Box.Y], row[Box.HEADING]),
            box=SimpleNamespace(length=tracks.size[i, 0], width=tracks.size[i, 1], height=tracks.size[i, 2]),
        )
        if tracks.type[i] <= ObjectType.BICYCLE:
            thing.velocity = StateVector2D(row[Box.VX], row[Box.VY])
        things.append(thing)
    return DetectionsTracks(things)


def planner_input(scenario: Scenario, step: int, samples: int = 22) -> Any:
    """What the devkit gives a planner at a step, if the ego has followed the log."""
    now = scenario.start + step
    frames = range(max(0, now - samples + 1), now + 1)
    row, lanes = scenario.lights.state[now], scenario.lights.lane
    lights = [
        SimpleNamespace(
            lane_connector_id=scenario.map.lane_ids[lane], status=TrafficLightStatusType[LightState(s).name]
        )
        for lane, s in zip(lanes, row)
        if s != LightState.ABSENT
    ]
    history = SimpleNamespace(
        ego_states=[ego_state(scenario.time_us[f], scenario.ego[f]) for f in frames],
        observations=[detections(scenario, f) for f in frames],
    )
    iteration = SimpleNamespace(index=step, time_us=int(scenario.time_us[now]))
    return SimpleNamespace(iteration=iteration, history=history, traffic_light_data=lights)


def initialization(scenario: Scenario) -> Any:
    goal = None if scenario.goal is None else StateSE2(*scenario.goal)
    return SimpleNamespace(route_roadblock_ids=list(scenario.route), mission_goal=goal, map_api=MapApi(scenario.map))


CLASSES: dict[str, Any] = {
    "AbstractPlanner": AbstractPlanner,
    "DetectionsTracks": DetectionsTracks,
    "InterpolatedTrajectory": InterpolatedTrajectory,
    "EgoState": EgoState,
    "StateSE2": StateSE2,
    "StateVector2D": StateVector2D,
    "TimePoint": TimePoint,
    "Point2D": Point2D,
    "SemanticMapLayer": SemanticMapLayer,
}


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the stand-ins where the devkit's modules would be."""
    for name, place in nuplan_devkit.PLACES.items():
        parts = place.split(".")
        for depth in range(1, len(parts) + 1):
            path = ".".join(parts[:depth])
            if not getattr(sys.modules.get(path), "is_stand_in", False):
                module = ModuleType(path)
                module.is_stand_in, module.__path__ = True, []  # type: ignore[attr-defined]
                monkeypatch.setitem(sys.modules, path, module)
        setattr(sys.modules[place], name, CLASSES[name])
    forget()


def forget() -> None:
    """The classes are made once for each process: tests need them anew."""
    nuplan_devkit.load_devkit.cache_clear()
    nuplan_devkit.planner_class.cache_clear()
