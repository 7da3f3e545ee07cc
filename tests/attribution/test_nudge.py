"""A pushed planner: only where the rule presses, on for a while, then back without a jump."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from radp.attribution.nudge import NudgedPlanner, Push
from radp.attribution.online import ExplainedPlanner
from radp.planners import load_planner
from radp.sim.replay import observe_logs
from radp.sim.simulate import simulate
from radp.sources.synthetic import make_scenario


def test_nothing_is_moved_where_nothing_presses():
    scenario = [make_scenario(0, agents=4, turn="straight", frames=25)]
    plain = next(iter(simulate(load_planner("idm"), scenario, "nonreactive", keep_plans=True)))
    calm = NudgedPlanner(load_planner("idm"), "goal", threshold=1e9)
    np.testing.assert_array_equal(next(iter(simulate(calm, scenario, "nonreactive"))).ego, plain.ego)


@pytest.mark.parametrize("way", ["down", "up", "random"])
def test_plans_are_moved_where_the_rule_presses(way):
    scenario = [make_scenario(0, agents=4, turn="straight", frames=25)]
    plain = next(iter(simulate(ExplainedPlanner(load_planner("idm")), scenario, "nonreactive", keep_plans=True)))
    pressure = plain.exact_pressures[:, plain.rules.index("goal")]
    threshold = float(np.median(pressure))
    pushed = NudgedPlanner(load_planner("idm"), "goal", threshold, way)
    again = next(iter(simulate(pushed, scenario, "nonreactive", keep_plans=True)))
    assert again.failure is None
    first = int(np.argmax(pressure > threshold))
    np.testing.assert_array_equal(again.plans[:first], plain.plans[:first])
    assert 0.01 < np.abs(again.plans[first] - plain.plans[first]).max() < 70.0  # at most 2 m/s2 for 8 s
    twice = next(iter(simulate(pushed, scenario, "nonreactive", keep_plans=True)))
    np.testing.assert_array_equal(twice.plans, again.plans)  # memory ends with a drive, and random means drawn once


def test_a_push_goes_on_fades_and_ends():
    planner = NudgedPlanner(load_planner("constant_velocity"), "goal", threshold=1e9, window=0.4)
    scenario = make_scenario(0, agents=2, turn="straight", frames=25)
    planner.start([scenario])
    knots = torch.zeros(9, 2)
    knots[1:, 0] = 1.0
    planner._pushes = {scenario.token: Push(knots, 0, planner.window)}
    plain = load_planner("constant_velocity")
    felt = []
    for step in range(1, 16):
        now = observe_logs([scenario], step)
        shift = planner.plan(now).on_grid() - plain.plan(now).on_grid()
        felt.append(float(shift[0, 0, :2].norm()) / 0.01)  # of 0.1 s squared: the acceleration of the next step
    assert felt[:3] == pytest.approx([0.2, 0.3, 0.4], abs=0.03)  # on, as it began
    assert max(abs(np.diff(felt))) < 0.15  # no jump when it fades
    assert felt[-1] == 0.0 and planner._pushes == {}


def test_a_reference_is_pushed_with_its_plan_so_that_the_car_feels_it():
    class Referenced:
        """Constant velocity, with its own plan as what the controller follows."""

        name = "referenced"

        def plan(self, now):
            plan = load_planner("constant_velocity").plan(now)
            return replace(plan, reference=plan.trajectory.clone())

    scenario = [make_scenario(0, agents=2, turn="straight", frames=25)]
    with_one, without = (
        next(iter(simulate(NudgedPlanner(planner, "goal", -1.0, "up"), scenario, "nonreactive", keep_plans=True)))
        for planner in (Referenced(), load_planner("constant_velocity"))
    )
    np.testing.assert_allclose(with_one.ego, without.ego, atol=1e-6)
    calm = next(iter(simulate(Referenced(), scenario, "nonreactive")))
    assert np.abs(with_one.ego - calm.ego).max() > 0.1


def test_an_unknown_rule_is_refused():
    with pytest.raises(ValueError, match="no rule 'luck'"):
        NudgedPlanner(load_planner("idm"), "luck", 0.0)
