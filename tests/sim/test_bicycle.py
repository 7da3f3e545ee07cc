"""One step of the bicycle by hand, and its limits."""

from __future__ import annotations

import math

import numpy as np
import pytest

from radp.scenario import Ego
from radp.sim.bicycle import MAX_STEERING, bicycle_step


def state(**columns: float) -> np.ndarray:
    out = np.zeros(len(Ego))
    for name, value in columns.items():
        out[Ego[name]] = value
    return out


def step(before: np.ndarray, accel: float, rate: float, dt: float = 0.1) -> np.ndarray:
    out = np.full(len(Ego), np.nan)
    bicycle_step(before, accel, rate, dt, out)
    return out


def test_one_step_by_hand() -> None:
    before = state(X=10.0, Y=-3.0, HEADING=0.5, VX=6.0, VY=0.4, AX=0.3, AY=2.0, YAW_RATE=0.1, STEERING=0.2)
    after = step(before, 1.2, 0.3)
    accel = 0.3 + 0.1 / 0.3 * (1.2 - 0.3)
    rate = 0.3 * 0.1 / 0.15
    speed, steering = 6.0 + 0.1 * accel, 0.2 + 0.1 * rate
    yaw_rate = speed * math.tan(steering) / 3.089
    expected = state(
        X=10.0 + 0.6 * math.cos(0.5), Y=-3.0 + 0.6 * math.sin(0.5), HEADING=0.5 + 0.6 * math.tan(0.2) / 3.089,
        VX=speed, AX=accel, YAW_RATE=yaw_rate, YAW_ACCEL=(yaw_rate - 0.1) / 0.1, STEERING=steering,
        STEERING_RATE=rate,
    )  # fmt: skip
    np.testing.assert_allclose(after, expected, atol=1e-12)


def test_step_may_write_over_its_input() -> None:
    before = state(X=1.0, HEADING=1.0, VX=5.0, STEERING=0.1, YAW_RATE=0.3)
    expected = step(before, -1.0, 0.2)
    bicycle_step(before, -1.0, 0.2, 0.1, before)
    np.testing.assert_array_equal(before, expected)


@pytest.mark.parametrize("sign", (-1.0, 1.0))
def test_steering_saturates(sign: float) -> None:
    after = step(state(VX=3.0, STEERING=sign * 1.0), 0.0, sign * 50.0)
    assert after[Ego.STEERING] == sign * MAX_STEERING


def test_heading_is_wrapped_and_speed_may_turn_negative() -> None:
    after = step(state(HEADING=3.14, VX=8.0, STEERING=0.5), 0.0, 0.0)
    assert -math.pi <= after[Ego.HEADING] < -3.0
    assert step(state(VX=0.01), -5.0, 0.0)[Ego.VX] < 0.0
