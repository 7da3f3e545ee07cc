"""What a user changes in a scenario at one moment: road users, the ego, lights. Each edit makes a new scenario."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from radp.road.headings import heading_at
from radp.runs.errors import BadInput, one_line
from radp.runs.settings import checked
from radp.scenario import PACIFICA, Box, Ego, LightState, ObjectType, Scenario, Tracks, TrafficLights
from radp.scenario.as_ego import ego_from_track, track_from_ego
from radp.scenario.scenario import FIRST_STATIC_TYPE
from radp.studio.motion import at_speed, moved, new_motion, onward_path, straight_path

EGO = "ego"
FARTHEST = 5000.0  # m from the middle of the page
FASTEST = 60.0  # m/s
MOST_EDITS = 500
LONGEST_NAME = 80
SIZES = {
    ObjectType.VEHICLE: (4.6, 1.9, 1.6),
    ObjectType.PEDESTRIAN: (0.6, 0.6, 1.75),
    ObjectType.BICYCLE: (1.8, 0.6, 1.7),
    ObjectType.TRAFFIC_CONE: (0.4, 0.4, 0.7),
    ObjectType.BARRIER: (2.0, 0.6, 1.0),
    ObjectType.CZONE_SIGN: (0.8, 0.8, 1.5),
    ObjectType.GENERIC_OBJECT: (1.0, 1.0, 1.0),
}
BOUNDS = {"x": FARTHEST, "y": FARTHEST, "heading": 4 * math.pi, "speed": FASTEST}


@dataclass(frozen=True)
class Edit:
    """One change, made at step `at` of the drive; places are box centres, in metres from the page's origin."""

    at: int

    def __post_init__(self) -> None:
        for field in fields(self):
            value, most = getattr(self, field.name), BOUNDS.get(field.name)
            if value is not None and most is not None and not abs(value) <= most:  # also where it is not a number
                raise BadInput(f"{field.name} is {one_line(value, 40)}, expected at most {most:g} in size")
            if field.name == "speed" and value < 0:
                raise BadInput(f"speed is {value:g}, expected at least 0")
            if field.name == "who" and not 0 < len(value) <= LONGEST_NAME:
                raise BadInput(f"who has {len(value)} characters, expected 1 to {LONGEST_NAME}")

    def apply(self, scenario: Scenario, origin: np.ndarray) -> Scenario:
        """The scenario with the change; BadInput if it does not fit."""
        raise NotImplementedError

    def frame(self, scenario: Scenario) -> int:
        """The frame of the log at which the change is made."""
        if not 0 <= self.at < scenario.frames:
            raise BadInput(f"at is {self.at}, expected 0 to {scenario.frames - 1}")
        return scenario.start + self.at


@dataclass(frozen=True)
class Move(Edit):
    """Somebody is here at that step, and moved from there and to there as before, turned and shifted as a whole."""

    who: str
    x: float
    y: float
    heading: float

    def apply(self, scenario: Scenario, origin: np.ndarray) -> Scenario:
        frame, pose = self.frame(scenario), np.array([self.x + origin[0], self.y + origin[1], self.heading])
        if self.who == EGO:
            return replace(scenario, ego=_moved_ego(scenario.ego, frame, pose))
        track = track_of(scenario, self.who, frame)
        valid = scenario.tracks.valid[track]
        states = np.where(valid[:, None], moved(scenario.tracks.state[track], frame, pose), 0.0)
        return _with_states(scenario, track, states)


@dataclass(frozen=True)
class ChangeSpeed(Edit):
    """Somebody is so fast [m/s] at that step; 0 = stands there all the time."""

    who: str
    speed: float

    def apply(self, scenario: Scenario, origin: np.ndarray) -> Scenario:
        frame, seconds = self.frame(scenario), scenario.time_us * 1e-6
        if self.who == EGO:
            boxes = track_from_ego(scenario.ego, scenario.time_us)
            everywhere = np.ones(len(boxes), dtype=bool)
            onward = _onward(scenario, ObjectType.VEHICLE, boxes[-1, : Box.VX])
            states = at_speed(boxes, everywhere, seconds, frame, self.speed, onward)
            size = np.array([PACIFICA.length, PACIFICA.width, PACIFICA.height])
            return replace(scenario, ego=ego_from_track(states, size, scenario.time_us))
        track = track_of(scenario, self.who, frame)
        tracks = scenario.tracks
        if tracks.type[track] >= FIRST_STATIC_TYPE:
            raise BadInput(f"{self.who!r} is a {_words(tracks.type[track])}, which cannot move")
        last = tracks.state[track, np.flatnonzero(tracks.valid[track])[-1], : Box.VX]
        onward = _onward(scenario, tracks.type[track], last)
        states = at_speed(tracks.state[track], tracks.valid[track], seconds, frame, self.speed, onward)
        return _with_states(scenario, track, states)


@dataclass(frozen=True)
class Remove(Edit):
    """Somebody was never there."""

    who: str

    def apply(self, scenario: Scenario, origin: np.ndarray) -> Scenario:
        track, tracks = track_of(scenario, self.who, None), scenario.tracks
        keep = np.arange(len(tracks)) != track
        ids = tuple(name for name, kept in zip(tracks.ids, keep) if kept)
        rest = Tracks(ids, tracks.type[keep], tracks.size[keep], tracks.state[keep], tracks.valid[keep])
        return replace(scenario, tracks=rest)


