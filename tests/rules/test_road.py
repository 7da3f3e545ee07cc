"""The eight rules of the road against cases worked out by hand and independent references."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import shapely
import torch

from radp.rules import RuleContext, default_rules, needs_road, rule_costs, rule_gradients, rule_set, rules_named
from radp.rules.body import body_corners
from radp.rules.headway import followed, time_gap
from radp.rules.route import Route
from radp.rules.rss import stopping_aside
from radp.scene.scene import LaneColumn, RuleView, Scene
from tests.rules.hand_made import curved_plan, scene, straight_plan, straight_route
from tests.rules.road_scenes import (
    FRONT,
    HALF_WIDTH,
    PEDESTRIAN,
    REAR_TO_CENTER,
    band,
    busy,
    lane_along,
    red_route,
    with_road,
)
from tests.rules.test_costs import phi

EIGHT = ("red_light", "rss", "headway", "vulnerable", "drivable", "oncoming", "right_of_way", "flow")
RULES = dict(zip(EIGHT, rules_named(EIGHT, "road")))


def judge(name: str, plan: torch.Tensor, given: Scene) -> tuple[float, bool]:
    """Cost and verdict."""
    context = RuleContext.from_scene(given)
    return float(rule_costs(plan, context, [RULES[name]])[0, 0]), bool(RULES[name].violated(plan, context))


def test_the_set_holds_the_papers_six_and_eight_more():
    assert rule_set("road")[:6] == default_rules() == rule_set("paper")
    assert tuple(rule.name for rule in rule_set("road")[6:]) == EIGHT
    assert needs_road(rule_set("road")) and not needs_road(rule_set("v2"))


def test_red_light_by_hand():
    """The line is 28 m ahead of the rear axle. At 10 m/s the car needs 23 m of the 24.0 m to stop, at 11 m/s 27 m."""
    cost, broken = judge("red_light", straight_plan(10.0), scene(red_route(1), speed=10.0))
    assert cost == pytest.approx(np.mean([phi(h + FRONT - 27.0, 1.0) for h in range(1, 81)]), rel=1e-9) and broken
    assert judge("red_light", straight_plan(11.0), scene(red_route(1), speed=11.0)) == (0.0, False)
    assert judge("red_light", straight_plan(10.0), scene(red_route(), speed=10.0)) == (0.0, False)
    stops = straight_plan(10.0, accel=-2.3)  # after 21.2 m: 2.7 m before the line
    assert not judge("red_light", stops, scene(red_route(1), speed=10.0))[1]


def test_a_long_lane_that_was_cut_has_one_stop_line():
    given = scene(red_route(1, 2, start=-60.0), speed=5.0)  # the light hangs at -22 m, the second part starts at 16 m
    route = RuleContext.from_scene(given).route
    assert float(route.stop_line(FRONT)) == pytest.approx(16.0) and torch.isinf(route.red_line(FRONT)).all()
    assert judge("red_light", straight_plan(5.0), given) == (0.0, False)


def test_rss_by_hand():
    """13.7 m behind a car as fast: 28.3 m are needed ahead; beside it, 0.35 m aside would do."""
    behind = scene(straight_route(), agents=[(20.0, 0.0, 0.0, 10.0, 4.5)])
    missing = min(10 + 1.75 + 13.5**2 / 8 - 100 / 16 - (20 - 2.25 - FRONT), 0.35 + 1.0 + HALF_WIDTH)
    cost, broken = judge("rss", straight_plan(10.0), behind)
    assert cost == pytest.approx(phi(missing, 2.0), rel=1e-6) and broken
    context = RuleContext.from_scene(behind)
    torch.testing.assert_close(
        RULES["rss"].violation(straight_plan(10.0), context), torch.full((1, 80), missing).double()
    )
    assert not judge("rss", straight_plan(10.0), scene(straight_route(), agents=[(20.0, 3.5, 0.0, 10.0, 4.5)]))[1]
    assert not judge("rss", straight_plan(10.0), scene(straight_route(), agents=[(60.0, 0.0, 0.0, 10.0, 4.5)]))[1]
    assert judge("rss", straight_plan(10.0), scene(straight_route(), agents=[(-20.0, 0.0, 0.0, 10.0, 4.5)])) == (
        0,
        False,
    )
    torch.testing.assert_close(stopping_aside(torch.tensor([1.0, 0.0, -1.0])), torch.tensor([2.0, 0.125, 0.0]))


def test_rss_sees_who_comes_from_the_side():
    """One second ago it was 5 m aside; at 5 m/s it needs 5.1 + 16.9 m to stop aside."""
    crossing = scene(straight_route(), agents=[(30.0, -14.0, math.pi / 2, 5.0, 4.5)])
    away = scene(straight_route(), agents=[(30.0, -14.0, -math.pi / 2, 5.0, 4.5)])
    assert judge("rss", straight_plan(10.0), crossing)[1] and not judge("rss", straight_plan(10.0), away)[1]


def test_headway_by_hand():
    speeds = torch.tensor([0.0, 2.0, 20 / 3.6, 10.0, 60 / 3.6, 40.0], dtype=torch.float64)
    torch.testing.assert_close(time_gap(speeds), torch.tensor([1.0, 1.0, 1.2, 1.36, 1.6, 1.6], dtype=torch.float64))
    cost, broken = judge("headway", straight_plan(10.0), scene(straight_route(), agents=[(18.0, 0.0, 0.0, 10.0, 4.5)]))
    assert cost == pytest.approx(phi(13.6 - (18 - 2.25 - FRONT), 2.0), rel=1e-9) and broken
    assert not judge("headway", straight_plan(10.0), scene(straight_route(), agents=[(20.1, 0.0, 0.0, 10.0, 4.5)]))[1]
    beside = scene(straight_route(), agents=[(10.0, 3.5, 0.0, 10.0, 4.5)])
    assert judge("headway", straight_plan(10.0), beside) == (0.0, False)


def test_who_cut_in_has_three_seconds():
    """It came from the next lane within two seconds, evenly: into the way 1.23 s ago, so it counts from 1.77 s on."""
    given = scene(straight_route(), agents=[(12.0, 0.0, 0.0, 10.0, 4.5)])
    past = torch.zeros(1, 11, 2, dtype=torch.float64)
    past[0, 0] = torch.tensor([-8.0, 3.5])
    plan = straight_plan(10.0)
    context = RuleContext.from_scene(with_road(given, object_past=past)).bind(plan)
    lead = followed(context.around(plan), context)[0, :, 0]
    assert lead.tolist() == [0.1 * (h + 1) >= 1.78 for h in range(80)]
    person = RuleContext.from_scene(with_road(given, (PEDESTRIAN,))).bind(plan)
    assert not followed(person.around(plan), person).any()


def test_vulnerable_by_hand():
    """Somebody 2 m wide stands 3 m beside the line: 0.85 m remain as the car passes."""
    aside = scene(straight_route(), agents=[(20.0, 3.0, 0.0, 0.0, 1.0)])
    assert judge("vulnerable", straight_plan(10.0), aside) == (0.0, False)  # a car
    person = RuleContext.from_scene(with_road(aside, (PEDESTRIAN,)))
    z = RULES["vulnerable"].violation(straight_plan(10.0), person)
    assert float(z.max()) == pytest.approx(1.5 - (2.0 - HALF_WIDTH)) and float(z[0, 0]) < 0
    assert torch.isinf(z[0, -1])  # 15 m and more behind
    far = scene(straight_route(), agents=[(20.0, 5.0, 0.0, 0.0, 1.0)])
    assert not judge("vulnerable", straight_plan(10.0), with_road(far, (PEDESTRIAN,)))[1]


def test_a_crosswalk_that_somebody_takes_is_a_stop_line():
    given = scene(straight_route(pieces=5), agents=[(30.0, 40.0, 0.0, 0.0, 1.0)])

    def crossing(seconds: float) -> torch.Tensor:
        where = torch.zeros(1, 11, 3, dtype=torch.float64)
        where[0, 0] = torch.tensor([30.0, 0.0, seconds])
        return where

    taken = with_road(given, (PEDESTRIAN,), object_crossing=crossing(8.0))
    cost, broken = judge("vulnerable", straight_plan(10.0), taken)
    assert cost == pytest.approx(np.mean([phi(h + FRONT - 29.0, 0.5) for h in range(1, 81)]), rel=1e-9) and broken
    assert not judge("vulnerable", straight_plan(10.0), with_road(given, (PEDESTRIAN,), object_crossing=crossing(2.0)))[
        1
    ]
    assert judge("vulnerable", straight_plan(10.0), with_road(given, (0,), object_crossing=crossing(8.0))) == (
        0.0,
        False,
    )


def test_drivable_by_hand():
    given = with_road(scene(straight_route()), **band(-3.0, 3.0))
    for y, off in ((1.0, -0.8515), (2.1, 0.2485), (2.2, 0.3485), (-2.2, 0.3485)):
        cost, broken = judge("drivable", straight_plan(5.0, y=y), given)
        assert cost == pytest.approx(phi(0.2 + off, 0.3), rel=1e-9) and broken == (off > 0.3)
    near = with_road(scene(straight_route()), **band(-3.0, 3.0, reach=20.0))
    z = RULES["drivable"].violation(straight_plan(5.0, y=2.2), RuleContext.from_scene(near))
    assert torch.isfinite(z[0, :20]).all() and torch.isinf(z[0, -20:]).all()  # beyond what the scene knows
    assert judge("drivable", straight_plan(y=40.0), scene(straight_route())) == (0.0, False)


def test_distances_to_the_border_are_those_of_shapely():
    """A star with sharp corners inwards and outwards: signed distances of all body corners along a wild plan."""
    draws = np.random.default_rng(3)
    angles = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    points = np.stack((np.cos(angles), np.sin(angles)), 1) * draws.uniform(4, 30, 24)[:, None]
    star = shapely.Polygon(points)
    pieces = torch.tensor(np.concatenate((points, np.roll(points, -1, 0)), 1)).unsqueeze(0)
    given = with_road(scene(), border=pieces, border_reach=torch.full((1, 1), 300.0).double())
    plan = torch.tensor(draws.normal(size=(1, 80, 4)) * [12, 12, 1, 1])
    context = RuleContext.from_scene(given).bind(plan)
    border = context.around(plan).border
    corners = body_corners(plan).flatten(1, 2)
    found = ((corners - border.foot) * border.normal).sum(-1)[0].numpy()
    places = shapely.points(corners[0].numpy())
    wanted = shapely.distance(star.exterior, places) * np.where(shapely.contains(star, places), 1.0, -1.0)
    np.testing.assert_allclose(found, wanted, atol=1e-9)
    assert (wanted > 0).any() and (wanted < 0).any()


def test_oncoming_by_hand():
    """On a lane that runs against the car, 1 m each step: 10 m within a second, of which 2 m are allowed."""
    against = with_road(scene(straight_route()), lanes=lane_along(0.0, backwards=True))
    cost, broken = judge("oncoming", straight_plan(10.0), against)
    assert cost == pytest.approx(np.mean([phi(min(h, 10) - 2.0, 2.0) for h in range(1, 81)]), rel=1e-9) and broken
    assert not judge("oncoming", straight_plan(1.9), against)[1]
    beside = with_road(scene(straight_route()), lanes=lane_along(3.5, backwards=True))
    assert judge("oncoming", straight_plan(10.0), beside) == (0.0, False)
    both = torch.cat((lane_along(0.0, backwards=True), lane_along(0.5, backwards=False)), 1)
    assert judge("oncoming", straight_plan(10.0), with_road(scene(straight_route()), lanes=both)) == (0.0, False)


def test_right_of_way_by_hand():
    """From the right, at the crossing point after 2 s; the ego's centre is there after 2.85 s."""
    apart = (30.0 - REAR_TO_CENTER) / 10 - 2.0
    right = scene(straight_route(), agents=[(30.0, -20.0, math.pi / 2, 10.0, 4.5)])
    cost, broken = judge("right_of_way", straight_plan(10.0), right)
    assert cost == pytest.approx(phi(1.5 - apart, 0.5), rel=1e-6) and broken
    left = scene(straight_route(), agents=[(30.0, 20.0, -math.pi / 2, 10.0, 4.5)])
    assert judge("right_of_way", straight_plan(10.0), left) == (0.0, False)
    later = scene(straight_route(), agents=[(30.0, -45.0, math.pi / 2, 10.0, 4.5)])
    assert not judge("right_of_way", straight_plan(10.0), later)[1]
    green = straight_route()
    green[:, :, 8:] = torch.tensor([1.0, 0, 0, 0], dtype=torch.float64)
    crossing = scene(green, agents=[(30.0, -20.0, math.pi / 2, 10.0, 4.5)])
    assert judge("right_of_way", straight_plan(10.0), crossing) == (0.0, False)


