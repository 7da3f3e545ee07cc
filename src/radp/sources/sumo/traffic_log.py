"""All road users of one recording on a common clock, their motion smoothed."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy.ndimage import gaussian_filter1d

from radp.geometry.lines import arc_length, headings, point_at, resample
from radp.scenario import DT, Box, ObjectType
from radp.sources.sumo.demand import Demand
from radp.sources.sumo.hazards import JAY, name_hazards
from radp.sources.sumo.recording import Act, NetworkRecording, RoadUserTrace
from radp.sources.sumo.road import SumoRoad
from radp.sources.sumo.smoothing import SmoothDrive, smooth_chord, smooth_drive, wrap
from radp.sources.sumo.vehicles import EGO_CATEGORIES, PERSON_SIZE

LONG = 7.0  # [m] longer vehicles keep SUMO's chord pose
WALK_SIGMA = 0.4  # [s]
JUMP = 0.5  # [m] per frame: more than a person can walk
CROSSWALK = 1  # value of `crossing`


@dataclass(frozen=True)
class TrafficLog:
    """A road users over T frames of 0.1 s: vehicles, then parked cars, then people; state as in `Tracks`."""

    ids: tuple[str, ...]
    category: tuple[str, ...]
    type: np.ndarray  # (A,) uint8 ObjectType
    size: np.ndarray  # (A, 3)
    state: np.ndarray  # (A, T, 5) columns Box
    valid: np.ndarray  # (A, T) bool
    lane: np.ndarray  # (A, T) index of the lane of the front bumper in the map, -1 where none
    crossing: np.ndarray  # (A, T) uint8: a person on a crosswalk (1) or on a crossing that no map shows (2)
    manners: tuple[str, ...]  # name of the vehicle type, '' for others
    motion: dict[int, SmoothDrive]  # road users that may serve as ego
    route: dict[int, tuple[str, ...]]  # their trips: edges
    lights: np.ndarray  # (T, C) uint8
    acts: tuple[Act, ...]

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def row_of(self) -> dict[str, int]:
        """Id -> row."""
        return {name: i for i, name in enumerate(self.ids)}

    def first(self, i: int) -> int:
        """First frame of a road user."""
        return int(np.argmax(self.valid[i]))


def traffic_log(recording: NetworkRecording, demand: Demand, road: SumoRoad, rng: np.random.Generator) -> TrafficLog:
    """Smooth everything; put parked cars on the parking strips."""
    vehicles = sorted(recording.vehicles)
    walks = dict(sorted(walk for name, trace in recording.people.items() for walk in _walks(name, trace)))
    people = list(walks)
    parked = _parked_cars(road, rng)
    total, frames = len(vehicles) + len(parked) + len(people), recording.frames
    state, valid = np.zeros((total, frames, len(Box))), np.zeros((total, frames), dtype=bool)
    lane, crossing = np.full((total, frames), -1, dtype=np.int32), np.zeros((total, frames), dtype=np.uint8)
    marks = dict.fromkeys(road.map.crosswalks.ids, CROSSWALK) | dict.fromkeys(road.jaywalks, JAY)
    motion: dict[int, SmoothDrive] = {}
    kinds = [demand.types[name] for name in vehicles]
    for i, name in enumerate(vehicles):
        trace = recording.vehicles[name]
        span = slice(trace.first, trace.first + len(trace.lanes))
        states, drive = _vehicle_states(trace, kinds[i].length)
        state[i, span], valid[i, span] = states, True
        lane[i, span] = [road.lane_position.get(lane_name, -1) for lane_name in trace.lanes]
        if drive is not None and kinds[i].category in EGO_CATEGORIES:
            motion[i] = drive
    for i, (pose, _) in enumerate(parked, start=len(vehicles)):
        state[i, :, : Box.VX], valid[i] = pose, True
    for i, name in enumerate(people, start=len(vehicles) + len(parked)):
        trace = walks[name]
        span = slice(trace.first, trace.first + len(trace.lanes))
        state[i, span], valid[i, span] = _person_states(trace), True
        crossing[i, span] = [marks.get(edge, 0) for edge in trace.lanes]
    sizes = [(k.length, k.width, k.height) for k in kinds] + [size for _, size in parked] + [PERSON_SIZE] * len(people)
    types = [k.object_type for k in kinds] + [ObjectType.VEHICLE] * len(parked) + [ObjectType.PEDESTRIAN] * len(people)
    log = TrafficLog(
        ids=(*vehicles, *(f"parked.{i}" for i in range(len(parked))), *people),
        category=(*(k.category for k in kinds), *["parked"] * len(parked), *["person"] * len(people)),
        type=np.array(types, dtype=np.uint8),
        size=np.array(sizes, dtype=np.float64).reshape(-1, 3),
        state=state,
        valid=valid,
        lane=lane,
        crossing=crossing,
        manners=(*(k.name for k in kinds), *[""] * (len(parked) + len(people))),
        motion=motion,
        route={i: recording.vehicles[vehicles[i]].route for i in motion},
        lights=recording.lights,
        acts=(),
    )
    return replace(log, acts=name_hazards(recording.acts, log, road))


def _vehicle_states(trace: RoadUserTrace, length: float) -> tuple[np.ndarray, SmoothDrive | None]:
    columns = trace.columns()
    front, angle = columns[:, :2], columns[:, 2]
    if length > LONG or len(columns) < 3:
        return smooth_chord(front, angle, length), None
    drive = smooth_drive(front, angle)
    return drive.box_states(length), drive


def _walks(name: str, trace: RoadUserTrace) -> Iterator[tuple[str, RoadUserTrace]]:
    """A person's trace, cut where SUMO makes it jump; what follows a jump is somebody else."""
    columns = np.frombuffer(trace.values, dtype=np.float64).reshape(-1, 4)
    jumps = np.flatnonzero(np.hypot(*np.diff(columns[:, :2], axis=0).T) > JUMP) + 1
    for part, (start, end) in enumerate(pairwise([0, *jumps.tolist(), len(columns)])):
        if end - start > 2:
            values = array("d", columns[start:end].ravel().tolist())
            yield f"{name}.{part}" if part else name, RoadUserTrace(trace.first + start, values, trace.lanes[start:end])


