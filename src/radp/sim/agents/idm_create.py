"""Which logged vehicles become reactive agents, and where they stand: the rules of frame 0."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from radp.geometry.kernels import box_corners, quads_intersect
from radp.road.arrays import RoadArrays, road_arrays
from radp.road.places import lane_of_vehicle, nearest_pose
from radp.scenario import PACIFICA, Box, Ego, ObjectType, Scenario

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
def place_vehicles(
    state: np.ndarray, size: np.ndarray, taken: np.ndarray, taken_count: int, road: RoadArrays, lane: np.ndarray,
    snapped: np.ndarray,
) -> None:  # fmt: skip
    """V vehicles in input order: state (V, 5), size (V, 3) -> lane (V,), -1 = dropped, and snapped (V, 4).

    taken (taken_count + V, 4, 2) holds the boxes that are in the way at first; every accepted vehicle joins them.
    """
    for i in range(len(state)):
        x, y, heading = state[i, 0], state[i, 1], state[i, 2]
        lane[i] = lane_of_vehicle(x, y, heading, road)
        if lane[i] < 0:
            continue
        sx, sy, sh, s = nearest_pose(x, y, lane[i], road.centre)
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
    road, tracks, frame = road_arrays(scenario.map), scenario.tracks, scenario.start
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
    place_vehicles(state, size, taken, len(obstacles) + 1, road, lane, snapped)
    kept = np.flatnonzero(lane >= 0)
    return Crew(
        track=vehicles[kept],
        lane=lane[kept],
        progress=snapped[kept, 3],
        pose=np.ascontiguousarray(snapped[kept, :3]),
        speed=np.hypot(state[kept, Box.VX], state[kept, Box.VY]),
        target=_wanted_speeds(road.graph.limit[lane[kept]]),
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
