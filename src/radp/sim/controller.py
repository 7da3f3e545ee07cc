"""From plans to the next ego states: reading a planner's answer, then the two-stage controller or perfect tracking."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from numba import njit

from radp.geometry.limits import REACH, size_fault
from radp.scenario import DT_US
from radp.sim.bicycle import AX, HEADING, STEERING, STEERING_RATE, VX, VY, WHEEL_BASE, YAW_ACCEL, YAW_RATE, bicycle_step
from radp.sim.plan import Plan
from radp.sim.tracker import fit_curvatures, fit_speeds, pose_at, profile_at, resample, track

LONGEST_US = 100_000_000  # a plan beyond 100 s is an error of units, not a plan


class PlanError(ValueError):
    """A planner's answer that is no plan for the worlds it was asked for; the message is one sentence."""


@dataclass(frozen=True)
class Trajectories:
    """B trajectories of up to P states, used from state `first` on. Ego frame of now: the ego is at the origin."""

    poses: np.ndarray  # (B, P, 3) x, y, heading of the rear axle
    times_us: np.ndarray  # (B, P) int64, 0 = now
    first: np.ndarray  # (B,) int64: 0 = from the present pose, 1 = the plan has its own idea of it
    failures: tuple[str | None, ...]  # why a world's plan cannot be followed

    def select(self, rows: np.ndarray) -> Trajectories:
        """The worlds `rows` (indices) only."""
        failures = tuple(self.failures[int(i)] for i in rows)
        return Trajectories(self.poses[rows], self.times_us[rows], self.first[rows], failures)


def trajectories_from_plan(plan: Plan, worlds: int) -> Trajectories:
    """Check a plan for `worlds` worlds and put the present pose in front of it.

    PlanError: the shapes are wrong. Values that are wrong in single worlds stand in `failures`.
    """
    states, times = _plan_arrays(plan, worlds)
    poses = np.zeros((worlds, states.shape[1] + 1, 3))
    poses[:, 1:, :2] = states[..., :2]
    poses[:, 1:, 2] = np.arctan2(states[..., 3], states[..., 2])
    times_us = np.zeros(poses.shape[:2], dtype=np.int64)
    times_us[:, 1:] = np.rint(np.clip(np.nan_to_num(times, nan=-1.0), -1.0, 1e6) * 1e6)
    first = (times_us[:, 1] <= 0).astype(np.int64)
    failures = _complaints(states, times, times_us[:, 1:])
    return Trajectories(poses, times_us, first, failures)


def followed_trajectories(plan: Plan, worlds: int) -> Trajectories:
    """What the controller follows: the plan's reference if it has one, else the plan."""
    if plan.reference is not None:
        plan = replace(plan, trajectory=plan.reference)
    return trajectories_from_plan(plan, worlds)


