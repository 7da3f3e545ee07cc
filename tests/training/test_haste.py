"""Driving on where the way is free, by hand-made scenes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from radp.model.sampler import plans_in_metres
from radp.rules import RuleContext
from radp.rules.motion import way_length, with_origin
from radp.runs.errors import BadInput
from radp.scene.scene import LaneColumn
from radp.training.align import check_way
from radp.training.haste import driven_on
from radp.training.settings import AlignConfig
from tests.rules.hand_made import curved_plan, scene, straight_plan, straight_route
from tests.training.test_anchored import AVOID, StateBatch, task_of

ROUTE = straight_route(pieces=6)


def free(plan=None, agents=(), moment=None, **changes) -> bool:
    moment = scene(ROUTE, agents=list(agents), **changes) if moment is None else moment
    context = RuleContext.from_scene(moment, logged=True)
    return bool(driven_on(straight_plan(speed=10.0) if plan is None else plan, [context], 0.5)[1])


def test_a_faster_plan_is_on_the_same_path_and_at_most_two_metres_a_second_faster():
    plan = curved_plan(8.0, 1 / 200.0)
    context = RuleContext.from_scene(scene(ROUTE))
    faster = driven_on(plan, [replace(context, route=RuleContext.from_scene(scene(around(200.0))).route)], 0.5)[0]
    radius = (faster[..., 0].square() + (faster[..., 1] - 200.0).square()).sqrt()
    torch.testing.assert_close(radius, torch.full_like(radius, 200.0), atol=0.5, rtol=0)  # goes on straight at its end
    speed = torch.diff(with_origin(faster)[..., :2], dim=1).norm(dim=-1)[0] / 0.1
    assert float(speed[0]) == pytest.approx(8.0, abs=0.01) and float(speed[-1]) == pytest.approx(10.0, abs=0.01)
    assert float(torch.diff(speed).max()) <= 0.05 + 1e-3 and bool((torch.diff(speed) >= -1e-3).all())
    stops = driven_on(straight_plan(speed=4.0, accel=-1.0), [context], 0.5)[0]
    speed = torch.diff(with_origin(stops)[0, :, 0]) / 0.1
    assert float(speed[19]) == pytest.approx(2.5, abs=0.01) and float(speed[40:].abs().max()) == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("x", "speed", "wanted"),
    [
        (60.0, 14.0, True),  # far ahead, and faster
        (20.0, 13.0, False),  # one second and a half ahead: no place to make up
        (60.0, 0.0, False),  # a standing car on the way
        (160.0, 0.0, True),  # beyond it
        (-30.0, 5.0, True),  # behind
    ],
)
def test_the_way_is_free_where_nobody_is_within_a_second_and_a_half(x, speed, wanted):
    assert free(agents=[(x, 0.0, 0.0, speed, 4.5)]) == wanted


def test_haste_is_the_most_that_may_be_driven():
    plan = straight_plan(speed=10.0)
    for limit, gained in ((15.0, 2.0), (11.5, 1.0), (10.6, 0.5), (10.2, 0.0)):
        faster, may = driven_on(plan, [RuleContext.from_scene(scene(ROUTE, limit=limit))], 0.5)
        speed = torch.diff(with_origin(faster)[0, :, 0]) / 0.1
        assert float(speed[-1]) == pytest.approx(10.0 + gained, abs=0.01) and bool(may) == (gained > 0)


def test_somebody_who_crosses_has_a_second_and_a_half():
    def crosses(seconds: float):  # at 40 m, where the faster plan is after 3.7 s
        return (42.0, -5.0 * seconds, np.pi / 2, 5.0, 4.5)

    assert not free(agents=[crosses(3.7)]) and not free(agents=[crosses(2.4)]) and not free(agents=[crosses(5.0)])
    assert free(agents=[crosses(0.0)]) and free(agents=[crosses(7.0)])


def test_who_is_not_known_any_longer_stands_where_it_was():
    moment = scene(ROUTE, agents=[(60.0, 0.0, 0.0, 12.0, 4.5)])
    future = torch.zeros(1, 6, 80, 3, dtype=torch.float64)
    future[0, 0, :, 0] = 60.0 + 1.2 * torch.arange(1, 81)
    assert free(moment=replace(moment, neighbor_agents_future=future))
    future[0, 0, 10:] = 0.0  # lost after a second, at 72 m
    assert not free(moment=replace(moment, neighbor_agents_future=future))


def test_limit_bend_red_light_and_road_are_kept_and_who_plans_to_stand_stands():
    assert free() and free(limit=None)
    assert not free(limit=10.2)
    assert free(curved_plan(10.0, 1 / 150.0), moment=scene(around(150.0)))
    assert not free(curved_plan(10.0, 1 / 60.0), moment=scene(around(60.0)))  # 2.4 m/s2 at 12 m/s
    assert not free(straight_plan(speed=0.2)) and free(straight_plan(speed=1.0))
    red = ROUTE.clone()
    red[1, :, LaneColumn.IS_UNKNOWN], red[1, :, LaneColumn.IS_RED] = 0.0, 1.0  # from 28 m on
    assert not free(moment=scene(red))
    assert free(straight_plan(speed=10.0, accel=-3.0), moment=scene(red))  # stops at 16 m, at 19 m if it is faster


def around(radius: float) -> torch.Tensor:
    """A route that turns left with this radius."""
    route = straight_route(pieces=6, start=0.0)
    angle = route[..., LaneColumn.X] / radius
    route[..., LaneColumn.X], route[..., LaneColumn.Y] = radius * angle.sin(), radius * (1 - angle.cos())
    step = torch.diff(route[..., :2], dim=1)
    route[:, :-1, LaneColumn.DX], route[:, :-1, LaneColumn.DY] = step[..., 0], step[..., 1]
    left = torch.stack((-angle.sin(), angle.cos()), -1)
    route[..., LaneColumn.LEFT_X], route[..., LaneColumn.LEFT_Y] = (1.75 * left).unbind(-1)
    route[..., LaneColumn.RIGHT_X], route[..., LaneColumn.RIGHT_Y] = (-1.75 * left).unbind(-1)
    return route


def test_states_that_need_no_mending_learn_to_drive_on_where_the_way_is_free(monkeypatch):
    task = task_of(way="ranked", focus=[0], copies=True, haste=0.5)
    batch = StateBatch(np.array([1, 0, 3]), task.samples.read(np.array([1, 0, 3])))
    encoding = task.own.encoding(batch.rows, task.reference.observe(batch.scene))
    seen = []

    def drives_on(plan, contexts, haste):
        seen.append((len(plan), haste))
        return plan * 1.1, torch.tensor([True, False])

    monkeypatch.setattr("radp.training.own_plans.driven_on", drives_on)
    monkeypatch.setattr("radp.training.own_plans.least_change", lambda *given: torch.tensor([3]))
    first, mended, third = task.own.plans(batch.rows, batch.scene, encoding)
    assert seen == [(2, 0.5)] and mended.better is not None and third.better is None
    learnt = first.drawn.clone()
    learnt[0] = first.better
    own = plans_in_metres(task.base, first.drawn[None], batch.scene[[0]])[0, 0]
    metres = task.own.space.to_metres(learnt[None])[0, 0, 1:]
    torch.testing.assert_close(metres[:, :2], 1.1 * own[:, :2], atol=1e-3, rtol=1e-3)
    assert float(way_length(metres[None])) > float(way_length(own[None]))


def test_haste_needs_copies():
    with pytest.raises(BadInput, match="--haste needs"):
        check_way(AlignConfig(avoid=replace(AVOID, way="ranked", haste=0.5)))
    check_way(AlignConfig(avoid=replace(AVOID, way="ranked", copies=True, haste=0.5)))