def test_who_turns_left_lets_oncoming_traffic_pass():
    oncoming = scene(agents=[(22.0, 3.5, math.pi, 5.0, 4.5)])
    assert judge("right_of_way", curved_plan(5.0, 0.1), oncoming)[1]
    mirrored = scene(agents=[(22.0, -3.5, math.pi, 5.0, 4.5)])
    assert judge("right_of_way", curved_plan(5.0, -0.1), mirrored) == (0.0, False)


def test_flow_by_hand():
    long = straight_route(pieces=8)
    cost, broken = judge("flow", straight_plan(5.0), scene(long, limit=15.0))
    assert cost == pytest.approx(phi(7.5 - 5.0, 1.0), rel=1e-6) and broken
    assert not judge("flow", straight_plan(8.0), scene(long, limit=15.0))[1]
    assert judge("flow", straight_plan(5.0), scene(long, limit=None)) == (0.0, False)
    blocked = scene(long, limit=15.0, agents=[(50.0, 0.0, 0.0, 0.0, 4.5)])
    assert judge("flow", straight_plan(5.0), blocked) == (0.0, False)
    assert judge("flow", straight_plan(5.0), scene(red_route(1, pieces=8), limit=15.0)) == (0.0, False)
    assert judge("flow", straight_plan(2.0), scene(straight_route(pieces=1), limit=15.0)) == (0.0, False)  # it ends


