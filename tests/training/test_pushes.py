"""What heavier rules ask of a plan: pushes that halve a cost, go back for lighter ones, and let nobody be met."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from radp.model.chain import Known
from radp.model.rule_weights import conditioned
from radp.rules import RuleContext, rule_costs, rule_set
from radp.rules.contact import MARGIN, WITHIN, first_contact
from radp.rules.red_light import RedLight
from radp.runs.errors import BadInput
from radp.scene.scene import LaneColumn
from radp.training.align import check_way
from radp.training.anchored import AnchoredTask, StateBatch
from radp.training.pushes import MOST, give_way, pushes_of
from radp.training.settings import AlignConfig, AvoidConfig, LoopConfig, WeightingConfig
from tests.made_scenes import made_scene
from tests.planners.test_learned import SMALL, awake
from tests.rules.hand_made import scene, straight_plan, straight_route
from tests.training.test_align import OneScene

RULES = rule_set("v2")
NAMES = [rule.name for rule in RULES]
STEER = ("lane", "kinematics", "comfort")
BEHIND_A_CAR = scene(straight_route(), agents=[(35.0, 0.0, 0.0, 0.0, 4.5)], speed=8.0)
FREE = scene(straight_route(6), speed=8.0)


def weighed(**weights: float) -> torch.Tensor:
    return torch.tensor([[math.log(weights.get(name, 1.0)) for name in NAMES]], dtype=torch.float64)


def response(now, plan: torch.Tensor, **weights: float) -> torch.Tensor:
    contexts = [RuleContext.from_scene(now)]
    return give_way(plan, pushes_of(plan, contexts, RULES, STEER), weighed(**weights), contexts, RULES)


def cost(now, plan: torch.Tensor, rule: str) -> float:
    return float(rule_costs(plan, RuleContext.from_scene(now), RULES)[0, NAMES.index(rule)])


def meets(now, plan: torch.Tensor) -> bool:
    return bool(first_contact(plan, RuleContext.from_scene(now), MARGIN) <= WITHIN)


@pytest.mark.parametrize(("rule", "now", "plan"), [
    ("collision", BEHIND_A_CAR, straight_plan(speed=8.0)),
    ("goal", FREE, straight_plan(8.0, -0.5)),
    ("lane", FREE, straight_plan(8.0, y=1.2)),
])  # fmt: skip
def test_the_cost_of_a_rule_falls_as_its_weight_grows(rule: str, now, plan: torch.Tensor) -> None:
    costs = [cost(now, response(now, plan, **{rule: weight}), rule) for weight in (0.25, 0.5, 1.0, 2.0, 4.0)]
    assert all(a > b for a, b in pairwise(costs))
    assert costs[2] == pytest.approx(cost(now, plan, rule), rel=1e-3)  # the default asks for nothing


def test_a_rule_that_costs_nothing_asks_for_nothing() -> None:
    plan = straight_plan(speed=8.0)
    pushes = pushes_of(plan, [RuleContext.from_scene(FREE)], RULES, STEER)
    assert pushes.shape == (1, 6, 9, 2) and float(pushes.abs().max()) <= MOST
    assert float(pushes[0, NAMES.index("collision")].abs().max()) == 0.0
    torch.testing.assert_close(response(FREE, plan, collision=4.0), plan, rtol=0, atol=1e-3)


def test_only_rules_that_may_steer_push_to_the_side() -> None:
    plan = straight_plan(8.0, y=1.2)
    pushes = pushes_of(plan, [RuleContext.from_scene(BEHIND_A_CAR)], RULES, STEER)[0]
    for i, name in enumerate(NAMES):
        assert name in STEER or float(pushes[i, :, 1].abs().max()) == 0.0
    assert float(pushes[NAMES.index("lane"), :, 1].abs().max()) > 0.0


def test_who_wants_to_get_on_meets_nobody_and_contact_is_up_to_the_weight_of_collision() -> None:
    plan = straight_plan(5.0, -0.68)  # comes to a stop 5 m behind the car
    now = scene(straight_route(), agents=[(30.0, 0.0, 0.0, 0.0, 4.5)], speed=5.0)
    assert not meets(now, plan)
    got_on = response(now, plan, goal=4.0)
    assert not meets(now, got_on)
    free = replace(now, neighbor_agents_past=torch.zeros_like(now.neighbor_agents_past))
    assert float(response(free, plan, goal=4.0)[0, 39, 0]) >= float(got_on[0, 39, 0]) - 1e-6
    into = straight_plan(8.0)
    assert meets(BEHIND_A_CAR, into)  # then goal may add nothing to be blamed for, and collision brakes
    assert float(response(BEHIND_A_CAR, into, collision=4.0)[0, -1, 0]) < float(into[0, -1, 0])


def test_a_rule_pushes_no_further_than_those_above_it_allow() -> None:
    at_the_limit = scene(straight_route(8), speed=15.0, limit=15.0)
    slowing = straight_plan(15.0, -0.02)
    faster = response(at_the_limit, slowing, goal=4.0)
    assert cost(at_the_limit, faster, "speed") <= cost(at_the_limit, slowing, "speed") + 0.011
    unlimited = scene(straight_route(8), speed=15.0, limit=None)
    assert float(response(unlimited, slowing, goal=4.0)[0, -1, 0]) > float(faster[0, -1, 0]) + 1.0
    red = scene(straight_route(4, length=20.0), speed=5.0)
    red.route_lanes[0, 2:, :, LaneColumn.IS_UNKNOWN] = 0.0
    red.route_lanes[0, 2:, :, LaneColumn.IS_RED] = 1.0
    waits = straight_plan(5.0, -0.5)
    context = RuleContext.from_scene(red)
    before, after = (rule_costs(plan, context, [RedLight()]) for plan in (waits, response(red, waits, goal=4.0)))
    green = scene(straight_route(4, length=20.0), speed=5.0)
    assert float(rule_costs(response(green, waits, goal=4.0), context, [RedLight()])) > 0.3 > float(before)
    assert float(after) <= 1.1 * float(before) + 0.011


def test_the_planner_learns_the_plan_that_its_weights_ask_for_and_keeps_the_default() -> None:
    avoid = AvoidConfig(hold="base", way="pushed", rule_set="v2", trained="weights", steer=STEER)
    config = AlignConfig(
        loop=LoopConfig(steps=2, batch=2), avoid=avoid, weighting=WeightingConfig(conditioned=True), augment=0.0
    )
    task = AnchoredTask(config, conditioned(awake(SMALL), NAMES), OneScene(made_scene(2, agents=6, lanes=12)))
    batch = task.batch(0, 0, 1)
    rows = np.array([0, 1])

    def answers_at(factor: float):
        weights = torch.zeros(2, 6)
        weights[0] = math.log(factor)
        now = replace(batch.scene, rule_weights=weights)
        observed = task.reference.observe(now)
        encoding = task.own.encoding(rows, observed)
        known = Known.of(task.base, observed, encoding)
        plans = task.own.plans(rows, now, encoding)
        noise = torch.Generator().manual_seed(0)
        return plans, task._at_random_noise(StateBatch(rows, now), known, known, encoding, noise)

    plans, answers = answers_at(1.0)
    assert all(plan.better is None for plan in plans) and not answers.ranked.any()
    torch.testing.assert_close(answers.wanted, answers.base)
    plans, answers = answers_at(2.0)
    assert plans[0].better is not None and plans[1].better is None
    assert answers.ranked.tolist() == [True, True, False, False]
    torch.testing.assert_close(answers.wanted[:2, 0], plans[0].better.expand(2, -1, -1))
    metres = task.own.space.to_metres(plans[0].drawn[None])
    contexts = task.terms.contexts(batch.scene[[0]], metres.shape[2] - 1)
    asked = give_way(metres[:, 0, 1:], plans[0].pushes[None], torch.full((1, 6), math.log(2.0)), contexts, RULES)
    learnt = plans[0].drawn.clone()
    learnt[0] = plans[0].better
    torch.testing.assert_close(task.own.space.to_metres(learnt[None])[:, 0, 1:], asked, rtol=1e-4, atol=1e-3)
    loss, parts = task.loss(task.model, batch, torch.Generator().manual_seed(0))
    loss.backward()
    assert parts["anchor"] == pytest.approx(loss.item())
    assert float(task.base.decoder.weight_embedding.fc2.weight.grad.abs().max()) > 0


def test_pushes_need_weights_to_both_sides() -> None:
    avoid = AvoidConfig(hold="base", way="pushed")
    check_way(AlignConfig(avoid=avoid, weighting=WeightingConfig(conditioned=True)))
    for weighting in (WeightingConfig(), WeightingConfig(conditioned=True, around_default=True)):
        with pytest.raises(BadInput, match="--way pushed needs --conditioned"):
            check_way(AlignConfig(avoid=avoid, weighting=weighting))
    with pytest.raises(BadInput, match="--way pushed has none"):
        check_way(AlignConfig(avoid=avoid, weighting=WeightingConfig(conditioned=True, tiers=True)))
