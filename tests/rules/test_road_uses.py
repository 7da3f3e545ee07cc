"""The rules of the road go through the uses of a rule: pressure, loss, guidance, row of a report, viewer."""

from __future__ import annotations

from dataclasses import replace

import torch

from radp.attribution import attribute
from radp.incidents.explain import explain_planner
from radp.planners import load_planner
from radp.planners.rule_guidance import RuleGuidance
from radp.report.viewer.explain import rule_words
from radp.rules import RuleContext, rule_costs, rule_set, rules_named
from tests.planners.test_learned import short_scenario
from tests.rules.hand_made import scene, straight_plan
from tests.rules.road_scenes import busy, red_route

ROAD = rule_set("road")
NAMES = tuple(rule.name for rule in ROAD)


def test_they_are_pressures_and_terms_of_a_loss():
    plan, context = busy()
    why = attribute(plan, context, rules=ROAD)
    assert why.rules == NAMES and why.pressure.isfinite().all() and why.pressure.shape == (1, 14)
    assert {name for name, value in zip(NAMES, why.pressure[0]) if value > 1e-3} >= set(NAMES[6:13])
    leaf = plan.clone().requires_grad_()
    weights = torch.tensor([rule.weight for rule in ROAD], dtype=torch.float64)
    (rule_costs(leaf, context, ROAD)[0] * weights).sum().backward()
    assert leaf.grad.isfinite().all() and leaf.grad.abs().max() > 0


def test_a_red_light_guides_the_sampling():
    given = scene(red_route(1), speed=10.0)
    states = torch.zeros(1, 1, 81, 4, dtype=torch.float64)
    states[:, 0, 1:], states[:, 0, 0, 2] = straight_plan(10.0), 1.0
    push = RuleGuidance(given, rules_named(["red_light"], "road"), strength=1.0)(states, 0.05)
    assert push[0, 0, 1:, 0].sum() < 0 and push[0, 0, 0].abs().max() == 0
    moved = states[:, 0, 1:] + 0.01 * push[:, 0, 1:] / push.norm()
    context = RuleContext.from_scene(given)
    costs = [float(rule_costs(p, context, rules_named(["red_light"], "road"))) for p in (states[:, 0, 1:], moved)]
    assert costs[1] < costs[0]


def test_they_are_rows_of_the_report_and_words_of_the_viewer():
    scenario = replace(short_scenario(), token="road")
    planner = load_planner("constant_velocity")
    (explained,) = explain_planner(planner, [scenario], agents="nonreactive", worst=1, rules="road")
    assert tuple(row["rule"] for row in explained.moments[0]["rules"]) == NAMES
    assert {word["name"]: word["describes"] for word in rule_words(NAMES)}["drivable"] == "the edge of the road"
