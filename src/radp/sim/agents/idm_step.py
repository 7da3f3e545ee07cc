"""One step of one reactive world: its agents move one after the other, later ones see the earlier ones moved."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from radp.geometry.kernels import box_corners, wrap_angle
from radp.geometry.regions import ring_bounds
from radp.geometry.strips import strip_ring
from radp.scenario import LightState
from radp.sim.agents.idm_create import EGO_SHIFT, ego_box
from radp.sim.agents.idm_fleet import MAX_ROUTE, Fleet, Stage
from radp.sim.agents.idm_lead import (
    HEADWAY,
    NOBODY,
    TIED,
    Obstacles,
    Scratch,
    acceleration,
    find_lead,
    lead_speed,
)
from radp.sim.agents.idm_path import (
    PROGRESS,
    clamp_progress,
    line_after,
    line_between,
    pose_at,
    prolong_path,
    start_path,
)
from radp.sim.agents.idm_roads import Roads

MIN_PATH = 20.0  # m ahead, beside 1.5 s at the wanted speed
RADIUS = 100.0  # m from the ego; agents beyond leave for good
DONE, TIE_FOUND, NO_ROOM = 0, 1, 2  # how a step ended: the latter two want help and a call that goes on from there
GREEN, RED = int(LightState.GREEN), int(LightState.RED)


@njit(cache=True, nogil=True)
def place_agent(b: int, a: int, lane: int, roads: Roads, fleet: Fleet) -> None:
    """Put an agent with its pose, progress, speed and size set on the path along its first lane."""
    fleet.alive[b, a] = True
    fleet.route[b, a, 0], fleet.route_count[b, a] = lane, 1
    first, last = roads.vertex_offsets[lane], roads.vertex_offsets[lane + 1]
    fleet.path_count[b, a] = start_path(fleet.path[b, a], roads.vertex, first, last)
    fleet.ring_count[b, a] = fleet.sweep_count[b, a] = 0
    _occupy_box(b, a, fleet)
    _settle(b, a, fleet)


@njit(cache=True, nogil=True)
def _occupy_box(b: int, a: int, fleet: Fleet) -> None:
    """Let the occupancy be the box at the agent's pose."""
    x, y, heading = fleet.pose[b, a, 0], fleet.pose[b, a, 1], fleet.pose[b, a, 2]
    box_corners(x, y, heading, fleet.size[b, a, 0], fleet.size[b, a, 1], fleet.box[b, a])
    fleet.bounds[b, a, :2], fleet.bounds[b, a, 2:] = np.inf, -np.inf
    ring_bounds(fleet.box[b, a], fleet.bounds[b, a])


@njit(cache=True, nogil=True)
def _settle(b: int, a: int, fleet: Fleet) -> None:
    """Set the pose from path and progress."""
    path, count = fleet.path[b, a], fleet.path_count[b, a]
    x, y, heading = pose_at(path, count, clamp_progress(path, count, fleet.progress[b, a]))
    fleet.pose[b, a, 0], fleet.pose[b, a, 1], fleet.pose[b, a, 2] = x, y, wrap_angle(heading)


@njit(cache=True, nogil=True)
def _light(b: int, lane: int, frame: int, stage: Stage) -> int:
    column = stage.light_column[b, lane - stage.first_lane[b]]
    return stage.light_state[b, frame, column] if column >= 0 else 0


@njit(cache=True, nogil=True)
def _next_lane(b: int, lane: int, frame: int, roads: Roads, stage: Stage) -> int:
    """The open successor of the smallest curvature at its start; -1 when none is open.

    One with lights is open when it is green now, one without unless it is red.
    """
    best, best_lane = np.inf, -1
    for k in range(roads.successor_offsets[lane], roads.successor_offsets[lane + 1]):
        edge = roads.successor[k]
        light = _light(b, edge, frame, stage)
        is_open = light == GREEN if roads.signalled[edge] else light != RED
        if is_open and roads.curvature[edge] < best:
            best, best_lane = roads.curvature[edge], edge
    return best_lane


