"""What all metrics read of a drive: poses, footprint, speed, traffic and map, as plain arrays for kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from radp.geometry.kernels import box_corners
from radp.geometry.ragged import Polygons
from radp.scenario import Box, Ego, RoadMap
from radp.scenario.scenario import FIRST_STATIC_TYPE
from radp.scenario.vehicle import PACIFICA
from radp.sim.rollout import Rollout

X, Y, HEADING = int(Ego.X), int(Ego.Y), int(Ego.HEADING)  # the same in Ego and Box; plain numbers for kernels
EGO_VX, EGO_VY, BOX_VX, BOX_VY = int(Ego.VX), int(Ego.VY), int(Box.VX), int(Box.VY)
LENGTH, WIDTH, REAR_TO_CENTER = PACIFICA.length, PACIFICA.width, PACIFICA.rear_axle_to_center


class AreaArrays(NamedTuple):
    """N areas: points (V, 2), ring_offsets (R+1,), offsets (N+1,) into the rings, bounds (N, 4)."""

    points: np.ndarray
    ring_offsets: np.ndarray
    offsets: np.ndarray
    bounds: np.ndarray


class MapArrays(NamedTuple):
    """The parts of a `RoadMap` of L lanes that metrics read; rows of links are values[offsets[i]:offsets[i+1]]."""

    lanes: AreaArrays  # L
    is_connector: np.ndarray  # (L,) bool
    line_points: np.ndarray  # (V, 2) centre lines
    line_offsets: np.ndarray  # (L+1,)
    limit: np.ndarray  # (L,) m/s, 0 = unknown
    before: np.ndarray  # predecessors
    before_offsets: np.ndarray
    after: np.ndarray  # successors
    after_offsets: np.ndarray
    roadblock: np.ndarray  # (L,)
    roadblocks: AreaArrays
    intersections: AreaArrays
    drivable: AreaArrays  # drivable areas without the intersections


class Drive(NamedTuple):
    """S samples, A objects; world frame, metres, seconds."""

    time_us: np.ndarray  # (S,) int64
    ego: np.ndarray  # (S, 11) columns Ego
    center: np.ndarray  # (S, 2) box centre
    corners: np.ndarray  # (S, 4, 2) front-left, rear-left, rear-right, front-right
    speed: np.ndarray  # (S,) magnitude of the rear-axle velocity
    agent_state: np.ndarray  # (A, S, 5) columns Box
    agent_valid: np.ndarray  # (A, S) bool
    agent_speed: np.ndarray  # (A, S) 0 for static types
    agent_size: np.ndarray  # (A, 3)
    agent_static: np.ndarray  # (A,) bool


def map_arrays(road_map: RoadMap) -> MapArrays:
    """The arrays of a map, made once and kept with it (in the way of a cached_property)."""
    known = road_map.__dict__.get("_metric_arrays")
    if known is None:
        known = _build_map_arrays(road_map)
        road_map.__dict__["_metric_arrays"] = known
    return known


def read_drive(rollout: Rollout) -> Drive:
    """The arrays of a rollout."""
    tracks = rollout.agents
    static = tracks.type >= FIRST_STATIC_TYPE
    ego, state = _floats(rollout.ego), _floats(tracks.state)
    center, corners, speed, agent_speed = _derive(ego, state, static)
    return Drive(
        np.require(rollout.time_us, np.int64, ["C", "W"]), ego, center, corners, speed, state,
        np.require(tracks.valid, bool, ["C", "W"]), agent_speed, _floats(tracks.size), static,
    )  # fmt: skip


def box_centers(ego: np.ndarray) -> np.ndarray:
    """Box centres (T, 2) of ego states (T, 11)."""
    heading = ego[:, Ego.HEADING]
    forward = np.stack([np.cos(heading), np.sin(heading)], axis=1)
    return ego[:, : Ego.HEADING] + REAR_TO_CENTER * forward


def mean_step(time_us: np.ndarray) -> float:
    """Mean time step [s]; 0 for a single sample."""
    return float(time_us[-1] - time_us[0]) / (len(time_us) - 1) * 1e-6 if len(time_us) > 1 else 0.0


def _floats(array: np.ndarray) -> np.ndarray:
    """Contiguous and writeable, as kernels are compiled for one memory layout only; copies where needed."""
    return np.require(array, np.float64, ["C", "W"])


def _integers(array: np.ndarray) -> np.ndarray:
    return np.require(array, np.int64, ["C", "W"])


def _area_arrays(polygons: Polygons) -> AreaArrays:
    return AreaArrays(
        _floats(polygons.rings.values), _integers(polygons.rings.offsets), _integers(polygons.offsets),
        _floats(polygons.bounds),
    )  # fmt: skip


def _build_map_arrays(road_map: RoadMap) -> MapArrays:
    return MapArrays(
        lanes=_area_arrays(road_map.lane_polygons),
        is_connector=np.require(road_map.is_connector, bool, ["C", "W"]),
        line_points=_floats(road_map.centerlines.values),
        line_offsets=_integers(road_map.centerlines.offsets),
        limit=np.where(road_map.has_speed_limit, road_map.speed_limit, 0.0),
        before=_integers(road_map.predecessors.values),
        before_offsets=_integers(road_map.predecessors.offsets),
        after=_integers(road_map.successors.values),
        after_offsets=_integers(road_map.successors.offsets),
        roadblock=_integers(road_map.roadblock),
        roadblocks=_area_arrays(road_map.roadblocks.polygons),
        intersections=_area_arrays(road_map.intersections.polygons),
        drivable=_area_arrays(road_map.drivable.polygons),
    )


@njit(cache=True, nogil=True)
def _derive(
    ego: np.ndarray, state: np.ndarray, static: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Box centre, corners and speed of the ego per sample, and speeds of the objects."""
    samples = len(ego)
    center, corners, speed = np.empty((samples, 2)), np.empty((samples, 4, 2)), np.empty(samples)
    for i in range(samples):
        heading = ego[i, HEADING]
        center[i, 0] = ego[i, X] + REAR_TO_CENTER * np.cos(heading)
        center[i, 1] = ego[i, Y] + REAR_TO_CENTER * np.sin(heading)
        box_corners(center[i, 0], center[i, 1], heading, LENGTH, WIDTH, corners[i])
        speed[i] = np.hypot(ego[i, EGO_VX], ego[i, EGO_VY])
    agent_speed = np.zeros(state.shape[:2])
    for a in range(len(state)):
        if not static[a]:
            for i in range(state.shape[1]):
                agent_speed[a, i] = np.hypot(state[a, i, BOX_VX], state[a, i, BOX_VY])
    return center, corners, speed, agent_speed
