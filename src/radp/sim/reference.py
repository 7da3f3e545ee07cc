"""A reference that lets nuPlan's tracker take the car where a plan leads.

A planner that plans anew at every step starts each plan at the car, so the tracker never sees that the car has left
the plan before. What it asks for then lags behind: it weighs speed and heading one second ahead against what they cost,
and the bicycle answers with a lag of its own. In tight bends the car swings out by half a metre, and where the plan
stops behind somebody, the car comes too close.

The reference is the plan with other times and a small bulge to the side, so that the tracker asks for the acceleration
and for the steering which give the car the plan's speed and heading after `look` seconds. The plan itself stays what
the car is meant to do: rules, pressures and pictures look at the plan.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numba import njit
from torch import Tensor

from radp.geometry.frames import heading_angle, heading_vector
from radp.geometry.kernels import wrap_angle
from radp.scenario import DT, DT_US
from radp.sim.bicycle import ACCEL_LAG, STEERING_LAG
from radp.sim.tracker import HORIZON, STOPPING_SPEED, WHEEL_BASE, track

RISE, END = HORIZON * DT, 3.0  # s: what is added grows up to the tracker's horizon, then fades out
TRIAL = 0.1  # m, with which the tracker's response is measured
MOST_BULGE = 1.0  # m to the side
MOST_RATE = 1.5  # rad/s that are asked of the steering
MOST_ACCEL = 8.0  # m/s2
MOST_AT_REST = 0.2  # m along the way, of a car that comes to rest
SLOWEST = 1.0  # m/s: a car that creeps has no heading error to speak of


def tracker_reference(trajectory: Tensor, ego: Tensor, look: float) -> Tensor:
    """Plans (B, H, 4) of steps of 0.1 s in the ego frame, ego (B, 3) speed, acceleration and steering now [m/s, m/s2,
    rad] -> (B, H, 4)."""
    batch, horizon = trajectory.shape[:2]
    poses = np.zeros((batch, horizon + 1, 3))
    poses[:, 1:, :2] = trajectory[..., :2].detach().cpu().double().numpy()
    poses[:, 1:, 2] = heading_angle(trajectory[..., 2:]).detach().cpu().double().numpy()
    steps = min(max(round(look / DT), 1), horizon)
    _bend(poses, ego.detach().cpu().double().numpy(), steps, _bulge(horizon + 1))
    moved = torch.from_numpy(poses[:, 1:]).to(trajectory)
    return torch.cat((moved[..., :2], heading_vector(moved[..., 2])), -1)


def _bulge(count: int) -> np.ndarray:
    """(2, count): metres that are added and their change in m/s, for 1 m at the end of the rise."""
    t = DT * np.arange(count)
    s, span = np.clip((t - RISE) / (END - RISE), 0.0, 1.0), END - RISE
    slope = 2.0 / RISE  # of the rise where it ends
    fading = 1 - 3 * s**2 + 2 * s**3 + slope * span * s * (1 - s) ** 2
    change = (6 * s**2 - 6 * s) / span + slope * (1 - s) * (1 - 3 * s)
    rising = t <= RISE
    return np.stack((np.where(rising, (t / RISE) ** 2, fading), np.where(rising, 2 * t / RISE**2, change)))


@njit(cache=True, nogil=True)
def _bend(poses: np.ndarray, ego: np.ndarray, look: int, bulge: np.ndarray) -> None:
    """Plans (B, P, 3), the present pose first, are bent in place; ego (B, 3) speed, acceleration, steering."""
    count = poses.shape[1]
    times_us = np.arange(count) * DT_US
    work, trial, timed = np.zeros((8, count + 1)), np.zeros((count, 3)), np.zeros((count, 3))
    ends, origin = np.zeros(count), np.zeros(3)
    for b in range(len(poses)):
        plan, speed, accel, steering = poses[b], max(ego[b, 0], 0.0), ego[b, 1], ego[b, 2]
        rate, turns = _wanted_rate(plan, speed, steering, look)
        wanted = _wanted_accel(plan, speed, accel, look)
        asked = track(origin, speed, steering, 0, times_us, plan, count, work)[0]
        for k in range(1, count):
            ends[k] = ends[k - 1] + math.hypot(plan[k, 0] - plan[k - 1, 0], plan[k, 1] - plan[k - 1, 1])
        _retimed(plan, ends, TRIAL, bulge, trial)
        response = (track(origin, speed, steering, 0, times_us, trial, count, work)[0] - asked) / TRIAL
        size = (wanted - asked) / response if response > 1e-3 else 0.0
        if _comes_to_rest(plan, speed):
            size = min(max(size, -MOST_AT_REST), MOST_AT_REST)
        _retimed(plan, ends, size, bulge, timed)
        if turns:
            asked = track(origin, speed, steering, 0, times_us, timed, count, work)[1]
            _bulged(timed, TRIAL, bulge, trial)
            response = (track(origin, speed, steering, 0, times_us, trial, count, work)[1] - asked) / TRIAL
            size = (rate - asked) / response if response > 1e-3 else 0.0
            _bulged(timed, min(max(size, -MOST_BULGE), MOST_BULGE), bulge, trial)
            plan[1:] = trial[1:]
        else:
            plan[1:] = timed[1:]


@njit(cache=True, nogil=True)
def _comes_to_rest(plan: np.ndarray, speed: float) -> bool:
    """Whether car and plan are so slow that the tracker only lets the car come to rest.

    A little more speed there changes its law, so its response says nothing about how much more is needed.
    """
    last = min(HORIZON + 1, len(plan) - 1)
    target = math.hypot(plan[last, 0] - plan[last - 1, 0], plan[last, 1] - plan[last - 1, 1]) / DT
    return speed <= STOPPING_SPEED and target <= STOPPING_SPEED


@njit(cache=True, nogil=True)
def _wanted_rate(plan: np.ndarray, speed: float, steering: float, look: int) -> tuple[float, bool]:
    """The steady steering rate [rad/s] with which the car has the plan's heading after `look` steps, and whether it
    turns at all: (way / span) (steering span + rate span^2 / 2) / wheel base = heading."""
    way, turned, span = 0.0, 0.0, look * DT
    for k in range(look):
        way += math.hypot(plan[k + 1, 0] - plan[k, 0], plan[k + 1, 1] - plan[k, 1])
        turned += wrap_angle(plan[k + 1, 2] - plan[k, 2])
    if speed < SLOWEST or way < SLOWEST * span:
        return 0.0, False
    rate = 2.0 * (turned * WHEEL_BASE * span / way - steering * span) / (span * span) * (DT + STEERING_LAG) / DT
    return min(max(rate, -MOST_RATE), MOST_RATE), True


@njit(cache=True, nogil=True)
def _wanted_accel(plan: np.ndarray, speed: float, accel: float, look: int) -> float:
    """The steady command [m/s2] with which the car, through its lag, has the plan's speed after `look` steps."""
    last = min(look + 1, len(plan) - 1)
    target = math.hypot(plan[last, 0] - plan[last - 1, 0], plan[last, 1] - plan[last - 1, 1]) / DT
    keeps = ACCEL_LAG / (DT + ACCEL_LAG)
    rest = keeps * (1 - keeps**look) / (1 - keeps)  # steps for which the present acceleration still counts
    command = ((target - speed) / DT - rest * accel) / (look - rest)
    return min(max(command, -MOST_ACCEL), MOST_ACCEL)


