"""From a candidate to a `Scenario`: the written rules that throw a window out, and the cut itself."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely

from radp.geometry.lines import point_at, tangents
from radp.scenario import DT, Box, Ego, LightState, ObjectType, Scenario, Tracks, TrafficLights
from radp.sources.sumo.candidates import DRIVE, HISTORY, Candidate, EgoLog
from radp.sources.sumo.hazards import concerns
from radp.sources.sumo.recording import Act
from radp.sources.sumo.road import SumoRoad
from radp.sources.sumo.surroundings import first_overlap
from radp.sources.sumo.traffic_log import TrafficLog

CLEARANCE = 0.2  # [m] the ego's box keeps from everything
ROUTE_BEYOND = 100.0  # [m] the trip goes on after the logged window
ROUTE_SPARE = 50.0  # [m] the trip goes on after 15 s at the speed limit
AGENT_REACH = {ObjectType.VEHICLE: 100.0, ObjectType.BICYCLE: 100.0, ObjectType.PEDESTRIAN: 60.0}  # [m] from the path
STILL_KINDS = frozenset({"stationary_in_traffic", "stopping_with_lead", "behind_long_vehicle", "low_magnitude_speed",
                         "waiting_for_pedestrian_to_cross"})  # fmt: skip
LEAST_TRAVEL = 10.0  # [m] in other kinds
LIMITS = {Ego.AX: (-4.05, 2.40), Ego.AY: (-4.5, 4.5), Ego.YAW_RATE: (-0.95, 0.95), Ego.YAW_ACCEL: (-1.93, 1.93)}
HARDEST_BRAKE = -6.5  # [m/s^2] where a hazard is near
JERK = 4.13  # [m/s^3]
POP_UP = 50.0  # [m] no vehicle appears or vanishes closer to the ego than this
EGO_GRID = {
    Ego.HEADING: 4,
    Ego.YAW_RATE: 4,
    Ego.YAW_ACCEL: 4,
    Ego.STEERING: 4,
    Ego.STEERING_RATE: 4,
}  # decimals; else 3
BOX_GRID = {Box.HEADING: 4, Box.VX: 2, Box.VY: 2}
MICROSECONDS = 100_000  # per frame


@dataclass(frozen=True)
class Window:
    """The frames of one candidate: states of the ego (T, 11), its box corners (T, 4, 2), T = HISTORY + DRIVE."""

    candidate: Candidate
    frames: slice
    states: np.ndarray
    corners: np.ndarray
    hazards: tuple[Act, ...]


def cut(candidate: Candidate, ego: EgoLog, log: TrafficLog) -> Window:
    """The window of a candidate, with the hazards that concern the ego."""
    frames = slice(candidate.start - HISTORY, candidate.start + DRIVE)
    inside = slice(frames.start - ego.first, frames.stop - ego.first)
    states = ego.states[inside]
    hazards = tuple(act for act in log.acts if _matters(act, frames, states, log, candidate.ego))
    return Window(candidate, frames, states, ego.corners[inside], hazards)


def _matters(act: Act, frames: slice, states: np.ndarray, log: TrafficLog, ego: int) -> bool:
    first, last = max(act.first, frames.start + HISTORY), min(act.last, frames.stop - 1)
    if first > last or act.actor not in log.row_of:
        return False
    row = log.row_of[act.actor]
    if row == ego:
        return True
    span, mine = slice(first, last + 1), slice(first - frames.start, last + 1 - frames.start)
    return bool((log.valid[row, span] & concerns(act.kind, log.state[row, span], states[mine, :3])).any())


def defect(window: Window, log: TrafficLog, road: SumoRoad) -> str:
    """Why a window is no good, by the first rule it breaks; empty when it is fine."""
    candidate, states = window.candidate, window.states
    drive = states[HISTORY:]
    if any(log.row_of[act.actor] == candidate.ego for act in window.hazards):
        return "the ego itself is the hazard"
    if (log.lane[candidate.ego, window.frames] < 0).any():
        return "the ego leaves the lanes of the map"
    if _moved(drive) < LEAST_TRAVEL and candidate.kind not in STILL_KINDS:
        return "the ego hardly moves"
    if reason := _motion_defect(drive, bool(window.hazards)):
        return reason
    if reason := _route_defect(window, log, road):
        return reason
    inside = shapely.contains_xy(road.drivable_union, *window.corners.reshape(-1, 2).T)
    if not inside.all():
        return "the ego leaves the road"
    others = log.state[:, window.frames], log.valid[:, window.frames]
    if first_overlap(states, candidate.ego, *others, log.size, CLEARANCE) >= 0:
        return "the ego touches something"
    if _pops_up(window, log):
        return "a vehicle appears or vanishes beside the ego"
    return ""


def _moved(states: np.ndarray) -> float:
    return float(np.hypot(*np.diff(states[:, :2], axis=0).T).sum())


def _motion_defect(drive: np.ndarray, hazard: bool) -> str:
    for column, (low, high) in LIMITS.items():
        low = HARDEST_BRAKE if column == Ego.AX and hazard else low
        if drive[:, column].min() < low or drive[:, column].max() > high:
            return f"the ego's {column.name.lower()} is beyond comfort"
    if not hazard and np.abs(np.diff(drive[:, Ego.AX])).max() > JERK * DT:
        return "the ego's jerk is beyond comfort"
    return ""


def _route_defect(window: Window, log: TrafficLog, road: SumoRoad) -> str:
    """The trip must go on well beyond the window; every light on its way must turn green at some time."""
    edges = trip(window, log, road)
    if not edges:
        return "the ego is on no lane of its trip"
    limit = max(road.map.speed_limit[road.map.roadblock == road.map.roadblocks.index[edge]][0] for edge in edges)
    lane = _first_lane(window, log)
    offset = road.position_on_lane(lane, window.states[HISTORY, :2])
    left = sum(road.edge_length[edge] for edge in edges) - offset
    travelled = _moved(window.states[HISTORY:])
    if left < max(travelled + ROUTE_BEYOND, limit * (DRIVE - 1) * DT + ROUTE_SPARE):
        return "the trip ends too soon"
    blocks = set(road.roadblocks_of(edges))
    for column, light in enumerate(road.lights):
        on_way = road.map.roadblocks.ids[road.map.roadblock[light.connector]] in blocks
        if on_way and not (log.lights[:, column] == LightState.GREEN).any():
            return "a light on the way never turns green"
    return ""


def _pops_up(window: Window, log: TrafficLog) -> bool:
    """Whether a vehicle's first or last frame lies inside the window and near the ego."""
    valid = log.valid[:, window.frames]
    vehicles = (log.type != ObjectType.PEDESTRIAN) & valid.any(axis=1) & ~valid.all(axis=1)
    for row in np.flatnonzero(vehicles):
        there = np.flatnonzero(valid[row])
        for t in (there[0], there[-1]):
            if 0 < t < valid.shape[1] - 1:
                gap = np.hypot(*(log.state[row, window.frames.start + t, :2] - window.states[t, :2]))
                if gap < POP_UP:
                    return True
    return False


