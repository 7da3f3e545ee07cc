"""radp's planners inside nuPlan's own simulator: `RadpPlanner` is an AbstractPlanner of nuplan-devkit.

The devkit is imported when `RadpPlanner` is asked for, not when this file is. docs/nuplan.md has the command.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from radp.attribution.online import ExplainedPlanner, calibration_of
from radp.integrations.nuplan_world import DriveMemory
from radp.planners import load_planner
from radp.runs.errors import BadInput, MissingExtra
from radp.runs.json_text import json_text
from radp.scenario import DT_US
from radp.sim.controller import followed_trajectories
from radp.sim.plan import Plan
from radp.sim.planner import start_planner

HORIZON_US = 8_000_000
RADIUS = 250.0  # m
PLACES = {
    "AbstractPlanner": "nuplan.planning.simulation.planner.abstract_planner",
    "DetectionsTracks": "nuplan.planning.simulation.observation.observation_type",
    "InterpolatedTrajectory": "nuplan.planning.simulation.trajectory.interpolated_trajectory",
    "EgoState": "nuplan.common.actor_state.ego_state",
    "StateSE2": "nuplan.common.actor_state.state_representation",
    "StateVector2D": "nuplan.common.actor_state.state_representation",
    "TimePoint": "nuplan.common.actor_state.state_representation",
    "Point2D": "nuplan.common.actor_state.state_representation",
    "SemanticMapLayer": "nuplan.common.maps.maps_datatypes",
}


@dataclass(frozen=True)
class Devkit:
    """The classes of the devkit that are touched."""

    AbstractPlanner: Any
    DetectionsTracks: Any
    InterpolatedTrajectory: Any
    EgoState: Any
    StateSE2: Any
    StateVector2D: Any
    TimePoint: Any
    Point2D: Any
    SemanticMapLayer: Any


@cache
def load_devkit() -> Devkit:
    """Import the devkit, or say in one sentence what is missing."""
    try:
        return Devkit(**{name: getattr(import_module(place), name) for name, place in PLACES.items()})
    except (ImportError, AttributeError) as error:
        raise MissingExtra(
            f"nuplan-devkit is needed here ({error}); it is not on PyPI: install it from its repository"
        ) from None


def __getattr__(name: str) -> Any:
    """`RadpPlanner` is made on first use, since its base class belongs to the devkit."""
    if name == "RadpPlanner":
        return planner_class()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@cache
def planner_class() -> type:
    devkit = load_devkit()

    class RadpPlanner(devkit.AbstractPlanner):  # type: ignore[name-defined]  # imported only now
        """One drive: `initialize`, then `compute_planner_trajectory` at every step."""

        requires_scenario = False

        def __init__(
            self, planner: str, pressures: str | None = None, seed: int = 0, radius: float = RADIUS, **options: Any
        ) -> None:
            """A planner by name (options go to it); `pressures` is a folder for the rule pressures of every step."""
            if planner == "log_replay":
                raise BadInput("log_replay needs the log of the future, which the devkit does not give to planners")
            own = load_planner(planner, **options)
            self._planner = ExplainedPlanner(own, calibration_of(own, planner)) if pressures is not None else own
            self._log = None if pressures is None else Path(pressures)
            self._seed, self._radius = seed, radius
            self._memory: DriveMemory | None = None

        def name(self) -> str:
            return f"radp_{self._planner.name}"

        def observation_type(self) -> Any:
            return devkit.DetectionsTracks

        def initialize(self, initialization: Any) -> None:
            """Take map, route and goal of a new drive."""
            self._memory = DriveMemory(
                initialization.map_api, initialization.route_roadblock_ids, initialization.mission_goal,
                devkit.SemanticMapLayer, devkit.Point2D, self._seed, self._radius,
            )  # fmt: skip

        def compute_planner_trajectory(self, current_input: Any) -> Any:
            """A trajectory of 8 s from now."""
            if self._memory is None:
                raise RuntimeError("initialize comes before compute_planner_trajectory")
            observation, new = self._memory.observe(current_input)
            if new is not None:
                start_planner(self._planner, (new,))
            plan = self._planner.plan(observation)
            ego = current_input.history.ego_states[-1]
            poses, times_us = world_poses(plan, (ego.rear_axle.x, ego.rear_axle.y, ego.rear_axle.heading))
            if self._log is not None:
                write_pressures(self._log / self.name(), observation.briefings[0].token, current_input.iteration, plan)
            return trajectory_of(devkit, ego, poses, times_us)

    RadpPlanner.__qualname__ = "RadpPlanner"
    return RadpPlanner


def world_poses(plan: Plan, ego: tuple[float, float, float]) -> tuple[np.ndarray, np.ndarray]:
    """A plan for one world -> rear-axle poses (P, 3) in the world and their times (P,) us from now, at least 8 s.

    The first pose is the present one, or the plan's own idea of it. A shorter plan goes on straight.
    """
    read = followed_trajectories(plan, 1)
    if read.failures[0] is not None:
        raise ValueError(read.failures[0])
    first = int(read.first[0])
    poses, times = read.poses[0, first:], read.times_us[0, first:]
    if times[-1] < HORIZON_US:
        seconds = (times[-1] - times[-2]) * 1e-6
        speed = np.linalg.norm(poses[-1, :2] - poses[-2, :2]) / seconds
        more = np.append(np.arange(times[-1] + DT_US, HORIZON_US, DT_US), HORIZON_US)
        way = speed * (more - times[-1]) * 1e-6
        heading = poses[-1, 2]
        ahead = np.stack((way * math.cos(heading), way * math.sin(heading), np.zeros(len(way))), -1)
        poses, times = np.concatenate((poses, poses[-1] + ahead)), np.concatenate((times, more))
    x, y, heading = ego
    cos, sin = math.cos(heading), math.sin(heading)
    turned = np.stack((x + cos * poses[:, 0] - sin * poses[:, 1], y + sin * poses[:, 0] + cos * poses[:, 1]), -1)
    return np.column_stack((turned, poses[:, 2] + heading)), times


def trajectory_of(devkit: Devkit, ego: Any, poses: np.ndarray, times_us: np.ndarray) -> Any:
    """Poses (P, 3) and times (P,) us from now -> the devkit's trajectory of ego states.

    Speeds and accelerations are differences along the heading; the devkit's tracker reads poses and times only.
    """
    seconds = np.maximum(np.diff(times_us), 1) * 1e-6
    heading = poses[:-1, 2]
    ahead = np.diff(poses[:, 0]) * np.cos(heading) + np.diff(poses[:, 1]) * np.sin(heading)
    speed = ahead / seconds
    accel = np.append(np.diff(speed) / seconds[1:], 0.0)
    speed, accel = np.append(speed, speed[-1]), np.append(accel, 0.0)
    states = [
        devkit.EgoState.build_from_rear_axle(
            rear_axle_pose=devkit.StateSE2(*(float(v) for v in pose)),
            rear_axle_velocity_2d=devkit.StateVector2D(float(v), 0.0),
            rear_axle_acceleration_2d=devkit.StateVector2D(float(a), 0.0),
            tire_steering_angle=float(ego.tire_steering_angle),
            time_point=devkit.TimePoint(int(ego.time_us + later)),
            vehicle_parameters=ego.car_footprint.vehicle_parameters,
        )
        for pose, later, v, a in zip(poses, times_us, speed, accel)
    ]
    return devkit.InterpolatedTrajectory(states)


def write_pressures(folder: Path, token: str, iteration: Any, plan: Plan) -> None:
    """Append a line {step, time_us, exact, predicted} to FOLDER/TOKEN.jsonl: rule -> pressure."""
    row: dict[str, Any] = {"step": int(iteration.index), "time_us": int(iteration.time_us)}
    for name, values in (("exact", plan.exact_pressure), ("predicted", plan.pressure)):
        if values is not None:
            row[name] = {rule: _number(value) for rule, value in zip(plan.rules, values[0].tolist())}
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"{token}.jsonl", "a", encoding="utf-8") as file:
        file.write(json_text(row, indent=None) + "\n")


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
