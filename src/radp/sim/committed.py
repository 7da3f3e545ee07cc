"""Plans that are followed for a while without replanning, by the same tracker and bicycle as in closed loop."""

from __future__ import annotations

import numpy as np
from numba import njit

from radp.geometry.kernels import wrap_angle
from radp.sim.bicycle import HEADING, STEERING, VX, X, Y, bicycle_step
from radp.sim.controller import Trajectories, scratch_width
from radp.sim.tracker import track


def follow_plans(ego: np.ndarray, trajectories: Trajectories, dt: np.ndarray) -> np.ndarray:
    """Ego states (K, 11) and a trajectory for each, dt (K, steps) seconds -> (K, steps + 1, 11), the present first."""
    t = trajectories
    return _follow(np.ascontiguousarray(ego), t.poses, t.times_us, t.first, np.ascontiguousarray(dt))


@njit(cache=True, nogil=True)
def _follow(ego: np.ndarray, poses: np.ndarray, times_us: np.ndarray, first: np.ndarray, dt: np.ndarray) -> np.ndarray:
    count, steps = dt.shape
    out = np.zeros((count, steps + 1, ego.shape[1]))
    work = np.zeros((8, scratch_width(times_us)))
    for b in range(count):
        times, states = times_us[b, first[b] :], poses[b, first[b] :]
        x, y, heading = ego[b, X], ego[b, Y], ego[b, HEADING]
        path = out[b]
        path[0] = ego[b]
        path[0, X], path[0, Y], path[0, HEADING] = 0.0, 0.0, 0.0  # the frame of the plan
        now = 0.0
        for k in range(steps):
            at = path[k]
            pose = np.array([at[X], at[Y], at[HEADING]])
            accel, rate = track(pose, at[VX], at[STEERING], round(now * 1e6), times, states, len(times), work)
            bicycle_step(at, accel, rate, dt[b, k], path[k + 1])
            now += dt[b, k]
        c, s = np.cos(heading), np.sin(heading)
        for k in range(steps + 1):
            ahead, left = path[k, X], path[k, Y]
            path[k, X], path[k, Y] = x + c * ahead - s * left, y + s * ahead + c * left
            path[k, HEADING] = wrap_angle(heading + path[k, HEADING])
    return out