def test_a_bend_slows_the_flow_down():
    """On a circle of 20 m, 2 m/s2 aside allow 6.3 m/s."""
    route = straight_route(pieces=3, length=38.0, start=0.0)
    angle = (torch.arange(57, dtype=torch.float64) * 2.0 / 20.0).view(3, 19)
    angle = torch.cat((angle, angle[:, -1:] + 0.1), 1)
    route[:, :, LaneColumn.X], route[:, :, LaneColumn.Y] = 20 * torch.sin(angle), 20 * (1 - torch.cos(angle))
    there = Route.of(RuleView.of(scene(route)))
    points = torch.stack((20 * torch.sin(angle[1]), 20 * (1 - torch.cos(angle[1]))), -1)[None, 4:-4]
    torch.testing.assert_close(there.curvature(points), torch.full((1, 12), 0.05).double(), rtol=0.02, atol=0.0)


@pytest.mark.parametrize("name", EIGHT)
def test_gradient_of_a_road_rule_is_right_in_float64(name):
    plan, context = busy()
    cost = RULES[name].cost(plan, context)
    assert name == "flow" or float(cost) > 1e-3, name
    if name == "flow":  # in that scene the road is not free
        context = RuleContext.from_scene(scene(straight_route(pieces=9), limit=20.0)).bind(plan)
        assert float(RULES[name].cost(plan, context)) > 1e-3
    function = lambda x: RULES[name].cost(x, context).sum()  # noqa: E731
    inputs = (plan.clone().requires_grad_(),)
    assert torch.autograd.gradcheck(function, inputs, eps=1e-6, atol=1e-5, rtol=1e-3, fast_mode=True)


