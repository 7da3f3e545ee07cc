"""What the controller would make of a proposal, and the forecast of the traffic around it."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from radp.geometry.kernels import box_corners, quads_intersect
from radp.planners.corridor import CENTER, HEADING, VX, VY, X, Y
from radp.planners.pdm.settings import SCORED
from radp.scenario import DT, Ego
from radp.scenario.vehicle import PACIFICA
from radp.sim.bicycle import bicycle_step
from radp.sim.tracker import (
    JERK_PENALTY,
    fit_curvatures,
    fit_speeds,
    lateral_and_heading_error,
    lqr_command,
    solve_speeds,
)

EGO_VX, EGO_STEERING = int(Ego.VX), int(Ego.STEERING)
LENGTH, WIDTH = PACIFICA.length, PACIFICA.width
SLOWEST_SIGHT = 5.0  # m/s: speed for which sight is reckoned at least


@njit(cache=True, nogil=True)
def drive(ego: np.ndarray, poses: np.ndarray, as_published: bool, work: np.ndarray, states: np.ndarray) -> None:
    """Follow poses (P, 3), 0.1 s apart, with tracker and bicycle from ego (11,) -> states (41, 11), the first is now.

    `as_published`: the tracker sees 41 poses and fits their speeds with `fit_speeds_as_published`. work (5, P) is
    scratch memory.
    """
    count = SCORED + 1 if as_published else poses.shape[0]
    speeds, curvatures = work[3], work[4]
    if as_published:
        fit_speeds_as_published(poses, count, work[:3], speeds)
    else:
        fit_speeds(poses, count, work[:3], speeds)
    fit_curvatures(poses, speeds, count, work[:2], curvatures)
    states[0] = ego
    for t in range(SCORED):
        now = states[t]
        lateral, turned = lateral_and_heading_error(now[X], now[Y], now[HEADING], poses[t, 0], poses[t, 1], poses[t, 2])
        accel, rate = lqr_command(
            lateral, turned, now[EGO_STEERING], now[EGO_VX], float(t), speeds, curvatures, count - 1
        )
        bicycle_step(now, accel, rate, DT, states[t + 1])


@njit(cache=True, nogil=True)
def fit_speeds_as_published(poses: np.ndarray, count: int, work: np.ndarray, speeds: np.ndarray) -> None:
    """The speeds that the published PDM-Closed fits to the M = count - 1 displacements of poses (P, 3).

    In its batched tracker the band of +1 in the matrix of differences is overwritten, so that accelerations a_0 ...
    a_M-4 are penalised instead of their changes; only the last row is a_M-2 - a_M-3. work (3, >= M) is scratch memory.
    """
    size = count - 1
    near, far, pivot = work[0], work[1], work[2]
    weight = JERK_PENALTY / DT**4
    for k in range(size):
        first, middle, last = k == size - 3, k == size - 2, k == size - 1
        # v_k is in the accelerations before and after it, and in the one change of accelerations: 1, -2, 1
        steps = 1.0 * (k <= size - 4) + 1.0 * (1 <= k <= size - 3)
        pivot[k] = 1.0 + weight * (steps + 1.0 * first + 4.0 * middle + 1.0 * last)
        near[k] = far[k] = 0.0
        if k >= 2:
            far[k] = weight * last / pivot[k - 2]
            near[k] -= far[k] * near[k - 1] * pivot[k - 2]
            pivot[k] -= far[k] * far[k] * pivot[k - 2]
        if k >= 1:
            near[k] = (near[k] - weight * (1.0 * (k <= size - 3) + 2.0 * middle + 2.0 * last)) / pivot[k - 1]
            pivot[k] -= near[k] * near[k] * pivot[k - 1]
    solve_speeds(poses, count, work, speeds)


@njit(cache=True, nogil=True)
def outline(states: np.ndarray, center: np.ndarray, corners: np.ndarray, speed: np.ndarray) -> None:
    """Ego states (S, 11) -> box centres (S, 2), corners (S, 4, 2), speeds (S,)."""
    for t in range(states.shape[0]):
        heading = states[t, HEADING]
        center[t, 0] = states[t, X] + CENTER * math.cos(heading)
        center[t, 1] = states[t, Y] + CENTER * math.sin(heading)
        box_corners(center[t, 0], center[t, 1], heading, LENGTH, WIDTH, corners[t])
        speed[t] = abs(states[t, EGO_VX])


@njit(cache=True, nogil=True)
def agents_in_sight(ego: np.ndarray, agents: np.ndarray, valid: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Rows of the objects that the ego could meet within the scored time and does not touch already."""
    keep = np.empty(agents.shape[0], np.int64)
    count = 0
    mine, theirs = np.empty((4, 2)), np.empty((4, 2))
    x, y = ego[X] + CENTER * math.cos(ego[HEADING]), ego[Y] + CENTER * math.sin(ego[HEADING])
    box_corners(x, y, ego[HEADING], LENGTH, WIDTH, mine)
    sight = 2.0 * LENGTH + (max(ego[EGO_VX], SLOWEST_SIGHT) * 2.0 + 5.0) * DT * SCORED
    for a in range(agents.shape[0]):
        if not valid[a]:
            continue
        reach = sight + 0.5 * (size[a, 0] + size[a, 1]) + math.hypot(agents[a, VX], agents[a, VY]) * DT * SCORED
        if math.hypot(agents[a, X] - x, agents[a, Y] - y) > reach:
            continue
        box_corners(agents[a, X], agents[a, Y], agents[a, HEADING], size[a, 0], size[a, 1], theirs)
        if quads_intersect(mine, theirs):
            continue
        keep[count] = a
        count += 1
    return keep[:count]


@njit(cache=True, nogil=True)
def forecast(agents: np.ndarray, samples: int) -> tuple[np.ndarray, np.ndarray]:
    """agents (A, 5) now -> states (A, S, 5) every 0.1 s at constant velocity and heading, speeds (A, S)."""
    count = agents.shape[0]
    states, speeds = np.empty((count, samples, 5)), np.empty((count, samples))
    for a in range(count):
        speed = math.hypot(agents[a, VX], agents[a, VY])
        for t in range(samples):
            states[a, t] = agents[a]
            states[a, t, X] += agents[a, VX] * DT * t
            states[a, t, Y] += agents[a, VY] * DT * t
            speeds[a, t] = speed
    return states, speeds
