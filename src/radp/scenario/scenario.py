"""The log: one recorded drive with its road, its traffic, its lights and its route."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from radp.geometry.limits import array_fault, index_fault, size_fault, states_fault
from radp.road.road_map import RoadMap
from radp.runs.notebook import html_card

DT, DT_US = 0.1, 100_000  # s and us between two samples of a drive, two poses of a plan, two states of a scene

SHORTEST_STEP, LONGEST_STEP = 1e-3, 10.0  # s: nominal steps of logs
STEP_RANGE = 10.0  # a step of a log may be so many times shorter or longer than the nominal one
LATEST_US = 1e17  # us since or before 1970, 3,000 years: sums of such stamps stay far from the end of int64
LARGEST_BOX = 1e3  # m: longer than any train


class ObjectType(IntEnum):
    """Kind of a tracked object; the last four stand still and have no velocity."""

    VEHICLE = 0
    PEDESTRIAN = 1
    BICYCLE = 2
    TRAFFIC_CONE = 3
    BARRIER = 4
    CZONE_SIGN = 5
    GENERIC_OBJECT = 6


FIRST_STATIC_TYPE = int(ObjectType.TRAFFIC_CONE)


class LightState(IntEnum):
    """State of a connector's light; ABSENT = not listed in that frame."""

    ABSENT = 0
    GREEN = 1
    YELLOW = 2
    RED = 3
    UNKNOWN = 4


class Ego(IntEnum):
    """Columns of an ego state. Pose is the REAR AXLE in the world; velocity and acceleration in the vehicle frame.

    >>> now = radp.observe(radp.open_split("sumo14-val")[:2])
    >>> now.ego[:, -1, radp.Ego.VX].shape  # m/s of each world, the last sample is now
    (2,)
    """

    X = 0
    Y = 1
    HEADING = 2
    VX = 3
    VY = 4
    AX = 5
    AY = 6
    YAW_RATE = 7
    YAW_ACCEL = 8
    STEERING = 9
    STEERING_RATE = 10


class Box(IntEnum):
    """Columns of a tracked object's state. Pose is the BOX CENTRE; velocity in the WORLD frame.

    >>> scenario = radp.open_split("sumo14-val")[0]
    >>> scenario.tracks.state[..., [radp.Box.VX, radp.Box.VY]].shape[-1]
    2
    """

    X = 0
    Y = 1
    HEADING = 2
    VX = 3
    VY = 4


@dataclass(frozen=True)
class Tracks:
    """A objects over T frames, in detection order (which matters for reactive agents)."""

    ids: tuple[str, ...]
    type: np.ndarray  # (A,) uint8, ObjectType
    size: np.ndarray  # (A, 3) length, width, height [m]
    state: np.ndarray  # (A, T, 5) columns Box [m, rad, m/s]; zeros where not valid
    valid: np.ndarray  # (A, T) bool

    def __len__(self) -> int:
        return len(self.ids)

    def faults(self, frames: int) -> Iterator[tuple[str, str]]:
        """Field -> what is wrong with it, over so many frames; an iterator, since values are looked at after types."""
        count = len(self)
        yield "tracks.ids", "are not unique" if len(set(self.ids)) != count else ""
        yield "tracks.type", array_fault(self.type, np.uint8, (count,))
        if count and self.type.max() > max(ObjectType):
            yield "tracks.type", f"holds {int(self.type.max())}, expected 0..{int(max(ObjectType))}"
        yield "tracks.size", array_fault(self.size, np.float64, (count, 3)) or size_fault(self.size, LARGEST_BOX, 0.0)
        if count and not (self.size[:, :2] > 0).all():
            yield "tracks.size", "holds a length or width of 0, expected more"
        yield "tracks.valid", array_fault(self.valid, np.bool_, (count, frames))
        yield (
            "tracks.state",
            array_fault(self.state, np.float64, (count, frames, len(Box))) or states_fault(self.state),
        )

    def compact(self) -> dict[str, Any]:
        """For storing: the states (V, 5) of valid frames alone, if the others are zero in every bit (-0.0 is not)."""
        fits = self.state.shape[:2] == self.valid.shape
        return {"state": self.state[self.valid]} if fits and not self.state[~self.valid].tobytes().strip(b"\0") else {}

    @staticmethod
    def whole(values: dict[str, Any]) -> dict[str, Any]:
        """The inverse of `compact`."""
        packed, valid = values["state"], values["valid"]
        if packed.ndim == 2:
            values["state"] = np.zeros((*valid.shape, packed.shape[-1]), dtype=packed.dtype)
            values["state"][valid] = packed
        return values


@dataclass(frozen=True)
class TrafficLights:
    """C connectors whose light is known in some frame, over T frames."""

    lane: np.ndarray  # (C,) lane index of the connector in the map
    state: np.ndarray  # (T, C) uint8, LightState