def states_on_grid(trajectories: Trajectories, b: int) -> np.ndarray:
    """Trajectory b as (H, 4) x, y, cos, sin, float32: the states 0.1, 0.2, ... s from now."""
    first = int(trajectories.first[b])
    times, poses = trajectories.times_us[b, first:], trajectories.poses[b, first:]
    even = np.zeros((int((times[-1] - times[0]) // DT_US) + 1, 3))
    resample(times, poses, len(times), even)
    heading = even[1:, 2]
    return np.column_stack((even[1:, :2], np.cos(heading), np.sin(heading))).astype(np.float32)


def _plan_arrays(plan: Plan, worlds: int) -> tuple[np.ndarray, np.ndarray]:
    """states (B, H, 4) and times (B, H), float64."""
    if not isinstance(plan, Plan):
        raise PlanError(f"the planner returned {type(plan).__name__}, expected a Plan")
    trajectory = plan.trajectory
    if not isinstance(trajectory, torch.Tensor) or not trajectory.is_floating_point():
        raise PlanError("the plan's trajectory is no tensor of floats")
    shape = tuple(trajectory.shape)
    if len(shape) != 3 or shape[0] != worlds or shape[1] < 1 or shape[2] != 4:
        raise PlanError(f"the plan's trajectory has shape {shape}, expected ({worlds}, H, 4)")
    if plan.times is not None and tuple(plan.times.shape) != shape[:2]:
        raise PlanError(f"the plan's times have shape {tuple(plan.times.shape)}, expected {shape[:2]}")
    if plan.pressure is not None and (plan.pressure.ndim != 2 or len(plan.pressure) != worlds):
        raise PlanError(f"the plan's pressure has shape {tuple(plan.pressure.shape)}, expected ({worlds}, M)")
    return trajectory.detach().cpu().double().numpy(), plan.time_grid().detach().cpu().numpy()


def _complaints(states: np.ndarray, times: np.ndarray, times_us: np.ndarray) -> tuple[str | None, ...]:
    """Why plans (B, H, 4) with times (B, H) cannot be followed, world by world; None where one can."""
    directed = (np.abs(states[..., 2]) > 1e-6) | (np.abs(states[..., 3]) > 1e-6)
    rising = (times_us[:, 0] >= 0) & (times_us[:, 1:] > times_us[:, :-1]).all(1)
    long_enough = (times_us[:, -1] >= DT_US) & (times_us[:, -1] <= LONGEST_US)
    out: list[str | None] = [None] * len(states)
    good = directed.all(1) & rising & long_enough
    if good.all() and not size_fault(states, REACH):  # times that rise to a known end are finite
        return tuple(out)
    finite = np.isfinite(states).all(-1) & np.isfinite(times)
    near = ~(np.abs(states).max(-1) > REACH)
    for b in np.flatnonzero(~(finite.all(1) & near.all(1) & good)):
        if not finite[b].all():
            out[b] = f"the plan holds a value that is not finite at state {int(np.argmin(finite[b]))}"
        elif not near[b].all():
            out[b] = f"the plan goes further than {REACH:g} m at state {int(np.argmin(near[b]))}"
        elif not directed[b].all():
            out[b] = f"the plan has a direction of length 0 at state {int(np.argmin(directed[b]))}"
        elif not rising[b]:
            out[b] = "the plan's times do not increase from now on"
        else:
            out[b] = f"the plan ends {times[b, -1]:.6g} s from now, expected 0.1 to {LONGEST_US / 1e6:.0f} s"
    return tuple(out)


def drive(ego: np.ndarray, trajectories: Trajectories, dt: np.ndarray, controller: str = "lqr") -> np.ndarray:
    """Ego states (B, 11), dt (B,) seconds -> ego states (B, 11) after dt, by "lqr" or "perfect" tracking."""
    t = trajectories
    return _drive(np.ascontiguousarray(ego), t.poses, t.times_us, t.first, dt, controller == "perfect")


@njit(cache=True, nogil=True)
def _drive(
    ego: np.ndarray, poses: np.ndarray, times_us: np.ndarray, first: np.ndarray, dt: np.ndarray, perfect: bool
) -> np.ndarray:
    out = np.zeros_like(ego)
    work = np.zeros((8, scratch_width(times_us)))
    origin = np.zeros(3)
    for b in range(len(ego)):
        times, states = times_us[b, first[b] :], poses[b, first[b] :]
        if perfect:
            _take_state(ego[b], times, states, dt[b], work, out[b])
        else:
            accel, rate = track(origin, ego[b, VX], ego[b, STEERING], 0, times, states, len(times), work)
            bicycle_step(ego[b], accel, rate, dt[b], out[b])
    return out


@njit(cache=True, nogil=True)
def scratch_width(times_us: np.ndarray) -> int:
    """Columns of the scratch memory that `track` needs for trajectories with times (B, P)."""
    return times_us.max() // DT_US + 2


@njit(cache=True, nogil=True)
def _take_state(
    ego: np.ndarray,
    times_us: np.ndarray,
    poses: np.ndarray,
    dt: float,
    work: np.ndarray,
    out: np.ndarray,
) -> None:
    """Put the ego (11,) on its trajectory at dt; speed and yaw rate are those that explain the trajectory best."""
    even, speeds, curvatures = work[:3].reshape(-1, 3), work[3], work[4]
    count = len(times_us)
    total = resample(times_us, poses, count, even)
    fit_speeds(even, total, work[5:8], speeds)
    fit_curvatures(even, speeds, total, work[5:8], curvatures)
    step = dt * 1e6 / DT_US
    speed = profile_at(step, speeds, total - 1)
    bend = profile_at(step, curvatures, total - 1)
    x, y, turned = pose_at(dt * 1e6, times_us, poses, count)
    c, s = math.cos(ego[HEADING]), math.sin(ego[HEADING])
    out[0], out[1] = ego[0] + c * x - s * y, ego[1] + s * x + c * y
    out[HEADING] = (ego[HEADING] + turned + math.pi) % (2.0 * math.pi) - math.pi
    out[VX], out[VY] = speed, 0.0
    out[AX] = (speed - ego[VX]) / dt
    out[YAW_RATE] = speed * bend
    out[YAW_ACCEL] = (out[YAW_RATE] - ego[YAW_RATE]) / dt
    out[STEERING] = math.atan(WHEEL_BASE * bend)
    out[STEERING_RATE] = (out[STEERING] - ego[STEERING]) / dt
