"""The LQR tracker of nuPlan's two-stage controller, as compiled kernels in float64.

The tracker first finds the speeds and curvatures that explain a trajectory best, then asks for one acceleration and one
steering rate. The published form fits v0 and accelerations (k0 and curvature rates) with a pseudo-inverse. With the
speeds and curvatures themselves as unknowns the same least squares have banded normal equations:

    speeds      v + D2'D2 v * jerk_penalty / dt^4 = p / dt           p_k: displacement along the heading
    curvatures  sum_j (dh_j - v_j dt k_j)^2 + rate_penalty/dt^2 * sum (k_j+1 - k_j)^2 + start_penalty k_0^2  -> min

Both systems are positive definite, so the solution is the pseudo-inverse's, in O(M).
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from radp.geometry.kernels import wrap_angle
from radp.scenario import DT, DT_US, PACIFICA

HORIZON = 10  # steps that the command looks ahead
SPEED_WEIGHT = 10.0
LATERAL_WEIGHT, HEADING_WEIGHT = 1.0, 10.0  # the steering angle has weight 0, each command weight 1
JERK_PENALTY, CURVATURE_RATE_PENALTY, CURVATURE_PENALTY = 1e-4, 1e-2, 1e-10
STOPPING_GAIN, STOPPING_SPEED = 0.5, 0.2
WHEEL_BASE = PACIFICA.wheel_base


@njit(cache=True, nogil=True)
def pose_at(time_us: float, times_us: np.ndarray, poses: np.ndarray, count: int) -> tuple[float, float, float]:
    """Pose at a time, linear between the first `count` rows of poses (P, 3), the heading on the shorter arc.

    times_us (P,) int64 microseconds, increasing; held constant outside.
    """
    if time_us <= times_us[0]:
        return poses[0, 0], poses[0, 1], poses[0, 2]
    if time_us >= times_us[count - 1]:
        return poses[count - 1, 0], poses[count - 1, 1], poses[count - 1, 2]
    lo, hi = 0, count - 1
    while hi - lo > 1:
        mid = (lo + hi) // 2
        if times_us[mid] <= time_us:
            lo = mid
        else:
            hi = mid
    return _between(time_us, lo, times_us, poses)


@njit(cache=True, nogil=True, inline="always")
def _between(time_us: float, i: int, times_us: np.ndarray, poses: np.ndarray) -> tuple[float, float, float]:
    share = (time_us - times_us[i]) / (times_us[i + 1] - times_us[i])
    return (
        poses[i, 0] + share * (poses[i + 1, 0] - poses[i, 0]),
        poses[i, 1] + share * (poses[i + 1, 1] - poses[i, 1]),
        poses[i, 2] + share * wrap_angle(poses[i + 1, 2] - poses[i, 2]),
    )


@njit(cache=True, nogil=True)
def resample(times_us: np.ndarray, poses: np.ndarray, count: int, out: np.ndarray) -> int:
    """Poses every 0.1 s from the trajectory's start to its end (included when on the grid) -> rows written to `out`."""
    total = (times_us[count - 1] - times_us[0]) // DT_US + 1
    i = 0
    for k in range(total):
        now = times_us[0] + k * DT_US
        while i < count - 2 and times_us[i + 1] <= now:
            i += 1
        out[k, 0], out[k, 1], out[k, 2] = _between(now, i, times_us, poses)
    return total


@njit(cache=True, nogil=True)
def _factor_speed_system(size: int, near: np.ndarray, far: np.ndarray, pivot: np.ndarray) -> None:
    """L D L' of the pentadiagonal matrix 1 + D2'D2 * jerk_penalty / dt^4: L[k, k-1], L[k, k-2] and D[k]."""
    weight = JERK_PENALTY / DT**4
    for k in range(size):
        # v_k is the first, middle or last member of the second differences that hold it: 1, -2, 1.
        first, middle, last = k <= size - 3, 1 <= k <= size - 2, k >= 2
        pivot[k] = 1.0 + weight * (1.0 * first + 4.0 * middle + 1.0 * last)
        near[k] = far[k] = 0.0
        if k >= 2:
            far[k] = weight / pivot[k - 2]
            near[k] -= far[k] * near[k - 1] * pivot[k - 2]
            pivot[k] -= far[k] * far[k] * pivot[k - 2]
        if k >= 1:
            near[k] = (near[k] - 2.0 * weight * (1.0 * middle + 1.0 * last)) / pivot[k - 1]
            pivot[k] -= near[k] * near[k] * pivot[k - 1]


@njit(cache=True, nogil=True)
def fit_speeds(poses: np.ndarray, count: int, work: np.ndarray, speeds: np.ndarray) -> None:
    """Speed of each of the M = count - 1 displacements of poses (P, 3) that lie 0.1 s apart -> speeds[:M].

    work (3, >= M) is scratch memory.
    """
    _factor_speed_system(count - 1, work[0], work[1], work[2])
    solve_speeds(poses, count, work, speeds)


@njit(cache=True, nogil=True)
def solve_speeds(poses: np.ndarray, count: int, work: np.ndarray, speeds: np.ndarray) -> None:
    """`fit_speeds` once its matrix is factored: work holds L[k, k-1], L[k, k-2] and D[k]."""
    size = count - 1
    near, far, pivot = work[0], work[1], work[2]
    for k in range(size):
        dx, dy, heading = poses[k + 1, 0] - poses[k, 0], poses[k + 1, 1] - poses[k, 1], poses[k, 2]
        speeds[k] = (dx * math.cos(heading) + dy * math.sin(heading)) / DT
        if k >= 1:
            speeds[k] -= near[k] * speeds[k - 1]
        if k >= 2:
            speeds[k] -= far[k] * speeds[k - 2]
    for k in range(size - 1, -1, -1):
        speeds[k] /= pivot[k]
        if k + 1 < size:
            speeds[k] -= near[k + 1] * speeds[k + 1]
        if k + 2 < size:
            speeds[k] -= far[k + 2] * speeds[k + 2]


