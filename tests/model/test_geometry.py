"""Geometry for the head: distances worked out by hand, and those of the rules at the same moments."""

from __future__ import annotations

import math

import pytest
import torch

from radp.model.cheap_geometry import MOMENTS, SERIES
from radp.model.geometry import cheap_geometry, geometry_count, plan_geometry
from radp.rules import BodyLane, Collision, RuleContext
from radp.scene.builder import SceneConfig, build_scenes
from radp.sim.replay import observe_logs
from radp.sources.synthetic import make_scenario
from tests.model.plain_geometry import plain_geometry
from tests.rules.hand_made import curved_plan, scene, straight_plan, straight_route

HALF_WIDTH = 2.297 / 2
NAMES = ("error", "left", "right", "over", "gap", "lacks", "closing", "share")
AT = slice(4, 80, 5)  # the moments among the steps of a plan


def moments(plan: torch.Tensor, given: object) -> dict[str, torch.Tensor]:
    """Name -> (16,) of the cheap geometry."""
    values = plan_geometry("cheap", plan, given)
    assert values.shape == (1, geometry_count("cheap"))
    return dict(zip(NAMES, values[0, : MOMENTS * SERIES].view(SERIES, MOMENTS)))


def test_borders_and_limit_by_hand():
    found = moments(straight_plan(speed=10.0, y=0.4), scene(straight_route(lanes=2), limit=8.0))
    for name, value in {
        "error": 0.4,
        "left": -3.0,  # 3.7 m to the border of the lane beside it, cut at 3 m
        "right": -0.4 + HALF_WIDTH - 1.75,
        "over": 2.0,
        "gap": 1.0,
        "lacks": 0.0,
        "closing": 0.0,
        "share": 0.0,
    }.items():
        inner = found[name][1:] if name == "over" else found[name]  # the jump aside is in the first half second
        torch.testing.assert_close(inner, torch.full_like(inner, value), rtol=0, atol=1e-5, msg=name)


def test_borders_are_those_of_the_lane_rule():
    given, plan = scene(straight_route()), curved_plan(8.0, 0.01)
    found = moments(plan, given)
    over = BodyLane().violation(plan, RuleContext.from_scene(given))[0, AT]
    expected = over.clamp(-3, 3).float()
    torch.testing.assert_close(torch.maximum(found["left"], found["right"]), expected, rtol=0, atol=1e-5)


def test_clearance_to_a_standing_car_by_hand():
    """12 m/s towards a car that begins 60 m ahead of the ego's centre."""
    found = moments(straight_plan(speed=12.0), scene(agents=[(61.461, 0.0, 0.0, 0.0, 4.5)], speed=12.0))
    for k in range(MOMENTS):
        gap = abs(60 - 6.0 * (k + 1)) - (5.176 + 4.5) / 2
        overlaps = gap < 0
        gap = max(gap, -(2.297 + 2.0) / 2) if overlaps else gap
        assert float(found["gap"][k]) == pytest.approx(min(gap, 5.0) / 5.0, abs=1e-4)
        closing = max(0.0, abs(60 - 6.0 * k) - abs(60 - 6.0 * (k + 1))) / 0.5
        lacks = max(0.0, 0.5 + 0.8 * closing + closing**2 / 8 - gap)
        assert float(found["lacks"][k]) == pytest.approx(math.log1p(lacks), abs=1e-3)
        assert float(found["closing"][k]) == pytest.approx(math.log1p(closing) if lacks else 0.0, abs=1e-3)
        assert float(found["share"][k]) == pytest.approx(lacks / (lacks + max(gap, 0)) if lacks else 0.0, abs=1e-3)


def test_the_compiled_geometry_is_that_in_plain_torch():
    """On logs of crossings, with the forecasts of nobody in particular."""
    draw = torch.Generator().manual_seed(0)
    now = observe_logs([make_scenario(seed, agents=12, turn=turn) for seed, turn in enumerate(("left", "right"))], 20)
    given = build_scenes(now, SceneConfig(ego_dynamics=True, rules=True, lane_length=50.0))
    plans = torch.cat((curved_plan(7.0, 0.02), curved_plan(6.0, -0.03))).float()
    forecast = given.neighbor_agents_past[:, :5, -1:, :4].repeat(1, 1, 80, 1)
    forecast[..., :2] += (0.2 * torch.randn(2, 5, 80, 2, generator=draw)).cumsum(2)
    for predictions in (None, forecast):
        values, expected = (how(plans, given, predictions) for how in (cheap_geometry, plain_geometry))
        torch.testing.assert_close(values, expected, rtol=1e-3, atol=2e-3)  # float64 here, float32 there
    assert float((expected[:, : 8 * MOMENTS].std(0) > 0).float().mean()) > 0.8  # most values say something


