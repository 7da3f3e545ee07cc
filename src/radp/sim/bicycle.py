"""The kinematic bicycle of nuPlan's two-stage controller, and the motion of the box centre as nuPlan reports it."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from radp.geometry.kernels import wrap_angle
from radp.scenario.scenario import Ego
from radp.scenario.vehicle import PACIFICA

MAX_STEERING = math.pi / 3
ACCEL_LAG, STEERING_LAG = 0.2, 0.05  # s, first order
WHEEL_BASE = PACIFICA.wheel_base
X, Y, HEADING, VX, VY, AX, AY = (int(column) for column in Ego if column <= Ego.AY)
YAW_RATE, YAW_ACCEL, STEERING, STEERING_RATE = (int(column) for column in Ego if column > Ego.AY)


@njit(cache=True, nogil=True)
def bicycle_step(state: np.ndarray, accel: float, steering_rate: float, dt: float, out: np.ndarray) -> None:
    """One Euler step of dt seconds from an ego state (11,) under a command -> out (11,); may be the same array.

    Pose and heading move with the old speed and the old steering angle; the command arrives through two lags.
    """
    x, y, heading, speed, steering = state[X], state[Y], state[HEADING], state[VX], state[STEERING]
    real_accel = state[AX] + dt / (dt + ACCEL_LAG) * (accel - state[AX])
    real_rate = steering_rate * dt / (dt + STEERING_LAG)
    new_speed = speed + real_accel * dt
    new_steering = min(MAX_STEERING, max(-MAX_STEERING, steering + real_rate * dt))
    yaw_rate = new_speed * math.tan(new_steering) / WHEEL_BASE
    out[YAW_ACCEL] = (yaw_rate - state[YAW_RATE]) / dt
    out[X] = x + speed * math.cos(heading) * dt
    out[Y] = y + speed * math.sin(heading) * dt
    out[HEADING] = wrap_angle(heading + speed * math.tan(steering) / WHEEL_BASE * dt)
    out[VX], out[VY] = new_speed, 0.0
    out[AX], out[AY] = real_accel, 0.0
    out[YAW_RATE] = yaw_rate
    out[STEERING], out[STEERING_RATE] = new_steering, real_rate