def test_shares_of_others_add_up_to_the_cost():
    plan, context = busy()
    for name in ("rss", "headway", "vulnerable", "right_of_way"):
        parts = RULES[name].agent_costs(plan, context)
        torch.testing.assert_close(parts.sum(1), RULES[name].cost(plan, context))
        assert (parts > 0).any() and (parts[0, 3:] == 0).all()  # three agents are there


def test_road_rules_are_finite_where_nothing_is_known_and_scenes_do_not_mix():
    rules = rule_set("road")
    still = torch.zeros(1, 80, 4, dtype=torch.float64)
    point = straight_route(pieces=1, length=0.0)
    on_top = with_road(
        scene(straight_route(), [(0.0, 0.0, 0.0, 0.0, 4.5)], speed=0.0), (PEDESTRIAN,), **band(-1.0, 1.0)
    )
    for given in (scene(), scene(point, speed=0.0, limit=None), on_top):
        for plan in (still, straight_plan(speed=0.0)):
            costs, gradients = rule_gradients(plan, RuleContext.from_scene(given), rules)
            assert torch.isfinite(costs).all() and torch.isfinite(gradients).all()
    assert (rule_costs(straight_plan(), RuleContext.from_scene(scene()), rules)[0, 6:] == 0).all()
    scenes = [scene(red_route(1 + i), [(15.0 + 5 * i, 0.0, 0.0, 1.0, 4.5)], limit=7.0 + i) for i in range(3)]
    plans = torch.cat([straight_plan(6.0 + i) for i in range(3)])
    together = rule_gradients(plans, RuleContext.from_scene(Scene.cat(scenes)), rules)
    for i, one in enumerate(scenes):
        alone = rule_gradients(plans[i : i + 1], RuleContext.from_scene(one), rules)
        torch.testing.assert_close(together[0][i : i + 1], alone[0])
        torch.testing.assert_close(together[1][i : i + 1], alone[1])


def test_the_papers_costs_do_not_notice_a_road_view():
    plan, context = busy()
    without = replace(context, road=None)
    for a, b in zip(rule_gradients(plan, context), rule_gradients(plan, without)):
        assert torch.equal(a, b)
