"""A nudged planner: plans go down the gradient by no more than asked, and only where the rule presses."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from radp.attribution.nudge import NudgedPlanner, step_along
from radp.attribution.online import ExplainedPlanner
from radp.planners import load_planner
from radp.sim.simulate import simulate
from radp.sources.synthetic import make_scenario


def straight(batch: int = 2) -> torch.Tensor:
    plan = torch.zeros(batch, 80, 4)
    plan[..., 0], plan[..., 2] = torch.arange(1, 81) * 0.8, 1.0
    return plan


def test_a_step_is_as_long_as_asked_smooth_and_with_headings_of_length_one():
    direction = torch.zeros(2, 80, 4)
    direction[0, 40, 1] = 5.0  # one step of the first plan wants to go left
    moved = step_along(straight(), direction, 0.3)
    shift = moved - straight()
    assert shift[0, 40, 1] == pytest.approx(0.3) and shift[0, :, 1].min() >= 0 and 0.1 < shift[0, 35, 1] < 0.3
    assert torch.equal(moved[1], straight()[1])
    torch.testing.assert_close(moved[..., 2:].norm(dim=-1), torch.ones(2, 80))


def test_a_step_lowers_a_quadratic_cost_and_the_opposite_raises_it():
    draw = torch.Generator().manual_seed(0)
    target = straight() + 0.5 * torch.randn(2, 80, 4, generator=draw)
    plan = straight()
    gradient = 2 * (plan - target)
    gradient[..., 2:] = 0
    down, up = step_along(plan, -gradient, 0.05), step_along(plan, -gradient, -0.05)
    cost = [((p - target)[..., :2] ** 2).sum((1, 2)) for p in (down, plan, up)]
    assert (cost[0] < cost[1]).all() and (cost[1] < cost[2]).all()


def test_nothing_is_moved_where_nothing_presses():
    scenario = [make_scenario(0, agents=4, turn="straight", frames=25)]
    plain = next(iter(simulate(load_planner("idm"), scenario, "nonreactive", keep_plans=True)))
    calm = NudgedPlanner(load_planner("idm"), "goal", threshold=1e9, size=0.3)
    np.testing.assert_array_equal(next(iter(simulate(calm, scenario, "nonreactive"))).ego, plain.ego)


def test_plans_are_moved_where_the_rule_presses():
    scenario = [make_scenario(0, agents=4, turn="straight", frames=25)]
    plain = next(iter(simulate(ExplainedPlanner(load_planner("idm")), scenario, "nonreactive", keep_plans=True)))
    rule = int(np.argmax((plain.exact_pressures > 0).sum(0)))
    name = plain.rules[rule]
    nudged = NudgedPlanner(load_planner("idm"), name, threshold=0.0, size=0.3)
    again = next(iter(simulate(nudged, scenario, "nonreactive", keep_plans=True)))
    first = int(np.argmax(plain.exact_pressures[:, rule] > 0))
    np.testing.assert_array_equal(again.plans[:first], plain.plans[:first])
    assert 0.01 < np.abs(again.plans[first] - plain.plans[first]).max() <= 0.31


def test_an_unknown_rule_is_refused():
    with pytest.raises(ValueError, match="no rule 'luck'"):
        NudgedPlanner(load_planner("idm"), "luck", 0.0, 0.3)