def test_least_gap_is_never_more_than_the_separation():
    agents = [(18.0, 3.5, 0.4, 2.0, 4.5), (25.0, -3.0, 1.2, 1.0, 8.0)]
    given, plan = scene(straight_route(), agents=agents), curved_plan(6.0, 0.004)
    found = moments(plan, given)
    pairs = Collision().pairs(plan, RuleContext.from_scene(given))
    separation = torch.full((80, 6), 5.0, dtype=torch.float64)
    separation[pairs.step, pairs.agent] = pairs.separation
    assert bool((5.0 * found["gap"] <= separation.amin(-1)[AT].float() + 1e-4).all())
    assert float(found["gap"].min()) < 0.5


def test_predictions_replace_constant_velocity():
    given, plan = scene(straight_route(), agents=[(30.0, 0.0, 0.0, 0.0, 4.5)]), straight_plan(speed=6.0)
    leaves = torch.zeros(1, 1, 80, 4, dtype=torch.float64)
    leaves[..., 0], leaves[..., 1], leaves[..., 2] = 30.0, 40.0, 1.0
    near, gone = plan_geometry("cheap", plan, given), plan_geometry("cheap", plan, given, leaves)
    start = NAMES.index("gap") * MOMENTS
    assert float(near[0, start : start + MOMENTS].min()) < 0.0
    assert (gone[0, start : start + MOMENTS] == 1.0).all()


def test_missing_progress_and_red_light():
    route = straight_route(pieces=5)
    route[1, :, 8:] = torch.tensor([0.0, 0, 1, 0], dtype=torch.float64)
    missing, stop, speed = plan_geometry("cheap", straight_plan(speed=10.0), scene(route))[0, -3:].tolist()
    assert missing == pytest.approx(math.log1p(16.0 / 5), rel=1e-5)
    assert stop == pytest.approx(28.0 / 50) and speed == pytest.approx(1.0)
    assert float(plan_geometry("cheap", straight_plan(), scene(straight_route()))[0, -2]) == 1.0


@pytest.mark.parametrize("kind", ["cheap", "full"])
def test_degenerate_scenes_and_batches(kind):
    point = scene(straight_route(pieces=1, length=0.0), agents=[(0.0, 0.0, 0.0, 0.0, 4.5)], limit=None)
    assert torch.isfinite(plan_geometry(kind, straight_plan(speed=0.0), point)).all()
    plans = (torch.zeros(1, 80, 4, dtype=torch.float64), straight_plan(speed=9.0), curved_plan(8.0, 0.02))
    given = (
        scene(speed=0.0),
        scene(straight_route(pieces=2), agents=[(0.0, 0.0, 0.0, 0.0, 4.5)], limit=None),
        scene(straight_route(), agents=[(20.0, 0.3, 0.0, 2.0, 4.5)]),
    )
    alone = [plan_geometry(kind, plan, one) for plan, one in zip(plans, given)]
    together = plan_geometry(kind, torch.cat(plans), type(given[0]).cat(given))
    assert together.shape == (3, geometry_count(kind)) and torch.isfinite(together).all()
    torch.testing.assert_close(together, torch.cat(alone))


def test_full_geometry_sees_what_the_rules_see():
    given, plan = scene(straight_route(), agents=[(25.0, 0.0, 0.0, 0.0, 4.5)]), straight_plan(speed=8.0, y=0.5)
    context = RuleContext.from_scene(given)
    found = plan_geometry("full", plan, given)[0]
    series, ends = found[:80].view(10, 8), found[80:]
    torch.testing.assert_close(series[0], torch.full((8,), 0.5 + HALF_WIDTH - 1.75), rtol=0, atol=1e-5)
    torch.testing.assert_close(series[2], torch.full((8,), 0.5), rtol=0, atol=1e-5)
    pairs = Collision(from_now=4.0).pairs(plan, context)
    assert float(series[5].max()) == pytest.approx(-float(pairs.separation.min()), abs=1e-5)
    gates = Collision(from_now=4.0).gate(pairs)
    assert float(series[9].max()) == pytest.approx(math.log1p(float(gates.max())), abs=1e-5)  # one object alone
    assert ends.tolist() == pytest.approx([math.log1p((float(context.target) - 64) / 5), math.log1p(1.0), 0.0,
                                           float(context.target) / 20], abs=1e-5)  # fmt: skip