@njit(cache=True, nogil=True)
def _retimed(plan: np.ndarray, ends: np.ndarray, size: float, bulge: np.ndarray, out: np.ndarray) -> None:
    """Plan (P, 3), its length up to each pose (P,) -> its path, size * bulge[0] further at each time."""
    count, i = len(plan), 0
    out[0] = plan[0]
    for k in range(1, count):
        way = ends[k] + size * bulge[0, k]
        if way <= 0.0:  # back, straight
            out[k, 0], out[k, 1], out[k, 2] = plan[0, 0] + way, plan[0, 1], plan[0, 2]
            continue
        while i > 0 and ends[i] > way:
            i -= 1
        while i < count - 2 and ends[i + 1] < way:
            i += 1
        step = ends[i + 1] - ends[i]
        share = (way - ends[i]) / step if step > 1e-6 else 0.0
        inside = min(share, 1.0)
        heading = plan[i, 2] + inside * wrap_angle(plan[i + 1, 2] - plan[i, 2])
        beyond = max(way - ends[count - 1], 0.0)
        out[k, 0] = plan[i, 0] + inside * (plan[i + 1, 0] - plan[i, 0]) + beyond * math.cos(heading)
        out[k, 1] = plan[i, 1] + inside * (plan[i + 1, 1] - plan[i, 1]) + beyond * math.sin(heading)
        out[k, 2] = heading


@njit(cache=True, nogil=True)
def _bulged(plan: np.ndarray, size: float, bulge: np.ndarray, out: np.ndarray) -> None:
    """Plan (P, 3) moved to its left by size * bulge[0]; where it creeps, the headings turn as at 1 m/s."""
    out[0] = plan[0]
    for k in range(1, len(plan)):
        x, y, heading = plan[k]
        aside = size * bulge[0, k]
        speed = math.hypot(x - plan[k - 1, 0], y - plan[k - 1, 1]) / DT
        out[k, 0], out[k, 1] = x - math.sin(heading) * aside, y + math.cos(heading) * aside
        out[k, 2] = heading + math.atan(size * bulge[1, k] / max(speed, SLOWEST))
