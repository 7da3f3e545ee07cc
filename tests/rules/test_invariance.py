"""Rules do not see where the world's origin is, nor padding; and every hinge is silent two sigma inside its bound."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from radp.geometry.ragged import Polygons, Ragged
from radp.rules import RuleContext, default_rules, rule_costs, rule_gradients
from radp.rules.penalty import penalty
from radp.scenario import Scenario
from radp.scene.builder import SceneConfig, build_scenes
from radp.scene.scene import LaneColumn
from radp.sim.replay import observe_logs
from radp.sources.synthetic import make_scenario
from tests.rules.hand_made import curved_plan, scene, straight_plan, straight_route

NAMES = [rule.name for rule in default_rules()]
SCENES = SceneConfig(route_order="lanes", ego_dynamics=True, lane_length=50.0)
SCENARIO = make_scenario(3, agents=20)


def moved(scenario: Scenario, angle: float, shift: tuple[float, float]) -> Scenario:
    """The same log in a world that is turned about its origin and then shifted."""
    c, s = np.cos(angle), np.sin(angle)
    turn = np.array([[c, s], [-s, c]])

    def points(xy: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(xy @ turn + shift)

    def walk(value):
        if isinstance(value, Ragged) and value.values.ndim == 2:
            return replace(value, values=points(value.values))
        if isinstance(value, Polygons):
            return replace(value, rings=walk(value.rings))
        if is_dataclass(value):
            return replace(value, **{f.name: walk(getattr(value, f.name)) for f in fields(value)})
        return value

    ego, state = scenario.ego.copy(), scenario.tracks.state.copy()
    for poses in (ego, state):
        poses[..., :2], poses[..., 2] = points(poses[..., :2]), poses[..., 2] + angle
    state[..., 3:5] = state[..., 3:5] @ turn  # of tracks, velocities stand in the world
    state[~scenario.tracks.valid] = 0.0
    return replace(scenario, map=walk(scenario.map), ego=ego, tracks=replace(scenario.tracks, state=state), goal=None)


@settings(deadline=None, max_examples=6)
@given(st.floats(-3.1, 3.1), st.floats(-500, 500), st.floats(-500, 500), st.floats(0.6, 1.6))
def test_costs_do_not_change_when_the_world_is_turned_and_moved(angle, x, y, faster):
    scenes = [
        build_scenes(observe_logs([scenario], 40), SCENES)
        for scenario in (replace(SCENARIO, goal=None), moved(SCENARIO, angle, (x, y)))
    ]
    plan = curved_plan(faster * float(SCENARIO.ego[SCENARIO.start + 40, 3]) + 1.0, 0.01).float()
    here, there = (rule_gradients(plan, RuleContext.from_scene(one)) for one in scenes)
    torch.testing.assert_close(here[0], there[0], rtol=2e-2, atol=1e-4)  # scenes are float32
    assert float(here[0].sum()) > 0


def test_padding_with_agents_and_lanes_changes_nothing():
    agents = [(22.0, 0.4, 0.0, 2.0, 4.5), (30.0, -1.0, 0.0, 1.0, 4.5)]
    plan = curved_plan(8.3, 0.01)
    tight = scene(straight_route(lanes=2), agents, speed=8.0, limit=8.0, slots=2, route_slots=8)
    wide = scene(straight_route(lanes=2), agents, speed=8.0, limit=8.0, slots=30, route_slots=25)
    for a, b in zip(*(rule_gradients(plan, RuleContext.from_scene(one)) for one in (tight, wide))):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


def test_steps_that_are_not_valid_change_nothing():
    given = scene(straight_route(), [(20.0, 0.0, 0.0, 0.0, 4.5)], speed=8.0)
    context, plan = RuleContext.from_scene(given), straight_plan(8.0)
    gone = context.agent_valid.clone()
    gone[:, :, 20:] = False
    garbage = context.agents.clone()
    garbage[:, :, 20:] = 7.0
    known, with_garbage = replace(context, agent_valid=gone), replace(context, agent_valid=gone, agents=garbage)
    for a, b in zip(rule_gradients(plan, known), rule_gradients(plan, with_garbage)):
        torch.testing.assert_close(a, b, rtol=0, atol=0)
    assert not torch.equal(rule_costs(plan, known), rule_costs(plan, context))


def wide_route(y: float = 0.0) -> torch.Tensor:
    """Lanes of 10 m whose middle lies y metres to the right of the ego."""
    route = straight_route(pieces=8)
    route[..., LaneColumn.Y] = -y
    route[..., LaneColumn.LEFT_Y], route[..., LaneColumn.RIGHT_Y] = 5.0, -5.0
    return route


@settings(deadline=None, max_examples=25)
@given(st.floats(3.0, 9.0), st.floats(-0.4, 0.4), st.floats(-2.0, 2.0), st.floats(40.0, 200.0))
def test_hinges_are_silent_two_sigma_inside(speed, accel, y, gap):
    """Bounds are kept by two sigma and more: only the pull to the middle of the lane, which is no hinge, remains."""
    others = [(5.2 + 80 + gap, 0.0, 0.0, 20.0, 4.5)]  # far ahead and faster
    context = RuleContext.from_scene(scene(wide_route(y), others, speed=speed, limit=speed + 8 * max(accel, 0) + 2.0))
    context = replace(context, target=torch.zeros(1, dtype=torch.float64))
    plan = straight_plan(speed, accel)
    costs = dict(zip(NAMES, rule_costs(plan, context)[0].tolist()))
    middle = float(penalty(torch.tensor(abs(y), dtype=torch.float64), 2.0))
    assert costs["lane"] - 0.05 * middle < 1e-6
    assert max(costs[name] for name in ("collision", "speed", "kinematics", "comfort")) < 1e-6
    off_line = 0.1 * float(penalty(torch.tensor(abs(y), dtype=torch.float64), 0.5))
    standing_still = 0.2 * float(penalty(torch.tensor(-0.0, dtype=torch.float64), 5.0))
    assert costs["goal"] <= off_line + standing_still + 1e-6


@pytest.mark.parametrize("name", NAMES)
def test_verdict_is_silent_inside_and_loud_outside(name):
    rule = default_rules()[NAMES.index(name)]
    given = scene(wide_route(), [(40.0, 0.0, 0.0, 0.0, 4.5)], speed=8.0, limit=9.0)
    context = replace(RuleContext.from_scene(given), target=torch.tensor([20.0], dtype=torch.float64))
    bad = {
        "collision": straight_plan(8.0),
        "lane": straight_plan(4.0, y=4.5),
        "speed": straight_plan(11.0),
        "kinematics": straight_plan(8.0, accel=7.0),
        "comfort": straight_plan(8.0, accel=-1.5),
        "goal": straight_plan(1.0),
    }[name]
    assert rule.violated(bad, context)
    calm = straight_plan(3.0) if name == "collision" else straight_plan(8.0)
    assert not rule.violated(calm, context)
