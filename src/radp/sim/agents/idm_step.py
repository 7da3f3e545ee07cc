"""One step of reactive worlds: a world's agents move one after the other, and later ones see the earlier ones moved."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from radp.geometry.compiled import kernel
from radp.geometry.kernels import box_corners, wrap_angle
from radp.geometry.regions import ring_bounds
from radp.geometry.strips import strip_ring
from radp.road.rails import Rails
from radp.scenario import LightState
from radp.sim.agents.idm_create import EGO_SHIFT, ego_box
from radp.sim.agents.idm_fleet import BOX, MAX_ROUTE, MAX_STOPS, SWEEP, Claims, Fleet, Stage
from radp.sim.agents.idm_lead import HEADWAY, NOBODY, TIED, Scratch, acceleration, find_lead, speed_along
from radp.sim.agents.idm_path import (
    clamp_progress,
    line_after,
    line_between,
    path_end,
    pose_at,
    prolong_path,
    start_path,
)

MIN_PATH = 20.0  # m ahead, beside 1.5 s at the wanted speed
MAX_EXTENSIONS = 200  # of a path in one step: lanes without length must not keep it going round
RADIUS = 100.0  # m from the ego; agents beyond leave for good
DONE, TIE_FOUND, NO_ROOM = 0, 1, 2  # how a step ended: the latter two want help and a call that goes on from there
GREEN, RED = int(LightState.GREEN), int(LightState.RED)


@kernel
def _claim_ring(q: int, piece: int, ring: np.ndarray, first: int, count: int, claims: Claims) -> bool:
    """Let piece `piece` of claim q be ring[first : first + count]; a box replaces the bounds, a sweep widens them.

    False when there is no room for it.
    """
    room = len(claims.point) // (2 * len(claims.present))
    if count > room:
        return False
    at = (2 * q + piece) * room
    for i in range(count):
        claims.point[at + i, 0], claims.point[at + i, 1] = ring[first + i, 0], ring[first + i, 1]
    claims.piece_size[q, piece] = count
    low_x, low_y, high_x, high_y = ring_bounds(ring, first, first + count)
    if piece == SWEEP:
        low_x, low_y = min(low_x, claims.bounds[q, 0]), min(low_y, claims.bounds[q, 1])
        high_x, high_y = max(high_x, claims.bounds[q, 2]), max(high_y, claims.bounds[q, 3])
    claims.bounds[q, 0], claims.bounds[q, 1], claims.bounds[q, 2], claims.bounds[q, 3] = low_x, low_y, high_x, high_y
    return True


@kernel
def _settle(g: int, q: int, at: int, fleet: Fleet, claims: Claims) -> None:
    """Set the agent's pose from its path and progress."""
    count = fleet.path_count[g]
    s = clamp_progress(fleet.path, at, count, fleet.progress[g])
    fleet.x[g], fleet.y[g], heading = pose_at(fleet.path, at, count, s)
    claims.heading[q] = wrap_angle(heading)


