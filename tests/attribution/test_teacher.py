"""The teacher against finite differences, and its parts against the whole."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from radp.attribution import Calibration, attribute
from radp.rules import RuleContext, default_rules
from radp.rules.collision import Collision
from radp.rules.penalty import penalty
from tests.rules.hand_made import curved_plan, scene, straight_plan, straight_route

NAMES = [rule.name for rule in default_rules()]


def example():
    agents = [(22.0, 0.4, 0.0, 2.0, 4.5), (30.0, -1.0, 0.0, 1.0, 4.5)]
    context = RuleContext.from_scene(scene(straight_route(lanes=2), agents=agents, speed=8.0, limit=8.0))
    plan = curved_plan(8.3, 0.01)
    plan[0, :, 1] += 0.05 * torch.sin(torch.arange(80, dtype=torch.float64))
    return plan, context


@pytest.mark.parametrize("rule", [name for name in NAMES if name != "collision"])
def test_norms_against_finite_differences(rule):
    plan, context = example()
    i, step = NAMES.index(rule), 1e-6
    bound = context.bind(plan)
    gradient = torch.zeros_like(plan)
    for index in np.ndindex(*plan.shape):
        values = []
        for sign in (1, -1):
            moved = plan.clone()
            moved[index] += sign * step
            values.append(float(default_rules()[i].cost(moved, bound)))
        gradient[index] = (values[0] - values[1]) / (2 * step)
    expected = float(gradient.square().mean().sqrt())
    assert float(attribute(plan, context).gradient_norm[0, i]) == pytest.approx(expected, rel=1e-4, abs=1e-8)


def test_parts_make_the_whole():
    plan, context = example()
    why = attribute(plan, context)
    torch.testing.assert_close(why.per_step.square().mean(-1).sqrt(), why.gradient_norm)
    torch.testing.assert_close(why.direction.square().mean((2, 3)).sqrt(), why.gradient_norm)
    assert float(why.agent_share.sum()) == pytest.approx(1.0)
    assert why.agent_share[0, 0] > 0.9 * why.agent_share[0].max()
    assert why.rules == tuple(NAMES) and not why.calibrated


def test_a_step_along_the_direction_lowers_the_cost():
    plan, context = example()
    why = attribute(plan, context)
    for i, rule in enumerate(default_rules()):
        if why.gradient_norm[0, i] < 1e-9:
            continue
        unit = why.direction[:, i] / why.direction[:, i].norm()
        assert rule.cost(plan + 1e-3 * unit, context.bind(plan)) < why.cost[0, i]


def test_calibration_divides_and_compresses(tmp_path):
    plan, context = example()
    raw = attribute(plan, context)
    kappa = tuple(float(g) + 0.5 for g in raw.gradient_norm[0])
    calibration = Calibration(tuple(NAMES), kappa, samples=10)
    calibration.save(tmp_path)
    why = attribute(plan, context, calibration=Calibration.load(tmp_path))
    assert why.calibrated
    expected = [np.log1p(float(g) / (k + 1e-6)) for g, k in zip(raw.gradient_norm[0], kappa)]
    np.testing.assert_allclose(why.pressure[0].numpy(), expected)


def test_calibration_is_the_75th_percentile():
    values = np.random.default_rng(0).exponential(size=(1000, 6))
    calibration = Calibration.fit([values[:300], values[300:]])
    np.testing.assert_allclose(calibration.kappa, np.percentile(values, 75, axis=0))
    assert calibration.samples == 1000


def test_a_rule_that_is_mostly_silent_has_a_usual_level_all_the_same():
    draw = np.random.default_rng(0)
    loud = draw.exponential(size=1000) + 0.1
    quiet = np.where(draw.random(1000) < 0.1, loud, 1e-9)
    calibration = Calibration.fit([np.stack((loud, quiet, np.zeros(1000)), 1)], ["a", "b", "c"])
    assert calibration.kappa == pytest.approx((np.percentile(loud, 75), np.percentile(quiet[quiet > 1e-6], 75), 1.0))


def test_a_foreign_calibration_is_refused(tmp_path):
    plan, context = example()
    with pytest.raises(ValueError, match="calibration is for a, b"):
        attribute(plan, context, calibration=Calibration(("a", "b"), (1.0, 1.0), 5))
    (tmp_path / "calibration.json").write_text('{"rules": ["a"], "kappa": []}')
    with pytest.raises(ValueError, match=r"calibration\.json"):
        Calibration.load(tmp_path)


def test_nobody_near_means_no_share():
    why = attribute(straight_plan(), RuleContext.from_scene(scene(straight_route())))
    assert (why.agent_share == 0).all() and float(why.pressure[0, 0]) == 0.0


def test_collision_norm_against_finite_differences_with_its_weights_held():
    plan, context = example()
    rule, step = Collision(), 1e-6
    pairs = rule.pairs(plan, context)
    weights = rule.weights(pairs)
    gradient = torch.zeros_like(plan)
    for index in np.ndindex(*plan.shape):
        values = []
        for sign in (1, -1):
            moved = plan.clone()
            moved[index] += sign * step
            values.append(float((weights * penalty(rule.pairs(moved, context).violation, rule.scale)).sum()))
        gradient[index] = (values[0] - values[1]) / (2 * step)
    expected = float(gradient.square().mean().sqrt())
    assert expected > 0.01
    assert float(attribute(plan, context).gradient_norm[0, 0]) == pytest.approx(expected, rel=1e-4)