@dataclass(frozen=True)
class Add(Edit):
    """Somebody new is here at that step; vehicles and bicycles follow their lane, others go straight.

    Without a heading, along the nearest lane.
    """

    who: str
    type: str
    x: float
    y: float
    heading: float | None = None
    speed: float = 0.0

    def apply(self, scenario: Scenario, origin: np.ndarray) -> Scenario:
        frame, tracks = self.frame(scenario), scenario.tracks
        if self.type not in ObjectType.__members__:
            raise BadInput(f"type is {one_line(self.type, 40)!r}, expected one of {', '.join(ObjectType.__members__)}")
        if self.who in (*tracks.ids, EGO):
            raise BadInput(f"there is a {self.who!r} already")
        kind = ObjectType[self.type]
        if kind >= FIRST_STATIC_TYPE and self.speed:
            raise BadInput(f"speed is {self.speed:g}, but a {_words(kind)} cannot move")
        x, y = self.x + origin[0], self.y + origin[1]
        pose = np.array([x, y, heading_at(scenario.map, x, y) if self.heading is None else self.heading])
        onward = _onward(scenario, kind, pose)
        states = new_motion(pose, self.speed, scenario.time_us * 1e-6, frame, onward)
        there = np.ones((1, len(states)), dtype=bool)
        more = Tracks(
            (*tracks.ids, self.who),
            np.append(tracks.type, np.uint8(kind)),
            np.concatenate((tracks.size, [SIZES[kind]])),
            np.concatenate((tracks.state, states[None])),
            np.concatenate((tracks.valid, there)),
        )
        return replace(scenario, tracks=more)


@dataclass(frozen=True)
class SwitchLight(Edit):
    """A light shows this from that step on; `light` is its column among the scenario's lights."""

    light: int
    state: str

    def apply(self, scenario: Scenario, origin: np.ndarray) -> Scenario:
        frame, lights = self.frame(scenario), scenario.lights
        if not 0 <= self.light < len(lights.lane):
            raise BadInput(f"light is {self.light}, but the scenario has {len(lights.lane)}")
        if self.state not in LightState.__members__:
            raise BadInput(
                f"state is {one_line(self.state, 40)!r}, expected one of {', '.join(LightState.__members__)}"
            )
        state = lights.state.copy()
        state[frame:, self.light] = LightState[self.state]
        return replace(scenario, lights=TrafficLights(lights.lane, state))


KINDS: dict[str, type[Edit]] = {
    "move": Move,
    "speed": ChangeSpeed,
    "remove": Remove,
    "add": Add,
    "light": SwitchLight,
}


def parse_edits(rows: Any) -> list[Edit]:
    """Edits as the page sends them, each a JSON object with its `kind`; BadInput names the first that is wrong."""
    if not isinstance(rows, list) or len(rows) > MOST_EDITS:
        raise BadInput(f"edits is not a list of at most {MOST_EDITS}")
    return [_parse(row, f"edit {i + 1}") for i, row in enumerate(rows)]


def _parse(row: Any, where: str) -> Edit:
    if not isinstance(row, dict) or row.get("kind") not in KINDS:
        raise BadInput(f"{where}: kind is not one of {', '.join(KINDS)}")
    values = {name: value for name, value in row.items() if name != "kind"}
    try:
        return checked(KINDS[row["kind"]], values)
    except (TypeError, ValueError) as error:
        raise BadInput(f"{where}: {one_line(error, 200)}") from None


def apply_edits(scenario: Scenario, edits: Sequence[Edit], origin: np.ndarray) -> Scenario:
    """The scenario with all edits, in order; `origin` (2,) of the page in the world."""
    for i, edit in enumerate(edits):
        try:
            scenario = edit.apply(scenario, origin)
        except BadInput as error:
            raise BadInput(f"edit {i + 1}: {error}") from None
    return scenario


def from_step(scenario: Scenario, step: int) -> Scenario:
    """The scenario that begins at a step of its drive; what came before is its history."""
    if not 0 <= step < scenario.frames - 1:
        raise BadInput(f"step is {step}, expected 0 to {scenario.frames - 2}")
    return replace(scenario, start=scenario.start + step)


def track_of(scenario: Scenario, who: str, frame: int | None) -> int:
    """The track of that name; BadInput if there is none, or if it is not seen in `frame`."""
    if who not in scenario.tracks.ids:
        raise BadInput(f"nobody here is called {one_line(who, 40)!r}")
    track = scenario.tracks.ids.index(who)
    if frame is not None and not scenario.tracks.valid[track, frame]:
        raise BadInput(f"{one_line(who, 40)!r} is not there at that moment")
    return track


def _onward(scenario: Scenario, kind: int, pose: np.ndarray) -> np.ndarray:
    """(P, 3) where somebody of a kind goes from a pose (3,): who drives follows the lanes, who walks goes straight."""
    on_lanes = kind in (ObjectType.VEHICLE, ObjectType.BICYCLE)
    return onward_path(scenario.map, pose) if on_lanes else straight_path(pose)


def _moved_ego(ego: np.ndarray, frame: int, pose: np.ndarray) -> np.ndarray:
    """Ego states (T, 11) turned and shifted so that the box centre is at `pose` in `frame`."""
    ahead = PACIFICA.rear_axle_to_center * np.array([np.cos(pose[2]), np.sin(pose[2])])
    axle = np.array([*(pose[:2] - ahead), pose[2]])
    out = ego.copy()
    out[:, : Ego.HEADING + 1] = moved(ego[:, : len(Box)], frame, axle)[:, : Box.HEADING + 1]
    return out


def _with_states(scenario: Scenario, track: int, states: np.ndarray) -> Scenario:
    every = scenario.tracks.state.copy()
    every[track] = states
    return replace(scenario, tracks=replace(scenario.tracks, state=every))


def _words(kind: int) -> str:
    return ObjectType(kind).name.lower().replace("_", " ")