def _person_states(trace: RoadUserTrace) -> np.ndarray:
    """(n, 5): a person faces where it walks; standing, it keeps its heading."""
    columns = trace.columns()
    sigma = WALK_SIGMA / DT
    place = gaussian_filter1d(columns[:, :2], sigma, axis=0, mode="nearest")
    velocity = np.gradient(place, DT, axis=0)
    walking = np.hypot(*velocity.T) > 0.3
    facing = np.where(walking, np.arctan2(velocity[:, 1], velocity[:, 0]), np.nan)
    known = np.maximum.accumulate(np.where(walking, np.arange(len(facing)), -1))
    heading = np.where(known >= 0, facing[np.maximum(known, 0)], columns[:, 2])
    heading = gaussian_filter1d(np.unwrap(heading), sigma, mode="nearest")
    velocity[~walking & (np.hypot(*velocity.T) < 0.05)] = 0.0
    return np.concatenate([place, wrap(heading)[:, None], velocity], axis=1)


def _parked_cars(road: SumoRoad, rng: np.random.Generator) -> list[tuple[np.ndarray, tuple[float, ...]]]:
    """Pose (3,) and size of cars standing along the parking strips, with gaps."""
    cars = []
    for line in road.parking_lines:
        points = resample(line, 1.0)
        length, heading, s = arc_length(points)[-1], headings(points), 8.0
        while True:
            size = tuple(float(v) for v in rng.uniform((4.2, 1.7, 1.4), (5.2, 1.95, 1.9)).round(2))
            s += size[0] / 2
            if s > length - 12.0:
                break
            if rng.random() < 0.75:
                x, y = point_at(points, np.array([s]))[0]
                skew, shift = rng.normal(0, 0.02), rng.normal(0, 0.06)
                angle = float(np.interp(s, arc_length(points), heading))
                place = x - shift * np.sin(angle), y + shift * np.cos(angle)
                cars.append((np.array([*place, wrap(np.array(angle + skew))]), size))
            s += size[0] / 2 + float(rng.uniform(0.7, 1.8))
    return cars