@njit(cache=True, nogil=True)
def _place_agent(
    g: int, q: int, lane: int, pose: np.ndarray, speed: float, rails: Rails, fleet: Fleet, claims: Claims
) -> None:
    """Put an agent, its progress, target and size set, on the path along its first lane; pose (3,) is its box's."""
    corners = np.empty((4, 2))
    box_corners(pose[0], pose[1], pose[2], fleet.length[g], fleet.width[g], corners)
    _claim_ring(q, BOX, corners, 0, 4, claims)
    claims.present[q], claims.speed[q] = True, speed
    fleet.route[g, 0], fleet.route_count[g] = lane, 1
    at = g * (len(fleet.path) // len(fleet.x))
    first, last = rails.vertex_offsets[lane], rails.vertex_offsets[lane + 1]
    fleet.path_count[g] = start_path(fleet.path, at, rails.vertex, first, last)
    _settle(g, q, at, fleet, claims)


@njit(cache=True, nogil=True)
def place_crew(
    g: int, q: int, lane: np.ndarray, pose: np.ndarray, speed: np.ndarray, rails: Rails, fleet: Fleet, claims: Claims
) -> None:
    """Place the n agents of one world from row g of the fleet and row q of the claims on: (n,), (n, 3), (n,)."""
    for a in range(len(lane)):
        _place_agent(g + a, q + a, lane[a], pose[a], speed[a], rails, fleet, claims)


@kernel
def _light(b: int, lane: int, frame: int, stage: Stage) -> int:
    column = stage.light_column[b, lane - stage.first_lane[b]]
    return stage.light_state[b, frame, column] if column >= 0 else 0


@kernel
def _next_lane(b: int, lane: int, frame: int, rails: Rails, stage: Stage) -> int:
    """The open successor of the smallest curvature at its start; -1 when none is open.

    One with lights is open when it is green now, one without unless it is red.
    """
    best, best_lane = np.inf, -1
    for k in range(rails.successor_offsets[lane], rails.successor_offsets[lane + 1]):
        edge = rails.successor[k]
        light = _light(b, edge, frame, stage)
        is_open = light == GREEN if rails.signalled[edge] else light != RED
        if is_open and rails.curvature[edge] < best:
            best, best_lane = rails.curvature[edge], edge
    return best_lane


@kernel
def _extend(b: int, g: int, at: int, room: int, frame: int, rails: Rails, stage: Stage, fleet: Fleet) -> bool:
    """Prolong the path until it is long enough or no successor is open; False when there is no room for it."""
    path = fleet.path
    wanted = MIN_PATH + fleet.target[g] * HEADWAY
    for _ in range(MAX_EXTENSIONS):
        if path_end(path, at, fleet.path_count[g]) - fleet.progress[g] >= wanted:
            break
        lane = _next_lane(b, fleet.route[g, fleet.route_count[g] - 1], frame, rails, stage)
        if lane < 0:
            break
        first, last = rails.vertex_offsets[lane], rails.vertex_offsets[lane + 1]
        if fleet.path_count[g] + 1 + last - first > room:
            return False
        fleet.path_count[g] = prolong_path(path, at, fleet.path_count[g], fleet.progress[g], rails.vertex, first, last)
        fleet.progress[g] = 0.0
        if fleet.route_count[g] == MAX_ROUTE:
            for i in range(1, MAX_ROUTE):
                fleet.route[g, i - 1] = fleet.route[g, i]
            fleet.route_count[g] -= 1
        fleet.route[g, fleet.route_count[g]] = lane
        fleet.route_count[g] += 1
    return True


@kernel
def _claim_stop_lines(
    b: int, g: int, slot: int, frame: int, rails: Rails, stage: Stage, fleet: Fleet, claims: Claims
) -> bool:
    """Claim the stop lines of the route's connectors that are red now, from row `slot` on; False: no room."""
    for q in range(slot, slot + MAX_STOPS):
        claims.present[q] = False
    q = slot
    for r in range(fleet.route_count[g]):
        lane = fleet.route[g, r]
        if _light(b, lane, frame, stage) != RED:
            continue
        for k in range(rails.stop_offsets[lane], rails.stop_offsets[lane + 1]):
            stop = rails.stop[k]
            first, count = (
                rails.stop_point_offsets[stop],
                rails.stop_point_offsets[stop + 1] - rails.stop_point_offsets[stop],
            )
            if q < slot + MAX_STOPS:
                if not _claim_ring(q, BOX, rails.stop_point, first, count, claims):
                    return False
                claims.present[q] = True
                q += 1
    return True


@njit(cache=True, nogil=True)
def _claim_boxes(b: int, slot: int, frame: int, ego: np.ndarray, stage: Stage, claims: Claims) -> None:
    """Claim the ego's box (row `slot`) and those of the replayed objects of a frame (the rows behind)."""
    corners = np.empty((4, 2))
    ego_box(ego[b], corners)
    _claim_ring(slot, BOX, corners, 0, 4, claims)
    claims.present[slot] = True
    claims.speed[slot], claims.heading[slot] = math.hypot(ego[b, 3], ego[b, 4]), ego[b, 2]
    for i in range(stage.object_valid.shape[2]):
        q = slot + 1 + i
        claims.present[q] = stage.object_valid[b, frame, i]
        if claims.present[q]:
            x, y, heading = (
                stage.object_state[b, frame, i, 0],
                stage.object_state[b, frame, i, 1],
                stage.object_state[b, frame, i, 2],
            )
            box_corners(x, y, heading, stage.object_size[b, i, 0], stage.object_size[b, i, 1], corners)
            _claim_ring(q, BOX, corners, 0, 4, claims)


@kernel
def _move(
    b: int, g: int, q: int, first: int, last: int, frame: int, dt: float, rails: Rails, stage: Stage, fleet: Fleet,
    claims: Claims, work: Scratch, forced: int,
) -> int:  # fmt: skip
    """Move one agent (row g, claim q of the claims first..last-1). Unless DONE nothing but its path has changed."""
    room = len(fleet.path) // len(fleet.x)
    path, at = fleet.path, g * room
    if not _extend(b, g, at, room, frame, rails, stage, fleet):
        return NO_ROOM
    if not _claim_stop_lines(b, g, last - MAX_STOPS, frame, rails, stage, fleet, claims):
        return NO_ROOM
    count, progress, speed = fleet.path_count[g], fleet.progress[g], claims.speed[q]
    limit = rails.speed_limit[fleet.route[g, fleet.route_count[g] - 1]]
    target = limit if limit > 0.0 else fleet.target[g]
    half_length, half_width = fleet.length[g] / 2.0, fleet.width[g] / 2.0
    line_count = line_after(path, at, count, clamp_progress(path, at, count, progress), work.line)
    lead, gap = find_lead(q, first, last, half_width, line_count, claims, work, target, forced)
    if lead == TIED:
        return TIE_FOUND
    ahead = 0.0
    if lead == NOBODY:  # a standing point at the end of the path
        gap = path_end(path, at, count) - progress - half_length
    else:
        ahead = speed_along(lead, q, claims)
    progress += speed * dt
    speed = max(0.0, speed + dt * acceleration(speed, target, gap, ahead))
    start = clamp_progress(path, at, count, progress - half_length)
    end = clamp_progress(path, at, count, progress + half_length + speed * HEADWAY)
    line_count = line_between(path, at, count, start, end, work.line)
    ring_count = strip_ring(work.line, line_count, half_width, work.ring)
    if ring_count > len(work.ring) or line_count > fleet.sweep.shape[1]:
        return NO_ROOM
    fleet.target[g], fleet.progress[g], claims.speed[q] = target, progress, speed
    _settle(g, q, at, fleet, claims)
    _claim_sweep(g, q, line_count, ring_count, fleet, claims, work)
    return DONE


@kernel
def _claim_sweep(g: int, q: int, line_count: int, ring_count: int, fleet: Fleet, claims: Claims, work: Scratch) -> None:
    """Claim the agent's box and work.ring[:ring_count] around its sweep line, work.line[:line_count]."""
    for i in range(line_count):
        fleet.sweep[g, i, 0], fleet.sweep[g, i, 1] = work.line[i, 0], work.line[i, 1]
    fleet.sweep_count[g] = line_count
    box_corners(fleet.x[g], fleet.y[g], claims.heading[q], fleet.length[g], fleet.width[g], work.joint)
    _claim_ring(q, BOX, work.joint, 0, 4, claims)
    _claim_ring(q, SWEEP, work.ring, 0, ring_count, claims)


@kernel
def _drop_far_agents(b: int, agents: int, slots: int, ego: np.ndarray, fleet: Fleet, claims: Claims) -> None:
    x, y = ego[b, 0] + EGO_SHIFT * math.cos(ego[b, 2]), ego[b, 1] + EGO_SHIFT * math.sin(ego[b, 2])
    for a in range(agents):
        if math.hypot(fleet.x[b * agents + a] - x, fleet.y[b * agents + a] - y) > RADIUS:
            claims.present[b * slots + a] = False


@njit(cache=True, nogil=True)
def step_worlds(
    worlds: np.ndarray, sample: int, ego: np.ndarray, dt: np.ndarray, rails: Rails, stage: Stage, fleet: Fleet,
    claims: Claims, cursor: np.ndarray, forced: np.ndarray, status: np.ndarray,
) -> None:  # fmt: skip
    """Move the agents of some worlds from a sample to the next; ego (B, 11) stands where it is at `sample`.

    cursor (B,) is the agent to go on with, forced (B,) the claim that it follows (-1: its own choice); status (B,)
    tells how each world ended.
    """
    agents, slots = len(fleet.x) // len(ego), len(claims.present) // len(ego)
    points = len(fleet.path) // max(1, len(fleet.x)) + 1
    work = Scratch(
        np.empty((points, 2)), np.empty((points, 9)), np.empty((70, 2)),
        np.empty((len(claims.point) // (2 * len(claims.present)), 2)),
        np.empty(slots, dtype=np.int64), np.empty(slots), np.empty(slots, dtype=np.int64), np.empty(slots),
        np.empty((1, 4)),
    )  # fmt: skip
    for b in worlds:
        frame, first = min(sample + 1, stage.last_frame[b]), b * slots
        if cursor[b] == 0:
            _drop_far_agents(b, agents, slots, ego, fleet, claims)
            _claim_boxes(b, first + agents, frame, ego, stage, claims)
        status[b] = DONE
        for a in range(cursor[b], agents):
            if claims.present[first + a]:
                status[b] = _move(
                    b, b * agents + a, first + a, first, first + slots, frame, dt[b], rails, stage, fleet, claims, work,
                    forced[b],
                )  # fmt: skip
                forced[b], cursor[b] = -1, a
                if status[b] != DONE:
                    break


@kernel
def write_state(
    sample: int, crew: np.ndarray, fleet: Fleet, claims: Claims, stage: Stage, state: np.ndarray, valid: np.ndarray
) -> None:
    """Boxes of a sample into zeros, state (B, A, 5) and valid (B, A): the crew (B,) of each world, then its objects."""
    agents, slots = len(fleet.x) // len(crew), len(claims.present) // len(crew)
    for b in range(len(crew)):
        for a in range(crew[b]):
            g, q = b * agents + a, b * slots + a
            if claims.present[q]:
                valid[b, a] = True
                state[b, a, 0], state[b, a, 1], state[b, a, 2] = fleet.x[g], fleet.y[g], claims.heading[q]
                state[b, a, 3] = claims.speed[q] * math.cos(claims.heading[q])
                state[b, a, 4] = claims.speed[q] * math.sin(claims.heading[q])
        frame = min(sample, stage.last_frame[b])
        for k in range(min(stage.object_valid.shape[2], state.shape[1] - crew[b])):
            if stage.object_valid[b, frame, k]:
                valid[b, crew[b] + k] = True
                for column in range(state.shape[2]):
                    state[b, crew[b] + k, column] = stage.object_state[b, frame, k, column]
