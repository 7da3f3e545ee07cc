"""SimulationLog files as nuplan-devkit writes them, made of our scenarios with classes that only carry its names."""

from __future__ import annotations

import lzma
import pickle
import sys
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from types import ModuleType

import numpy as np

from radp.scenario import PACIFICA, Box, Ego, Scenario
from radp.scenario.scenario import FIRST_STATIC_TYPE

STATE = "nuplan.common.actor_state"
PLACES = {
    "SimulationLog": "nuplan.planning.simulation.simulation_log",
    "SimulationHistory": "nuplan.planning.simulation.history.simulation_history",
    "SimulationHistorySample": "nuplan.planning.simulation.history.simulation_history",
    "NuPlanMap": "nuplan.common.maps.nuplan_map.nuplan_map",
    "OwnPlanner": "somebody.planner",
    "EgoState": f"{STATE}.ego_state",
    "CarFootprint": f"{STATE}.car_footprint",
    "DynamicCarState": f"{STATE}.dynamic_car_state",
    "StateSE2": f"{STATE}.state_representation",
    "StateVector2D": f"{STATE}.state_representation",
    "TimePoint": f"{STATE}.state_representation",
    "InterpolatedTrajectory": "nuplan.planning.simulation.trajectory.interpolated_trajectory",
    "DetectionsTracks": "nuplan.planning.simulation.observation.observation_type",
    "TrackedObjects": f"{STATE}.tracked_objects",
    "Agent": f"{STATE}.agent",
    "StaticObject": f"{STATE}.static_object",
    "SceneObjectMetadata": f"{STATE}.scene_object",
    "TrackedObjectType": f"{STATE}.tracked_objects_types",
    "OrientedBox": f"{STATE}.oriented_box",
    "TrafficLightStatusData": "nuplan.common.maps.maps_datatypes",
    "TrafficLightStatusType": "nuplan.common.maps.maps_datatypes",
}
BY_CALL = ("InterpolatedTrajectory", "NuPlanMap", "TrackedObjectType", "TrafficLightStatusType")


@contextmanager
def named_classes():
    """The classes by name, importable under the devkit's names for as long as they are pickled."""
    parents = [place.split(".")[0] for place in PLACES.values()]  # pickle imports them, too
    modules = {place: ModuleType(place) for place in [*parents, *PLACES.values()]}
    kinds = {}
    for name, place in PLACES.items():
        kinds[name] = type(name, (), {"__module__": place})
        if name in BY_CALL:
            kinds[name].__reduce__ = lambda self: (type(self), self.args)
        setattr(modules[place], name, kinds[name])
    before = {place: sys.modules.get(place) for place in modules}
    sys.modules |= modules
    try:
        yield kinds
    finally:
        for place, module in before.items():
            sys.modules.pop(place) if module is None else sys.modules.update({place: module})


def write_log(scenario: Scenario, path: Path, map_name: str, ahead: int = 20) -> None:
    """The drive of a scenario from its start on, planned by a planner that knows the next `ahead` frames."""
    with named_classes() as kinds:
        raw = pickle.dumps(_log(kinds, scenario, map_name, ahead), protocol=5)
    path.write_bytes(lzma.compress(b"\xc6" + len(raw).to_bytes(4, "big") + raw, preset=0))


def _log(kinds, scenario, map_name, ahead):
    def make(name, **fields):
        made = kinds[name]()
        made.__dict__.update(fields)
        return made

    def call(name, *args):
        return make(name, args=args)

    def point(x, y, heading):
        return make("StateSE2", x=float(x), y=float(y), heading=np.float64(heading))

    def vector(x, y):
        return make("StateVector2D", _x=float(x), _y=float(y), _array=np.array([x, y]))

    def ego(frame):
        row, back = scenario.ego[frame], PACIFICA.rear_axle_to_center
        h = row[Ego.HEADING]
        centre = point(row[0] + back * np.cos(h), row[1] + back * np.sin(h), h)
        dynamic = make(
            "DynamicCarState", _rear_axle_velocity_2d=vector(*row[3:5]), _rear_axle_acceleration_2d=vector(*row[5:7]),
            _angular_velocity=row[7], _angular_acceleration=row[8], _tire_steering_rate=row[10],
        )  # fmt: skip
        return make(
            "EgoState", _car_footprint=make("CarFootprint", _center=centre), _dynamic_car_state=dynamic,
            _tire_steering_angle=row[9], _time_point=make("TimePoint", time_us=int(scenario.time_us[frame])),
        )  # fmt: skip

    def thing(i, frame):
        state, size, kind = scenario.tracks.state[i, frame], scenario.tracks.size[i], int(scenario.tracks.type[i])
        box = make("OrientedBox", _center=point(*state[:3]), _length=size[0], _width=size[1], _height=size[2])
        fields = {
            "_box": box, "_tracked_object_type": call("TrackedObjectType", kind),
            "_metadata": make("SceneObjectMetadata", track_token=scenario.tracks.ids[i], track_id=i),
        }  # fmt: skip
        if kind >= FIRST_STATIC_TYPE:
            return make("StaticObject", **fields)
        return make("Agent", **fields, _velocity=vector(*state[[Box.VX, Box.VY]]))

    def light(column, frame):
        value, name = int(scenario.lights.state[frame, column]), scenario.map.lane_ids[scenario.lights.lane[column]]
        status = call("TrafficLightStatusType", value - 1)
        return make("TrafficLightStatusData", status=status, lane_connector_id=int(name.removesuffix("c")))

    samples, last = [], len(scenario.time_us)
    for frame in range(scenario.start, last - 1):
        seen = [i for i in range(len(scenario.tracks)) if scenario.tracks.valid[i, frame]]
        lit = [c for c in range(len(scenario.lights.lane)) if scenario.lights.state[frame, c]]
        plan = [ego(f) for f in range(frame, min(frame + ahead + 1, last))]
        boxes = make("TrackedObjects", tracked_objects=[thing(i, frame) for i in seen])
        samples.append(
            make(
                "SimulationHistorySample", ego_state=plan[0], trajectory=call("InterpolatedTrajectory", plan),
                observation=make("DetectionsTracks", tracked_objects=boxes),
                traffic_light_status=[light(c, frame) for c in lit],
            )
        )  # fmt: skip
    history = make("SimulationHistory", map_api=call("NuPlanMap", None, map_name), mission_goal=None, data=samples)
    place = PurePosixPath("out", "planner", scenario.kind, "log", scenario.token, f"{scenario.token}.msgpack.xz")
    planner = make("OwnPlanner", caches={(1, 2): "a key that is no plain one"}, weights=np.zeros(3))
    return make("SimulationLog", file_path=place, scenario=None, planner=planner, simulation_history=history)