@dataclass(frozen=True, eq=False)
class Briefing:
    """What a planner knows of a drive before it begins; nothing of what happens in it.

    One object per scenario: planners may use it as a key. The scenario's kind is left out, since kinds are often named
    after what happens.
    """

    token: str
    map: RoadMap
    route: tuple[str, ...]  # roadblock ids in driving order
    goal: np.ndarray | None  # (3,) x, y, heading
    pose: np.ndarray  # (3,) x, y, heading of the rear axle at which the drive begins
    light_lanes: np.ndarray  # (C,) lane index of each connector whose light may be seen
    dt: float  # nominal step [s]


@dataclass(frozen=True)
class Scenario:
    """T = start + N frames: `start` frames of history, then frame 0 of the drive and its N - 1 successors.

    A closed-loop run makes N - 1 samples (the last frame is never planned from).

    >>> scenario = radp.open_split("sumo14-val")[0]
    >>> scenario.frames, scenario.ego.shape[1], len(scenario.tracks) > 0
    (151, 11, True)
    """

    token: str
    kind: str
    source: str
    map: RoadMap
    time_us: np.ndarray  # (T,) int64
    ego: np.ndarray  # (T, 11) columns Ego: what the expert drove
    tracks: Tracks
    lights: TrafficLights
    route: tuple[str, ...]  # roadblock ids in driving order
    goal: np.ndarray | None = None  # (3,) x, y, heading
    start: int = 0
    dt: float = 0.1  # nominal step [s]
    tags: dict[str, str] = field(default_factory=dict)  # free remarks: hazards, what a source lacked

    def __repr__(self) -> str:
        return f"Scenario({', '.join(f'{name} {value}' for name, value in self._facts().items())})"

    def _repr_html_(self) -> str:
        return html_card(f"Scenario {self.token}", self._facts())

    def _facts(self) -> dict[str, object]:
        seconds = float(self.time_us[-1] - self.time_us[self.start]) * 1e-6
        return {
            "token": self.token,
            "kind": self.kind,
            "source": self.source,
            "frames": f"{self.frames} ({seconds:.1f} s)",
            "objects": len(self.tracks),
            "lanes": len(self.map),
        }

    @property
    def frames(self) -> int:
        """N: frames from the start of the drive to its end, both included."""
        return len(self.time_us) - self.start

    @cached_property
    def briefing(self) -> Briefing:
        """The scenario without its log, for planners."""
        pose = self.ego[self.start, : Ego.HEADING + 1].copy()
        return Briefing(self.token, self.map, self.route, self.goal, pose, self.lights.lane, self.dt)

    def validate(self) -> None:
        """Raise ValueError naming the token, the field and the bad value."""
        self.validate_log()
        self.map.validate()

    def validate_log(self) -> None:
        """`validate` for a scenario whose map is known to be sound."""
        who, total = f"scenario {self.token!r}", len(self.time_us)
        for name, fault in chain(self._log_faults(total), self.tracks.faults(total), self._light_faults(total)):
            if fault:
                raise ValueError(f"{who}: {name} {fault}")
        if self.start < 0:
            raise ValueError(f"{who}: start is {self.start}, expected at least 0")
        if self.frames < 2:
            raise ValueError(f"{who}: {self.frames} frames, at least 2 are needed")
        if not SHORTEST_STEP <= self.dt <= LONGEST_STEP:
            raise ValueError(f"{who}: dt is {self.dt}, expected {SHORTEST_STEP} to {LONGEST_STEP} s")
        if fault := times_fault(self.time_us, self.dt):
            raise ValueError(f"{who}: time_us {fault}")

    def _log_faults(self, total: int) -> Iterator[tuple[str, str]]:
        yield "time_us", array_fault(self.time_us, np.int64, (total,))
        yield "ego", array_fault(self.ego, np.float64, (total, len(Ego))) or states_fault(self.ego)
        if self.goal is not None:
            yield "goal", array_fault(self.goal, np.float64, (3,)) or states_fault(self.goal)

    def _light_faults(self, total: int) -> Iterator[tuple[str, str]]:
        lane, state = self.lights.lane, self.lights.state
        yield "lights.lane", array_fault(lane, np.int64, (None,)) or index_fault(lane, len(self.map))
        yield "lights.state", array_fault(state, np.uint8, (total, len(lane))) or index_fault(state, len(LightState))


def times_fault(time_us: np.ndarray, dt: float) -> str:
    """Whether stamps (T,) go on by steps of about dt seconds; real clocks jitter, and logs lose a few frames."""
    if fault := size_fault(time_us, LATEST_US):
        return fault
    steps = np.diff(time_us)
    if (steps <= 0).any():
        return f"does not increase at frame {int(np.argmax(steps <= 0)) + 1}"
    least, most = dt * 1e6 / STEP_RANGE, dt * 1e6 * STEP_RANGE
    if (steps < least).any() or (steps > most).any():
        wrong = int(np.argmax((steps < least) | (steps > most)))
        return f"goes on by {steps[wrong] * 1e-6:.6g} s at frame {wrong + 1}, expected about {dt:g} s"
    return ""
