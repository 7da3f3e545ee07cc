"""What must hold for every hinge: silent well inside the safe set, growing with the violation, finite everywhere."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from radp.rules import RuleContext, default_rules, rule_costs, rule_gradients
from radp.rules.penalty import Term, mean_penalties, penalty
from tests.rules.hand_made import curved_plan, scene, straight_plan, straight_route

NAMES = [rule.name for rule in default_rules()]


def cost(name: str, plan: torch.Tensor, context: RuleContext) -> float:
    return float(rule_costs(plan, context)[0, NAMES.index(name)])


@given(st.floats(0.01, 10.0), st.floats(2.0, 50.0))
def test_penalty_is_silent_two_sigma_inside(sigma, margin):
    assert float(penalty(torch.tensor(-margin * sigma, dtype=torch.float64), sigma)) < 1e-6


@given(st.floats(0.01, 10.0), st.floats(-5.0, 20.0), st.floats(0.001, 5.0))
def test_penalty_grows(sigma, z, more):
    a, b = (float(penalty(torch.tensor(v, dtype=torch.float64), sigma)) for v in (z * sigma, (z + more) * sigma))
    assert b > a >= 0


@given(st.lists(st.tuples(st.floats(-5, 5), st.booleans()), min_size=1, max_size=20))
def test_mean_penalty_counts_valid_elements_only(elements):
    z = torch.tensor([[v for v, _ in elements]], dtype=torch.float64)
    valid = torch.tensor([[m for _, m in elements]])
    kept = [float(penalty(torch.tensor(v, dtype=torch.float64), 0.5)) for v, m in elements if m]
    expected = sum(kept) / len(kept) if kept else 0.0
    assert float(mean_penalties([Term(z, 0.5, valid)])) == pytest.approx(expected, rel=1e-9)


@settings(deadline=None, max_examples=25)
@given(st.floats(1.0, 14.0), st.floats(0.2, 6.0))
def test_speed_cost_grows_with_speed(limit, more):
    context = RuleContext.from_scene(scene(straight_route(pieces=6), limit=limit))
    assert cost("speed", straight_plan(limit + more), context) > cost("speed", straight_plan(limit), context)
    assert cost("speed", straight_plan(max(0.0, limit - 3.0)), context) < 1e-6 or limit < 2.0


@settings(deadline=None, max_examples=25)
@given(st.floats(0.65, 2.5), st.floats(0.1, 2.0), st.sampled_from([-1.0, 1.0]))
def test_lane_cost_grows_on_both_sides(y, more, side):
    context = RuleContext.from_scene(scene(straight_route()))
    assert cost("lane", straight_plan(y=side * (y + more)), context) > cost("lane", straight_plan(y=side * y), context)


@settings(deadline=None, max_examples=25)
@given(st.floats(6.5, 9.0), st.floats(0.2, 4.0))
def test_kinematic_cost_grows_with_acceleration(accel, more):
    context = RuleContext.from_scene(scene(straight_route(), speed=5.0))
    plans = (straight_plan(5.0, accel), straight_plan(5.0, accel + more))
    low, high = (cost("kinematics", plan, context) for plan in plans)
    assert high > low > 0


@settings(deadline=None, max_examples=25)
@given(st.floats(12.0, 30.0), st.floats(0.5, 8.0))
def test_collision_cost_grows_when_the_obstacle_comes_nearer(x, nearer):
    def at(place: float) -> float:
        context = RuleContext.from_scene(scene(straight_route(), agents=[(place, 0.0, 0.0, 0.0, 4.5)], speed=2.0))
        return cost("collision", straight_plan(2.0, steps=20), context)

    assert at(x - nearer) >= at(x)


@settings(deadline=None, max_examples=25)
@given(st.floats(0.0, 8.0), st.floats(0.5, 4.0))
def test_goal_cost_grows_with_the_progress_that_is_missing(speed, slower):
    context = RuleContext.from_scene(scene(straight_route(pieces=6), speed=10.0))
    assert cost("goal", straight_plan(max(0.0, speed - slower)), context) >= cost("goal", straight_plan(speed), context)


@settings(deadline=None, max_examples=30)
@given(
    st.floats(0.0, 20.0), st.floats(-0.3, 0.3), st.floats(-20, 40), st.floats(-5, 5), st.floats(-3.2, 3.2),
    st.floats(0, 20),
)  # fmt: skip
def test_costs_and_gradients_are_finite_and_not_negative(speed, curvature, x, y, heading, agent_speed):
    context = RuleContext.from_scene(scene(straight_route(lanes=2), agents=[(x, y, heading, agent_speed, 4.5)]))
    plan = curved_plan(speed, curvature) if abs(curvature) > 1e-3 else straight_plan(speed)
    costs, gradients = rule_gradients(plan, context)
    assert torch.isfinite(costs).all() and torch.isfinite(gradients).all() and (costs >= 0).all()


def test_scenes_of_a_batch_do_not_mix():
    from radp.scene.scene import Scene

    scenes = [scene(straight_route(), agents=[(15.0 + 5 * i, 0.0, 0.0, 1.0, 4.5)], limit=7.0 + i) for i in range(4)]
    plans = torch.cat([straight_plan(6.0 + i) for i in range(4)])
    together = rule_gradients(plans, RuleContext.from_scene(Scene.cat(scenes)))
    for i, one in enumerate(scenes):
        alone = rule_gradients(plans[i : i + 1], RuleContext.from_scene(one))
        torch.testing.assert_close(together[0][i : i + 1], alone[0])
        torch.testing.assert_close(together[1][i : i + 1], alone[1])
