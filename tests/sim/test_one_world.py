"""Planners that see one world at a time drive like those that see all of them."""

from __future__ import annotations

import numpy as np
import pytest

from radp.planners import load_planner
from radp.scenario import Ego
from radp.sim.one_world import OneWorld, OneWorldPlanner
from radp.sim.simulate import simulate
from tests.sim.made_worlds import short_scenarios


class Straight(OneWorldPlanner):
    name = "straight"

    def plan_one(self, now: OneWorld) -> np.ndarray:
        x, y, heading, speed = now.ego[-1, [Ego.X, Ego.Y, Ego.HEADING, Ego.VX]]
        way = speed * 0.1 * np.arange(1, 81)
        return np.stack((x + way * np.cos(heading), y + way * np.sin(heading), np.full(80, heading)), -1)


class Wrong(OneWorldPlanner):
    def plan_one(self, now: OneWorld) -> np.ndarray:
        return np.zeros(3) if now.step == 0 else np.zeros((5, 3))


def test_it_drives_as_the_batched_one_does() -> None:
    scenarios = short_scenarios(3)
    mine = list(simulate(Straight(), scenarios, "nonreactive"))
    theirs = list(simulate(load_planner("constant_velocity"), scenarios, "nonreactive"))
    for a, b in zip(mine, theirs):
        assert a.failure is None
        np.testing.assert_allclose(a.ego[:, :2], b.ego[:, :2], atol=0.05)


def test_a_wrong_shape_is_one_sentence() -> None:
    (failed,) = simulate(Wrong(), short_scenarios(1), "nonreactive")
    assert failed.failure == "step 0: the plan of one world has shape (3,), expected (H, 3)"


@pytest.mark.parametrize("text", [repr, lambda thing: thing._repr_html_()])
def test_short_texts(text: object) -> None:
    (rollout,) = simulate(Straight(), short_scenarios(1), "nonreactive")
    for thing in (rollout, rollout.scenario):
        said = text(thing)  # type: ignore[operator]
        assert rollout.scenario.token in said and len(said) < 1500