def _first_lane(window: Window, log: TrafficLog) -> int:
    return int(log.lane[window.candidate.ego, window.frames.start + HISTORY])


def trip(window: Window, log: TrafficLog, road: SumoRoad) -> tuple[str, ...]:
    """Edges from where the ego is when the window opens to the end of its trip."""
    route = log.route[window.candidate.ego]
    lane = int(log.lane[window.candidate.ego, window.frames.start])
    if lane < 0:
        return ()
    way = road.connector(lane)
    edge = way.from_edge if way else road.map.roadblocks.ids[road.map.roadblock[lane]]
    return route[route.index(edge) :] if edge in route else ()


def make_scenario(window: Window, log: TrafficLog, road: SumoRoad, source: str) -> Scenario:
    """The window as a scenario, every value on a decimal grid."""
    edges = trip(window, log, road)
    frames = window.frames
    count = frames.stop - frames.start
    name = f"{road.map.name}/{log.ids[window.candidate.ego]}/{frames.start}"
    tags = {"network": road.map.name, "network_kind": road.map.name.rsplit("-", 1)[-1]}
    if window.hazards:
        tags["hazard"] = ",".join(sorted({act.kind for act in window.hazards}))
        tags["hazard_actor"] = ",".join(sorted({act.actor for act in window.hazards}))
        tags["hazard_frame"] = str(min(max(act.first - frames.start, 0) for act in window.hazards))
    lights = log.lights[frames]
    return Scenario(
        token=hashlib.blake2b(name.encode(), digest_size=8).hexdigest(),
        kind=window.candidate.kind,
        source=source,
        map=road.map,
        time_us=(np.arange(count, dtype=np.int64) + frames.start) * MICROSECONDS,
        ego=_on_grid(window.states, EGO_GRID),
        tracks=_tracks(window, log),
        lights=TrafficLights(np.array([light.connector for light in road.lights], dtype=np.int64), lights),
        route=road.roadblocks_of(edges),
        goal=_goal(road, edges[-1]),
        start=HISTORY,
        dt=DT,
        tags=tags,
    )


def _tracks(window: Window, log: TrafficLog) -> Tracks:
    """Road users that come near the ego's path, in the log's order."""
    state, valid = log.state[:, window.frames], log.valid[:, window.frames]
    path = window.states[::5, :2]
    rows = []
    for row in np.flatnonzero(valid.any(axis=1)):
        seen = state[row, valid[row], :2][::5]
        gaps = np.hypot(seen[:, None, 0] - path[None, :, 0], seen[:, None, 1] - path[None, :, 1])
        if row != window.candidate.ego and gaps.min() < AGENT_REACH[ObjectType(log.type[row])]:
            rows.append(row)
    kept = _on_grid(np.where(valid[rows, :, None], state[rows], 0.0), BOX_GRID)
    return Tracks(tuple(log.ids[r] for r in rows), log.type[rows], log.size[rows], kept, valid[rows])


def _goal(road: SumoRoad, edge: str) -> np.ndarray:
    """Pose 10 m before the end of the trip, on the right-most lane of its last edge."""
    lane = int(np.flatnonzero(road.map.roadblock == road.map.roadblocks.index[edge])[0])
    line = road.map.centerlines[lane]
    ahead = tangents(line)[-1]
    place = point_at(line, np.array([road.edge_length[edge] - 10.0]))[0]
    return np.round([place[0], place[1], np.arctan2(ahead[1], ahead[0])], 3)


def _on_grid(values: np.ndarray, decimals: Mapping[Any, int]) -> np.ndarray:
    """Round each column of the last axis; millimetres by default. No negative zeros."""
    out = np.empty_like(values)
    for column in range(values.shape[-1]):
        out[..., column] = np.round(values[..., column], decimals.get(column, 3)) + 0.0
    return out
