"""Which logged vehicles become reactive agents, and where they stand: the rules of frame 0."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from radp.geometry.kernels import (
    box_corners,
    line_length,
    point_in_area,
    point_on_line,
    project_on_line,
    quads_intersect,
)
from radp.scenario import PACIFICA, Box, Ego, ObjectType, Scenario
from radp.sim.agents.idm_roads import AreaArrays, Ground, Roads, prepare_map

HEADING_CHORD = 0.5  # m
EGO_LENGTH, EGO_WIDTH, EGO_SHIFT = PACIFICA.length, PACIFICA.width, PACIFICA.rear_axle_to_center
DEFAULT_SPEED = 10.0  # m/s wanted where no lane so far had a limit
OPEN_LOOP_TYPES = (
    ObjectType.PEDESTRIAN,
    ObjectType.BARRIER,
    ObjectType.CZONE_SIGN,
    ObjectType.TRAFFIC_CONE,
    ObjectType.GENERIC_OBJECT,
)  # replayed beside the reactive agents, in this order; bicycles are not


class Crew(NamedTuple):
    """N accepted vehicles of one world in creation order."""

    track: np.ndarray  # (N,) index into the scenario's tracks
    lane: np.ndarray  # (N,) lane of the world's map
    progress: np.ndarray  # (N,) m along its centre line
    pose: np.ndarray  # (N, 3) x, y, heading: snapped to the centre line
    speed: np.ndarray  # (N,) m/s
    target: np.ndarray  # (N,) m/s wanted in free traffic


@njit(cache=True, nogil=True)
def nearest_pose(x: float, y: float, vertex: np.ndarray, first: int, last: int) -> tuple[float, float, float, float]:
    """x, y, heading, arc length of the point of a centre line nearest to (x, y); heading from a chord of 0.5 m."""
    s = project_on_line(x, y, vertex, first, last)
    ax, ay = point_on_line(s, vertex, first, last)
    bx, by = point_on_line(s + HEADING_CHORD, vertex, first, last)
    if ax != bx or ay != by:
        return ax, ay, math.atan2(by - ay, bx - ax), s
    back = s - HEADING_CHORD  # at the end of the line; a negative length would count from its end
    if back < 0.0:
        back += line_length(vertex, first, last)
    bx, by = point_on_line(max(0.0, back), vertex, first, last)
    return ax, ay, math.atan2(ay - by, ax - bx), s


@njit(cache=True, nogil=True)
def _in_any(x: float, y: float, areas: AreaArrays) -> bool:
    for i in range(len(areas.offsets) - 1):
        if point_in_area(x, y, i, areas.points, areas.ring_offsets, areas.offsets, areas.bounds):
            return True
    return False


@njit(cache=True, nogil=True)
def _best_aligned(x: float, y: float, heading: float, roads: Roads, ground: Ground, connectors: bool) -> int:
    """Among the lanes (or the connectors) that hold a point, the one of the smallest heading difference; -1: none."""
    areas = ground.lanes
    best, best_lane = np.inf, -1
    for i in range(len(areas.offsets) - 1):
        if ground.is_connector[i] == connectors and point_in_area(
            x, y, i, areas.points, areas.ring_offsets, areas.offsets, areas.bounds
        ):
            first, last = roads.vertex_offsets[i], roads.vertex_offsets[i + 1]
            if line_length(roads.vertex, first, last) == 0.0:
                continue
            pose = nearest_pose(x, y, roads.vertex, first, last)
            difference = abs(pose[2] - heading)  # not wrapped: pi and -pi count as far apart
            if difference < best:
                best, best_lane = difference, i
    return best_lane


@njit(cache=True, nogil=True)
def lane_of_vehicle(x: float, y: float, heading: float, roads: Roads, ground: Ground) -> int:
    """The lane where a vehicle stands or, inside an intersection, the connector; -1: neither."""
    lane = _best_aligned(x, y, heading, roads, ground, False)
    if lane < 0 and _in_any(x, y, ground.intersections):
        lane = _best_aligned(x, y, heading, roads, ground, True)
    return lane


@njit(cache=True, nogil=True)
def place_vehicles(
    state: np.ndarray, size: np.ndarray, taken: np.ndarray, taken_count: int, roads: Roads, ground: Ground,
    lane: np.ndarray, snapped: np.ndarray,
) -> None:  # fmt: skip
    """V vehicles in input order: state (V, 5), size (V, 3) -> lane (V,), -1 = dropped, and snapped (V, 4).

    taken (taken_count + V, 4, 2) holds the boxes that are in the way at first; every accepted vehicle joins them.
    """
    for i in range(len(state)):
        x, y, heading = state[i, 0], state[i, 1], state[i, 2]
        lane[i] = lane_of_vehicle(x, y, heading, roads, ground)
        if lane[i] < 0:
            continue
        first, last = roads.vertex_offsets[lane[i]], roads.vertex_offsets[lane[i] + 1]
        sx, sy, sh, s = nearest_pose(x, y, roads.vertex, first, last)
        box_corners(sx, sy, sh, size[i, 0], size[i, 1], taken[taken_count])
        for k in range(taken_count):
            if quads_intersect(taken[k], taken[taken_count]):
                lane[i] = -1
                break
        if lane[i] >= 0:
            snapped[i, 0], snapped[i, 1], snapped[i, 2], snapped[i, 3] = sx, sy, sh, s
            taken_count += 1


def create_crew(scenario: Scenario) -> Crew:
    """The reactive agents of one scenario; the ego stands where the log starts."""
    roads, ground = prepare_map(scenario.map)
    tracks, frame = scenario.tracks, scenario.start
    present = tracks.valid[:, frame]
    obstacles = np.flatnonzero(present & np.isin(tracks.type, OPEN_LOOP_TYPES))
    vehicles = np.flatnonzero(present & (tracks.type == ObjectType.VEHICLE))
    taken = np.zeros((len(obstacles) + 1 + len(vehicles), 4, 2))
    for corners, i in zip(taken, obstacles):
        x, y, heading = tracks.state[i, frame, : Box.VX]
        box_corners(x, y, heading, tracks.size[i, 0], tracks.size[i, 1], corners)
    ego_box(np.array(scenario.ego[frame]), taken[len(obstacles)])
    state, size = np.ascontiguousarray(tracks.state[vehicles, frame]), np.ascontiguousarray(tracks.size[vehicles])
    lane, snapped = np.full(len(vehicles), -1, dtype=np.int64), np.zeros((len(vehicles), 4))
    place_vehicles(state, size, taken, len(obstacles) + 1, roads, ground, lane, snapped)
    kept = np.flatnonzero(lane >= 0)
    return Crew(
        track=vehicles[kept],
        lane=lane[kept],
        progress=snapped[kept, 3],
        pose=np.ascontiguousarray(snapped[kept, :3]),
        speed=np.hypot(state[kept, Box.VX], state[kept, Box.VY]),
        target=_wanted_speeds(roads.speed_limit[lane[kept]]),
    )


def _wanted_speeds(limits: np.ndarray) -> np.ndarray:
    """(N,) limits, 0 = none -> the limit, otherwise what the vehicle before wanted."""
    wanted, out = DEFAULT_SPEED, np.zeros(len(limits))
    for i, limit in enumerate(limits):
        wanted = out[i] = limit if limit > 0.0 else wanted
    return out


@njit(cache=True, nogil=True)
def ego_box(ego: np.ndarray, corners: np.ndarray) -> None:
    """Ego state (11,) -> its corners (4, 2)."""
    heading = ego[Ego.HEADING]
    x = ego[Ego.X] + EGO_SHIFT * math.cos(heading)
    y = ego[Ego.Y] + EGO_SHIFT * math.sin(heading)
    box_corners(x, y, heading, EGO_LENGTH, EGO_WIDTH, corners)
