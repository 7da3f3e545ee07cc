"""Run a network with its traffic in libsumo and write down every frame."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from radp.scenario import DT, LightState
from radp.sources.sumo.programs import sumo_module
from radp.sources.sumo.road import SumoRoad

OPTIONS = (
    *("--step-length", "0.1", "--lateral-resolution", "0.8", "--default.speeddev", "0.1"),
    *("--time-to-teleport", "-1", "--collision.action", "warn", "--collision.check-junctions"),
    *("--ignore-route-errors", "--no-step-log", "--no-warnings", "--duration-log.disable"),
)
LIGHTS = {"G": LightState.GREEN, "g": LightState.GREEN, "y": LightState.YELLOW, "Y": LightState.YELLOW,
          "r": LightState.RED, "u": LightState.RED, "s": LightState.RED}  # fmt: skip


@dataclass
class RoadUserTrace:
    """One road user from frame `first` on: front x, y and SUMO's angle per frame, its lane by name."""

    first: int
    values: array = field(default_factory=lambda: array("d"))  # x, y, angle, lane position
    lanes: list[str] = field(default_factory=list)
    route: tuple[str, ...] = ()

    def columns(self) -> np.ndarray:
        """(n, 4): x, y of the front bumper, heading [rad, counter-clockwise from east], position on the lane [m]."""
        rows = np.frombuffer(self.values, dtype=np.float64).reshape(-1, 4).copy()
        rows[:, 2] = np.unwrap(np.pi / 2 - np.radians(rows[:, 2]))
        return rows


@dataclass(frozen=True)
class Act:
    """A hazard: what, who, from which frame to which."""

    kind: str
    actor: str
    first: int
    last: int


@dataclass(frozen=True)
class NetworkRecording:
    """T frames of a whole network."""

    frames: int
    vehicles: dict[str, RoadUserTrace]
    people: dict[str, RoadUserTrace]
    lights: np.ndarray  # (T, number of road.lights) uint8 LightState
    acts: tuple[Act, ...]


class Director(Protocol):
    """Who intervenes while the traffic runs: stages hazards, helps drivers past an obstacle."""

    acts: list[Act]

    def step(self, frame: int, vehicles: dict[str, RoadUserTrace]) -> None: ...


def record(
    net_file: Path, route_file: Path, road: SumoRoad, seconds: float, seed: int, directors: Sequence[Director]
) -> NetworkRecording:
    """Simulate `seconds` from an empty network and record all of it."""
    sim = sumo_module("libsumo")
    sim.start(["sumo", "-n", str(net_file), "-r", str(route_file), *OPTIONS, "--seed", str(seed)])
    try:
        for lane, cap in road.caps.items():
            sim.lane.setMaxSpeed(lane, min(cap, sim.lane.getMaxSpeed(lane)))
        frames = round(seconds / DT)
        vehicles: dict[str, RoadUserTrace] = {}
        people: dict[str, RoadUserTrace] = {}
        programs = sorted({light.tls for light in road.lights})
        lights = np.zeros((frames, len(road.lights)), dtype=np.uint8)
        for frame in range(frames):
            sim.simulationStep()
            _note_vehicles(sim, frame, vehicles)
            _note_people(sim, frame, people)
            states = {tls: sim.trafficlight.getRedYellowGreenState(tls) for tls in programs}
            lights[frame] = [LIGHTS.get(states[light.tls][light.link], LightState.ABSENT) for light in road.lights]
            for director in directors:
                director.step(frame, vehicles)
    finally:
        sim.close()
    return NetworkRecording(
        frames, vehicles, people, lights, tuple(act for director in directors for act in director.acts)
    )


def _note_vehicles(sim: Any, frame: int, traces: dict[str, RoadUserTrace]) -> None:
    domain = sim.vehicle
    for name in domain.getIDList():
        trace = traces.get(name)
        if trace is None:
            trace = traces[name] = RoadUserTrace(frame, route=tuple(domain.getRoute(name)))
        x, y = domain.getPosition(name)
        trace.values.extend((x, y, domain.getAngle(name), domain.getLanePosition(name)))
        trace.lanes.append(domain.getLaneID(name))


def _note_people(sim: Any, frame: int, traces: dict[str, RoadUserTrace]) -> None:
    domain = sim.person
    for name in domain.getIDList():
        trace = traces.setdefault(name, RoadUserTrace(frame))
        x, y = domain.getPosition(name)
        trace.values.extend((x, y, domain.getAngle(name), 0.0))
        trace.lanes.append(domain.getRoadID(name))
