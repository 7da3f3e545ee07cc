"""Costs that are asked for after a drive are those that the teacher named while it was driven."""

from __future__ import annotations

import numpy as np
import pytest

import radp
from radp.attribution.afterwards import costs_of_drive
from radp.attribution.online import ExplainedPlanner
from radp.rules.sets import V2
from radp.sim.rollout import Rollout
from tests.sim.made_worlds import short_scenarios


@pytest.fixture(scope="module")
def taught() -> Rollout:
    planner = ExplainedPlanner(radp.load_planner("idm"), None, V2, False)
    (rollout,) = radp.simulate(planner, short_scenarios(1), agents="reactive", keep_plans=True)
    return rollout


def test_every_plan_costs_what_the_teacher_said(taught: Rollout) -> None:
    found = costs_of_drive(taught, V2)
    assert tuple(found) == tuple(taught.rules)
    online = np.asarray(taught.rule_costs, dtype=np.float64)
    after = np.stack(list(found.values()), -1)
    assert after.shape == online.shape and after.max() > 0.1
    np.testing.assert_allclose(after, online, rtol=1e-3, atol=1e-3)


def test_one_in_five_is_every_fifth_of_them(taught: Rollout) -> None:
    every, fifth = costs_of_drive(taught, V2), costs_of_drive(taught, V2, every=5)
    for name, costs in every.items():
        np.testing.assert_allclose(fifth[name], costs[::5], rtol=1e-4, atol=1e-4)


def test_a_drive_without_plans_has_no_costs() -> None:
    (rollout,) = radp.simulate(radp.load_planner("idm"), short_scenarios(1), agents="nonreactive")
    assert costs_of_drive(rollout, V2) == {}