@njit(cache=True, nogil=True)
def _extend(b: int, a: int, frame: int, roads: Roads, stage: Stage, fleet: Fleet) -> bool:
    """Prolong the path until it is long enough or no successor is open; False when it does not fit the array."""
    path = fleet.path[b, a]
    wanted = MIN_PATH + fleet.target[b, a] * HEADWAY
    while path[fleet.path_count[b, a] - 1, PROGRESS] - fleet.progress[b, a] < wanted:
        lane = _next_lane(b, fleet.route[b, a, fleet.route_count[b, a] - 1], frame, roads, stage)
        if lane < 0:
            break
        first, last = roads.vertex_offsets[lane], roads.vertex_offsets[lane + 1]
        if fleet.path_count[b, a] + 1 + last - first > len(path):
            return False
        count = fleet.path_count[b, a]
        fleet.path_count[b, a] = prolong_path(path, count, fleet.progress[b, a], roads.vertex, first, last)
        fleet.progress[b, a] = 0.0
        if fleet.route_count[b, a] == MAX_ROUTE:
            fleet.route[b, a, :-1] = fleet.route[b, a, 1:].copy()
            fleet.route_count[b, a] -= 1
        fleet.route[b, a, fleet.route_count[b, a]] = lane
        fleet.route_count[b, a] += 1
    return True


@njit(cache=True, nogil=True)
def red_stops(b: int, a: int, frame: int, roads: Roads, stage: Stage, fleet: Fleet) -> np.ndarray:
    """The stop lines of the route's connectors that are red now, each once."""
    found, count = np.empty(16, dtype=np.int64), 0
    for r in range(fleet.route_count[b, a]):
        lane = fleet.route[b, a, r]
        if _light(b, lane, frame, stage) != RED:
            continue
        for k in range(roads.stop_offsets[lane], roads.stop_offsets[lane + 1]):
            stop, known = roads.stop[k], False
            for i in range(count):
                known |= found[i] == stop
            if not known and count < len(found):
                found[count] = stop
                count += 1
    return found[:count]


@njit(cache=True, nogil=True)
def _move(
    b: int, a: int, frame: int, dt: float, roads: Roads, stage: Stage, fleet: Fleet, around: Obstacles, work: Scratch,
    forced: int,
) -> int:  # fmt: skip
    """Move one agent. Nothing but its path has changed when the answer is not DONE."""
    if not _extend(b, a, frame, roads, stage, fleet):
        return NO_ROOM
    path, count = fleet.path[b, a], fleet.path_count[b, a]
    limit = roads.speed_limit[fleet.route[b, a, fleet.route_count[b, a] - 1]]
    target = limit if limit > 0.0 else fleet.target[b, a]
    red = red_stops(b, a, frame, roads, stage, fleet)
    obstacles = Obstacles(around.box, around.bounds, around.speed, around.heading, red)
    line_count = line_after(path, count, clamp_progress(path, count, fleet.progress[b, a]), work.line)
    slot, gap = find_lead(b, a, line_count, fleet, roads, obstacles, work, target, forced)
    if slot == TIED:
        return TIE_FOUND
    if slot == NOBODY:
        gap = path[count - 1, PROGRESS] - fleet.progress[b, a] - fleet.size[b, a, 0] / 2.0
        ahead = 0.0
    else:
        ahead = lead_speed(b, a, slot, fleet, obstacles)
    speed = fleet.speed[b, a]
    progress = fleet.progress[b, a] + speed * dt
    speed = max(0.0, speed + dt * acceleration(speed, target, gap, ahead))
    start = clamp_progress(path, count, progress - fleet.size[b, a, 0] / 2.0)
    end = clamp_progress(path, count, progress + fleet.size[b, a, 0] / 2.0 + speed * HEADWAY)
    line_count = line_between(path, count, start, end, work.line)
    ring_count = strip_ring(work.line, line_count, fleet.size[b, a, 1] / 2.0, work.ring)
    if ring_count > len(work.ring) or line_count > fleet.sweep.shape[2]:
        return NO_ROOM
    fleet.target[b, a], fleet.speed[b, a], fleet.progress[b, a] = target, speed, progress
    _settle(b, a, fleet)
    _occupy_box(b, a, fleet)
    fleet.ring[b, a, :ring_count] = work.ring[:ring_count]
    fleet.sweep[b, a, :line_count] = work.line[:line_count]
    fleet.ring_count[b, a], fleet.sweep_count[b, a] = ring_count, line_count
    ring_bounds(work.ring[:ring_count], fleet.bounds[b, a])
    return DONE


