"""Where plans meet somebody or leave the road, by hand."""

from __future__ import annotations

import math

import pytest
import torch

from radp.rules import RuleContext, rules_named
from radp.rules.body import EGO_WIDTH
from radp.rules.contact import avoidable, first_contact, first_near_miss, first_off_road, time_to_stop
from tests.rules.hand_made import LANE_WIDTH, scene, straight_plan, straight_route

LEAD = (30.0, 0.0, 0.0, 0.0, 4.5)  # a standing car, 30 m ahead


def context_of(*agents) -> RuleContext:
    return RuleContext.from_scene(scene(straight_route(), agents=list(agents)))


def test_contact_is_overlap_or_coming_nearer_than_the_margin():
    # the front bumper is 4.049 m ahead of the rear axle, the car's rear at 27.75 m: 23.7 m at 10 m/s
    assert float(first_contact(straight_plan(speed=10.0), context_of(LEAD))) == pytest.approx(2.4)
    assert float(first_contact(straight_plan(speed=1.0), context_of(LEAD))) == float("inf")
    beside = (30.0, EGO_WIDTH / 2 + 1.0 + 0.2, 0.0, 0.0, 4.5)  # passed with 0.2 m to spare
    plan = straight_plan(speed=10.0)
    assert float(first_contact(plan, context_of(beside))) == float("inf")
    assert float(first_contact(plan, context_of(beside), margin=0.1)) == float("inf")
    assert 2.3 < float(first_contact(plan, context_of(beside), margin=0.3)) < 2.5


def test_a_near_miss_is_a_short_time_to_collision():
    # 23.7 m at 10 m/s: from 1.5 s on the car would be met within 0.9 s
    assert float(first_near_miss(straight_plan(speed=10.0), context_of(LEAD))) == pytest.approx(1.5)
    stops = straight_plan(speed=10.0, accel=-2.5)  # 20 m, the last of them slowly
    assert float(first_contact(stops, context_of(LEAD))) == float("inf")
    assert float(first_near_miss(stops, context_of(LEAD))) == float("inf")
    hard = straight_plan(speed=10.0)  # as far as 19 m at full speed, then it stands at once
    hard[0, :, 0] = hard[0, :, 0].clamp(max=19.0)
    assert float(first_contact(hard, context_of(LEAD))) == float("inf")
    assert float(first_near_miss(hard, context_of(LEAD))) == pytest.approx(1.5)


def test_who_stands_has_no_near_miss_and_who_moves_away_none_either():
    comes = (12.0, 0.0, math.pi, 5.0, 4.5)  # towards the ego: in 1.1 s it is there
    assert float(first_near_miss(straight_plan(speed=0.0), context_of(comes))) == float("inf")
    assert float(first_near_miss(straight_plan(speed=0.5), context_of(comes))) < 0.6
    leaves = (10.0, 0.0, 0.0, 12.0, 4.5)
    assert float(first_near_miss(straight_plan(speed=10.0), context_of(leaves))) == float("inf")


@pytest.mark.parametrize(("speed", "seconds"), [(0.0, 1.5), (3.0, 2.5), (7.5, 4.0), (20.0, 4.0)])
def test_time_to_stop_grows_with_speed_up_to_four_seconds(speed, seconds):
    context = RuleContext.from_scene(scene(straight_route(), speed=speed))
    assert float(time_to_stop(context)) == pytest.approx(seconds)


def test_a_corner_is_off_the_road_when_it_is_a_foot_over_the_border():
    plan = straight_plan(speed=5.0)
    assert float(first_off_road(plan, context_of())) == float("inf")
    plan[0, :, 1] = 0.02 * torch.arange(1, 81)  # drifts to the left
    step = math.floor(((LANE_WIDTH - EGO_WIDTH) / 2 + 0.3) / 0.02) + 1
    assert float(first_off_road(plan, context_of())) == pytest.approx(0.1 * step)


def test_an_ego_that_is_off_the_road_now_has_left_already():
    now = scene(straight_route())
    now.route_lanes[..., 1] += 2.0  # the road lies to the left of the ego
    plan = straight_plan(speed=5.0)
    assert float(first_off_road(plan, RuleContext.from_scene(now))) == float("inf")


@pytest.mark.parametrize(
    ("other", "stays"),
    [
        (LEAD, True),
        ((-15.0, 0.0, 0.0, 10.0, 4.5), False),  # follows in the lane
        ((-15.0, 3.5, 0.0, 15.0, 4.5), True),  # comes from behind in the next lane
        ((-15.0, 0.0, math.pi, 10.0, 4.5), True),  # drives away
        ((1.0, 1.0, 0.0, 0.0, 4.5), False),  # is touched already
    ],
)
def test_who_can_be_avoided(other, stays):
    left = avoidable(context_of(other)).agent_valid[0, 0]
    assert bool(left.any()) == stays


def test_braking_for_somebody_is_not_punished_by_the_follower():
    follower = (-12.0, 0.0, 0.0, 10.0, 4.5)
    braking = straight_plan(speed=10.0, accel=-5.0)
    context = context_of(follower)
    assert float(first_contact(braking, context)) < 4.0
    assert float(first_contact(braking, avoidable(context))) == float("inf")


def test_rules_of_the_set_for_avoidance_do_not_see_the_seam():
    jump = straight_plan(speed=10.0)  # the ego drives at 4 m/s: a jump of 6 m/s in the first step
    context = RuleContext.from_scene(scene(straight_route(), speed=4.0))
    for name in ("kinematics", "comfort"):
        (usual,), (skipping,) = rules_named([name]), rules_named([name], "avoid")
        assert float(usual.cost(jump, context)) > 1.0 and bool(usual.violated(jump, context))
        assert float(skipping.cost(jump, context)) < 1e-3 and not bool(skipping.violated(jump, context))
    late = straight_plan(speed=10.0)
    late[0, 40:, 0] += 5.0  # a jump after the seam is seen by both
    for name in ("kinematics", "comfort"):
        (skipping,) = rules_named([name], "avoid")
        assert float(skipping.cost(late, context)) > 1.0
