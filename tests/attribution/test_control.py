"""Control space: displacements worked out by hand, descents that descend, and sizes that halve a cost."""

from __future__ import annotations

import pytest
import torch

from radp.attribution.control import AMPLITUDES, accelerations, amplitude_of, begin, descent, displace, pushed
from radp.rules import BodyLane, Collision, RuleContext, default_rules, rule_costs
from tests.rules.hand_made import curved_plan, scene, straight_plan, straight_route

STANDING = torch.zeros(1, 2, dtype=torch.float64)


def constant(along: float, across: float) -> torch.Tensor:
    return torch.tensor([along, across], dtype=torch.float64).expand(1, 80, 2)


def test_accelerations_are_linear_between_knots_and_go_on_after_the_last():
    knots = torch.zeros(1, 9, 2, dtype=torch.float64)
    knots[0, :, 0] = torch.arange(9)
    now = accelerations(knots, torch.zeros(1), 80)[0, :, 0]
    torch.testing.assert_close(now, 0.1 * torch.arange(1, 81, dtype=torch.float64))
    later = accelerations(knots, torch.tensor([6.5]), 80)[0, :, 0]
    assert float(later[4]) == pytest.approx(7.0) and (later[15:] == 8.0).all()


def test_no_push_leaves_a_plan_where_it_is():
    for plan in (straight_plan(speed=7.0), curved_plan(8.0, 0.05), straight_plan(speed=0.0)):
        torch.testing.assert_close(displace(plan, constant(0.0, 0.0)), plan, rtol=0, atol=1e-4)


def test_pushes_by_hand():
    plan, sums = straight_plan(speed=10.0), 0.01 * torch.arange(1, 81, dtype=torch.float64).cumsum(0)
    faster = displace(plan, constant(0.5, 0.0))
    torch.testing.assert_close(faster[0, :, 0], plan[0, :, 0] + 0.5 * sums, rtol=0, atol=1e-6)
    aside = displace(plan, constant(0.0, 0.2))
    torch.testing.assert_close(aside[0, :, 1], 0.2 * sums, rtol=0, atol=1e-6)
    slope = torch.atan(0.02 * torch.arange(1, 81, dtype=torch.float64) / 10.0)
    torch.testing.assert_close(torch.atan2(aside[0, :, 3], aside[0, :, 2]), slope, rtol=0, atol=1e-6)
    halted = displace(straight_plan(speed=2.0), constant(-1.0, 0.3))
    assert (halted[0].diff(dim=0)[:, 0] >= -1e-9).all() and float(halted[0, -1, 0]) == pytest.approx(2.0, abs=0.2)
    standing = displace(straight_plan(speed=0.0), constant(0.0, 1.0))
    assert float(standing[..., :2].abs().max()) < 1e-3  # no car moves to the side without moving on


def test_a_faster_plan_stays_on_its_curve():
    radius = 20.0
    plan = displace(curved_plan(5.0, 1 / radius), constant(-0.4, 0.0))
    gap = (plan[0, :, :2] - torch.tensor([0.0, radius], dtype=torch.float64)).norm(dim=-1)
    torch.testing.assert_close(gap, torch.full_like(gap, radius), rtol=0, atol=0.01)
    torch.testing.assert_close(plan[..., 2:].norm(dim=-1), torch.ones(1, 80, dtype=torch.float64))


def cases() -> dict[str, tuple[object, torch.Tensor, RuleContext]]:
    braking = scene(straight_route(), agents=[(35.0, 0.0, 0.0, 0.0, 4.5)], speed=8.0)
    return {
        "collision": (Collision(from_now=4.0), straight_plan(speed=8.0), RuleContext.from_scene(braking)),
        "lane": (BodyLane(), curved_plan(6.0, 0.002), RuleContext.from_scene(scene(straight_route(), speed=6.0))),
        "goal": (default_rules()[5], straight_plan(8.0, -0.5), RuleContext.from_scene(scene(straight_route(6)))),
    }


@pytest.mark.parametrize("name", cases())
def test_down_lowers_the_cost_and_up_raises_it(name):
    rule, plan, context = cases()[name]
    direction = descent(plan, context, rule, STANDING, sideways=True)
    assert float(direction.abs().max()) == pytest.approx(1.0) and (direction[:, 0] == 0).all()
    costs = [
        float(rule_costs(pushed(plan, size * direction), context, [rule])) for size in (-0.1, -0.03, 0.0, 0.03, 0.1)
    ]
    assert costs == sorted(costs, reverse=True) and costs[0] > costs[-1]


@pytest.mark.parametrize("name", cases())
def test_the_gradient_in_control_space_against_finite_differences(name):
    rule, plan, context = cases()[name]
    direction = descent(plan, context, rule, STANDING, sideways=True)
    changes = []
    for knot in range(1, 9):
        for axis in range(2):
            one = torch.zeros_like(direction)
            one[0, knot, axis] = 1e-5
            up, down = (rule_costs(pushed(plan, sign * one), context, [rule]) for sign in (1, -1))
            changes.append(float(down - up))
    numbers = torch.tensor(changes, dtype=torch.float64).view(1, 8, 2)
    numbers = numbers / numbers.abs().max()
    torch.testing.assert_close(direction[:, 1:], numbers, rtol=0.05, atol=0.02)  # gates and matches may switch


def test_collision_along_the_path_only_does_not_steer():
    rule, plan, context = cases()["collision"]
    direction = descent(plan, context, rule, STANDING, sideways=False)
    assert (direction[..., 1] == 0).all() and float(direction[0, 1:, 0].min()) == pytest.approx(-1.0)  # it brakes
    assert float(pushed(plan, direction)[..., 1].abs().max()) == 0.0


def test_the_size_is_the_smallest_that_halves_the_cost():
    rule, plan, context = cases()["lane"]
    direction = descent(plan, context, rule, STANDING, sideways=True)
    size = float(amplitude_of(plan, context, rule, STANDING, direction))
    costs = {a: float(rule_costs(pushed(plan, a * direction), context, [rule])) for a in AMPLITUDES}
    before = float(rule_costs(plan, context, [rule]))
    assert costs[size] <= 0.5 * before
    assert all(costs[a] > 0.5 * before for a in AMPLITUDES if a < size)
    nowhere = torch.zeros_like(direction)
    assert float(amplitude_of(plan, context, rule, STANDING, nowhere)) == pytest.approx(AMPLITUDES[0])


def test_a_push_begins_with_what_was_added_before():
    start = torch.tensor([[-1.2, 0.4]], dtype=torch.float64)
    rule, plan, context = cases()["lane"]
    knots = begin(start) + 0.5 * descent(plan, context, rule, start, sideways=True)
    torch.testing.assert_close(knots[:, 0], start)
    felt = accelerations(knots, torch.zeros(1), 80)
    assert float((felt[:, 0] - start).abs().max()) < 0.2 and float(felt.diff(dim=1).abs().max()) < 0.2
