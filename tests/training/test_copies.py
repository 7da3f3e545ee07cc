"""Copies of a plan in another time, and which of them mends it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from radp.rules import RuleContext
from radp.rules.contact import first_contact, first_near_miss
from radp.rules.motion import way_length, with_origin
from radp.training.copies import BRAKING, FASTER, HASTE, KEPT, RELEASED, as_driven, copies_of, least_change
from tests.rules.hand_made import scene, straight_plan, straight_route

LEAD = (30.0, 0.0, 0.0, 0.0, 4.5)  # a standing car, 30 m ahead


def chosen_among(plan, *agents):
    context = RuleContext.from_scene(scene(straight_route(), agents=list(agents)))
    copies = copies_of(plan)
    choice = int(least_change(plan, copies, [context]))
    return choice, copies[0, choice : choice + 1], context


def curve(radius: float = 30.0, speed: float = 8.0):
    angle = speed / radius * 0.1 * torch.arange(1, 81, dtype=torch.float64)
    return torch.stack((radius * angle.sin(), radius * (1 - angle.cos()), angle.cos(), angle.sin()), -1)[None]


def test_copies_keep_the_path_and_change_the_time():
    plan = curve()
    copies = copies_of(plan)
    assert copies.shape == (1, len(BRAKING) * len(KEPT) * len(RELEASED) + len(HASTE), 80, 4)
    braked, hastened = copies[0, : -len(HASTE)], copies[0, -len(HASTE) :]
    radius = (braked[..., 0].square() + (braked[..., 1] - 30.0).square()).sqrt()
    torch.testing.assert_close(radius, torch.full_like(radius, 30.0), atol=0.01, rtol=0)  # chords of the arc
    torch.testing.assert_close(copies[0, ..., 2:].norm(dim=-1), torch.ones(len(copies[0]), 80, dtype=plan.dtype))
    own = way_length(plan)
    assert bool((way_length(braked) <= own + 1e-9).all() and (way_length(hastened) > own).all())
    steps = torch.diff(with_origin(copies[0])[..., :2], dim=1).norm(dim=-1) / 0.1
    assert float(steps.max()) <= 8.0 + FASTER + 1e-6
    change = torch.diff(steps[:-4], dim=1) / 0.1
    assert float(change.min()) > -max(BRAKING) - 0.1 and float((change[:, 1:] - change[:, :-1]).abs().max()) < 6.0


def test_a_stop_is_a_stop_and_a_delay_goes_on():
    speeds = torch.diff(with_origin(copies_of(straight_plan(speed=6.0))[0])[..., 0], dim=1) / 0.1
    hardest = speeds[(len(BRAKING) - 1) * len(KEPT) * len(RELEASED) :][: len(RELEASED)]  # to a stop, released or not
    assert float(hardest[-1, -1]) == pytest.approx(0.0, abs=1e-9)
    assert hardest[:2, -1].tolist() == pytest.approx([6.0, 6.0])
    assert float(hardest[1, 29]) == pytest.approx(0.0, abs=1e-9)  # still standing when it is released


def test_the_copy_that_mends_with_the_least_change_is_chosen():
    plan = straight_plan(speed=10.0)
    choice, mended, context = chosen_among(plan, LEAD)
    assert choice >= 0
    assert float(first_contact(mended, context, 0.6)) > 4.0 and float(first_near_miss(mended, context)) > 4.0
    for other in copies_of(plan)[0]:  # nobody who is as clear is nearer to the plan
        if min(float(first_contact(other[None], context, 0.6)), float(first_near_miss(other[None], context))) > 4.0:
            nearer = (mended - plan)[:, :40, :2].norm(dim=-1).mean() <= (other - plan)[0, :40, :2].norm(dim=-1).mean()
            assert bool(nearer)


def test_what_is_not_urgent_is_left_and_what_is_stays_clear_for_longer():
    further = (36.0, *LEAD[1:])  # a near miss after 2.1 s
    slow, fast = (
        RuleContext.from_scene(scene(straight_route(), agents=[further], speed=speed)) for speed in (1.0, 10.0)
    )
    plan = straight_plan(speed=10.0)
    copies = copies_of(plan)
    assert int(least_change(plan, copies, [slow], urgent=True)) == -1
    assert int(least_change(plan, copies, [fast], urgent=True)) == int(least_change(plan, copies, [fast])) >= 0


def test_nothing_is_mended_where_nothing_is_wrong_and_where_nothing_helps():
    assert chosen_among(straight_plan(speed=10.0))[0] == -1
    assert chosen_among(straight_plan(speed=4.0), LEAD)[0] == -1  # 4 s at 4 m/s: far from it
    assert chosen_among(straight_plan(speed=10.0), (12.0, 0.0, 0.0, 0.0, 4.5))[0] == -1  # 6 m left: too late


def test_driving_on_is_chosen_where_it_is_the_way_out():
    crosses = (7.0, -20.0, np.pi / 2, 6.0, 4.5)  # meets the rear of the ego after 2.8 s; too near to stop before it
    choice, mended, context = chosen_among(straight_plan(speed=3.0), crosses)
    assert choice >= len(copies_of(straight_plan())[0]) - len(HASTE)
    assert float(first_contact(mended, context, 0.3)) > 4.0


def test_a_copy_goes_on_its_own_path_as_the_drive_did_and_comes_back_where_the_drive_ends():
    plan = curve()
    speeds = torch.linspace(8.0, 2.0, 80, dtype=plan.dtype)
    drive = torch.zeros(1, 80, 3, dtype=plan.dtype)
    drive[0, :, 0] = (0.1 * speeds).cumsum(0)  # straight on: the path is the plan's nevertheless
    known = torch.ones(1, 80, dtype=torch.bool)
    whole = as_driven(plan, drive, known)
    radius = (whole[..., 0].square() + (whole[..., 1] - 30.0).square()).sqrt()
    torch.testing.assert_close(radius, torch.full_like(radius, 30.0), atol=0.01, rtol=0)
    went = torch.diff(with_origin(whole)[..., :2], dim=1).norm(dim=-1)[0] / 0.1
    torch.testing.assert_close(went, speeds, atol=0.02, rtol=0)
    known[:, 40:] = False
    half = torch.diff(with_origin(as_driven(plan, drive, known))[..., :2], dim=1).norm(dim=-1)[0] / 0.1
    torch.testing.assert_close(half[:40], speeds[:40], atol=0.02, rtol=0)
    assert bool((torch.diff(half[41:]) > 0).all()) and 7.0 < float(half[-1]) < 8.0
    torch.testing.assert_close(as_driven(plan, plan[..., :3], torch.ones(1, 80, dtype=torch.bool)), plan)
