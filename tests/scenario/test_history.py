"""History driven backwards: straight, on an arc, and only for those who were there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from radp.scenario import Ego
from radp.scenario.history import ego_before, with_history
from tests.small_scenarios import FRAMES, small_scenario


def test_missing_history_is_driven_backwards() -> None:
    scenario = small_scenario()
    longer = with_history(scenario)
    longer.validate()
    assert (longer.start, longer.frames, longer.tags["backfilled"]) == (20, scenario.frames, str(20 - scenario.start))
    missing = 20 - scenario.start
    assert np.allclose(np.diff(longer.time_us[: missing + 1]), 100_000)
    assert np.allclose(np.diff(longer.ego[: missing + 1, Ego.X]), 1.0) and np.allclose(
        longer.ego[:missing, Ego.Y], -2.0
    )
    assert np.array_equal(longer.ego[missing:], scenario.ego)
    assert np.array_equal(longer.lights.state[missing:], scenario.lights.state)
    assert not longer.tracks.valid[0, :missing].any()  # the car appears later
    assert longer.tracks.valid[1, :missing].all() and np.allclose(longer.tracks.state[1, :missing, 0], 30.0)
    assert not longer.lights.state[:missing].any()


def test_enough_history_is_left_alone() -> None:
    scenario = replace(small_scenario(), start=FRAMES - 2)
    assert with_history(scenario, FRAMES - 2) is scenario


def test_a_turning_ego_comes_from_its_circle() -> None:
    """10 m/s and 0.5 rad/s: a circle of 20 m whose centre is to the left."""
    state = np.zeros(11)
    state[Ego.VX], state[Ego.YAW_RATE] = 10.0, 0.5
    past = ego_before(state, np.array([-2.0, -1.0]))
    assert np.allclose(np.hypot(past[:, 0], past[:, 1] - 20.0), 20.0)
    assert np.allclose(past[:, Ego.HEADING], [-1.0, -0.5]) and (past[:, Ego.X] < 0).all()