@njit(cache=True, nogil=True)
def fit_curvatures(poses: np.ndarray, speeds: np.ndarray, count: int, work: np.ndarray, curvatures: np.ndarray) -> None:
    """Curvature along each of the M = count - 1 displacements, given their speeds -> curvatures[:M].

    Eliminated from the far end as a chain of springs, where stiffnesses only add up: exact at standstill too, when
    all that holds the solution is the tiny penalty on the first curvature. work (2, >= M) is scratch memory.
    """
    size = count - 1
    link = CURVATURE_RATE_PENALTY / DT**2
    stiffness, force = work[0], work[1]
    for j in range(size - 1, -1, -1):
        arc = speeds[j] * DT
        stiffness[j] = arc * arc
        force[j] = arc * wrap_angle(poses[j + 1, 2] - poses[j, 2])
        if j + 1 < size:
            share = link / (link + stiffness[j + 1])
            stiffness[j] += stiffness[j + 1] * share
            force[j] += force[j + 1] * share
    curvatures[0] = force[0] / (stiffness[0] + CURVATURE_PENALTY)
    for j in range(1, size):
        curvatures[j] = (force[j] + link * curvatures[j - 1]) / (link + stiffness[j])


@njit(cache=True, nogil=True, inline="always")
def profile_at(step: float, profile: np.ndarray, size: int) -> float:
    """Value of a profile at `step` (in units of 0.1 s), linear between samples and held constant outside."""
    if step <= 0.0:
        return profile[0]
    if step >= size - 1:
        return profile[size - 1]
    i = int(step)
    return profile[i] + (step - i) * (profile[i + 1] - profile[i])


@njit(cache=True, nogil=True)
def lqr_command(
    lateral_error: float,
    heading_error: float,
    steering: float,
    speed: float,
    step: float,
    speeds: np.ndarray,
    curvatures: np.ndarray,
    size: int,
) -> tuple[float, float]:
    """Acceleration [m/s2] and steering rate [rad/s] for the present errors against the trajectory.

    `step`: time since the trajectory's start in units of 0.1 s; speeds and curvatures hold `size` fitted samples.
    """
    target = profile_at(step + HORIZON, speeds, size)
    if target <= STOPPING_SPEED and speed <= STOPPING_SPEED:
        return -STOPPING_GAIN * (speed - target), 0.0
    reach = HORIZON * DT  # change of speed by a unit of acceleration
    accel = -reach * SPEED_WEIGHT / (reach * reach * SPEED_WEIGHT + 1.0) * (speed - target)
    # Errors at the horizon without steering (e, psi, delta), and what a unit of steering rate adds to them.
    e, psi, delta = lateral_error, heading_error, steering
    add_e = add_psi = add_delta = 0.0
    for i in range(HORIZON):
        arc = (speed + accel * DT * i) * DT
        e, psi = e + arc * psi, psi + arc * (delta / WHEEL_BASE - profile_at(step + i, curvatures, size))
        add_e, add_psi, add_delta = add_e + arc * add_psi, add_psi + arc * add_delta / WHEEL_BASE, add_delta + DT
    gain = LATERAL_WEIGHT * add_e * add_e + HEADING_WEIGHT * add_psi * add_psi + 1.0
    rate = -(LATERAL_WEIGHT * add_e * e + HEADING_WEIGHT * add_psi * wrap_angle(psi)) / gain
    return accel, rate


@njit(cache=True, nogil=True)
def lateral_and_heading_error(
    x: float, y: float, heading: float, ref_x: float, ref_y: float, ref_heading: float
) -> tuple[float, float]:
    """Offset to the left of a reference pose [m] and heading minus its heading [rad]."""
    lateral = -(x - ref_x) * math.sin(ref_heading) + (y - ref_y) * math.cos(ref_heading)
    return lateral, wrap_angle(heading - ref_heading)


@njit(cache=True, nogil=True)
def track(
    pose: np.ndarray,
    speed: float,
    steering: float,
    now_us: int,
    times_us: np.ndarray,
    poses: np.ndarray,
    count: int,
    work: np.ndarray,
) -> tuple[float, float]:
    """The command at `now_us` for a vehicle at pose (3,) that follows the first `count` states of a trajectory.

    times_us (P,) int64, poses (P, 3) in the frame of `pose`; work (8, W): scratch, W > duration / 0.1 s.
    """
    even = work[:3].reshape(-1, 3)
    total = resample(times_us, poses, count, even)
    speeds, curvatures, scratch = work[3], work[4], work[5:8]
    fit_speeds(even, total, scratch, speeds)
    fit_curvatures(even, speeds, total, scratch, curvatures)
    ref_x, ref_y, ref_heading = pose_at(now_us, times_us, poses, count)
    lateral, turned = lateral_and_heading_error(pose[0], pose[1], pose[2], ref_x, ref_y, ref_heading)
    step = (now_us - times_us[0]) / DT_US
    return lqr_command(lateral, turned, steering, speed, step, speeds, curvatures, total - 1)
