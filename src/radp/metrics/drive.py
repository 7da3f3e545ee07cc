"""What all metrics read of a drive: poses, footprint, speed and traffic, as plain arrays for kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from radp.geometry.compiled import kernel_array
from radp.geometry.kernels import box_corners
from radp.scenario import Box, Ego
from radp.scenario.scenario import FIRST_STATIC_TYPE
from radp.scenario.vehicle import PACIFICA
from radp.sim.rollout import Rollout

X, Y, HEADING = int(Ego.X), int(Ego.Y), int(Ego.HEADING)  # the same in Ego and Box; plain numbers for kernels
EGO_VX, EGO_VY, BOX_VX, BOX_VY = int(Ego.VX), int(Ego.VY), int(Box.VX), int(Box.VY)
LENGTH, WIDTH, REAR_TO_CENTER = PACIFICA.length, PACIFICA.width, PACIFICA.rear_axle_to_center


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


def read_drive(rollout: Rollout) -> Drive:
    """The arrays of a rollout."""
    tracks = rollout.agents
    static = tracks.type >= FIRST_STATIC_TYPE
    ego, state = kernel_array(rollout.ego), kernel_array(tracks.state)
    center, corners, speed, agent_speed = _derive(ego, state, static)
    return Drive(
        kernel_array(rollout.time_us, np.int64), ego, center, corners, speed, state,
        kernel_array(tracks.valid, bool), agent_speed, kernel_array(tracks.size), static,
    )  # fmt: skip


def box_centers(ego: np.ndarray) -> np.ndarray:
    """Box centres (T, 2) of ego states (T, 11)."""
    heading = ego[:, Ego.HEADING]
    forward = np.stack([np.cos(heading), np.sin(heading)], axis=1)
    return ego[:, : Ego.HEADING] + REAR_TO_CENTER * forward


def mean_step(time_us: np.ndarray) -> float:
    """Mean time step [s]; 0 for a single sample."""
    return float(time_us[-1] - time_us[0]) / (len(time_us) - 1) * 1e-6 if len(time_us) > 1 else 0.0


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