@njit(cache=True, nogil=True)
def surroundings(b: int, frame: int, ego: np.ndarray, stage: Stage) -> Obstacles:
    """The ego and the replayed objects of a frame."""
    valid = stage.object_valid[b, frame]
    boxes = 1 + np.sum(valid)
    box, bounds = np.empty((boxes, 4, 2)), np.empty((boxes, 4))
    speed, heading = np.zeros(boxes), np.zeros(boxes)
    ego_box(ego, box[0])
    speed[0], heading[0] = math.hypot(ego[3], ego[4]), ego[2]
    k = 1
    for i in range(len(valid)):
        if valid[i]:
            x, y, h = (
                stage.object_state[b, frame, i, 0],
                stage.object_state[b, frame, i, 1],
                stage.object_state[b, frame, i, 2],
            )
            box_corners(x, y, h, stage.object_size[b, i, 0], stage.object_size[b, i, 1], box[k])
            k += 1
    bounds[:, :2], bounds[:, 2:] = np.inf, -np.inf
    for i in range(boxes):
        ring_bounds(box[i], bounds[i])
    return Obstacles(box, bounds, speed, heading, np.empty(0, dtype=np.int64))


@njit(cache=True, nogil=True)
def _drop_far_agents(b: int, ego: np.ndarray, fleet: Fleet) -> None:
    x, y = ego[0] + EGO_SHIFT * math.cos(ego[2]), ego[1] + EGO_SHIFT * math.sin(ego[2])
    for a in range(fleet.alive.shape[1]):
        if fleet.alive[b, a] and math.hypot(fleet.pose[b, a, 0] - x, fleet.pose[b, a, 1] - y) > RADIUS:
            fleet.alive[b, a] = False


@njit(cache=True, nogil=True)
def write_state(
    sample: int, agents: np.ndarray, fleet: Fleet, stage: Stage, state: np.ndarray, valid: np.ndarray
) -> None:
    """Boxes of a sample into zeros, state (B, A, 5) and valid (B, A): agents (B,) of each world, then its objects."""
    for b in range(len(agents)):
        for a in range(agents[b]):
            if fleet.alive[b, a]:
                heading, speed = fleet.pose[b, a, 2], fleet.speed[b, a]
                valid[b, a] = True
                state[b, a, :3] = fleet.pose[b, a]
                state[b, a, 3], state[b, a, 4] = speed * math.cos(heading), speed * math.sin(heading)
        frame = min(sample, stage.last_frame[b])
        for k in range(min(stage.object_valid.shape[2], state.shape[1] - agents[b])):
            if stage.object_valid[b, frame, k]:
                valid[b, agents[b] + k] = True
                state[b, agents[b] + k] = stage.object_state[b, frame, k]


@njit(cache=True, nogil=True)
def step_worlds(
    worlds: np.ndarray, sample: int, ego: np.ndarray, dt: np.ndarray, roads: Roads, stage: Stage, fleet: Fleet,
    cursor: np.ndarray, forced: np.ndarray, status: np.ndarray,
) -> None:  # fmt: skip
    """Move the agents of some worlds from a sample to the next; ego (B, 11) stands where it is at `sample`.

    cursor (B,) is the agent to go on with, forced (B,) the slot of its lead (-1: its own choice); status (B,) tells how
    each world ended.
    """
    agents = fleet.alive.shape[1]
    slots = agents + 1 + stage.object_valid.shape[2] + 16
    points = fleet.path.shape[2] + 1
    work = Scratch(
        np.empty((points, 2)), np.empty((points, 5)), np.empty((70, 2)), np.empty((fleet.ring.shape[2], 2)),
        np.empty(slots, dtype=np.int64), np.empty(slots), np.empty(slots, dtype=np.int64), np.empty(slots),
    )  # fmt: skip
    for b in worlds:
        frame = min(sample + 1, stage.last_frame[b])
        if cursor[b] == 0:
            _drop_far_agents(b, ego[b], fleet)
        around = surroundings(b, frame, ego[b], stage)
        status[b] = DONE
        for a in range(cursor[b], agents):
            if fleet.alive[b, a]:
                status[b] = _move(b, a, frame, dt[b], roads, stage, fleet, around, work, forced[b])
                forced[b] = -1
                cursor[b] = a
                if status[b] != DONE:
                    break
