"""The memory of the worlds: history from the log, views, seeds, one step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from radp.scenario import Ego
from radp.sim.agents.replay import ReplayAgents
from radp.sim.controller import trajectories_from_plan
from radp.sim.observation import HISTORY, lights_at
from radp.sim.plan import Plan
from radp.sim.world import PAST, World
from radp.sources.synthetic import make_scenario
from tests.sim.made_worlds import empty_of_agents, short_scenarios, without_lights


def ahead(worlds: int, speed: float = 5.0) -> Plan:
    """Straight on."""
    states = torch.zeros(worlds, 80, 4, dtype=torch.float64)
    states[..., 0] = speed * 0.1 * torch.arange(1, 81)
    states[..., 2] = 1.0
    return Plan(states)


def advance(world: World, plan: Plan) -> None:
    world.steer(np.arange(len(world.scenarios)), trajectories_from_plan(plan, len(world.scenarios)))
    world.tick()


@pytest.mark.parametrize("history", (0, 7, 20, 30))
def test_history_comes_from_the_log(history: int) -> None:
    scenario = make_scenario(3, agents=5, frames=15, history=history)
    seen = World([scenario], ReplayAgents).observe()
    known = min(history, PAST) + 1
    assert seen.ego.shape == (1, HISTORY, len(Ego))
    assert seen.ego_valid[0].tolist() == [False] * (HISTORY - known) + [True] * known
    log = slice(history + 1 - known, history + 1)
    np.testing.assert_array_equal(seen.ego[0, -known:], scenario.ego[log])
    np.testing.assert_array_equal(seen.time_us[0, -known:], scenario.time_us[log])
    np.testing.assert_array_equal(seen.agents[0, -known:], scenario.tracks.state[:, log].swapaxes(0, 1))
    np.testing.assert_array_equal(seen.agent_valid[0, -known:], scenario.tracks.valid[:, log].T)
    assert not seen.agent_valid[0, :-known].any()
    assert not seen.ego[0, :-known].any()
    assert (np.diff(seen.time_us[0]) == 100_000).all()


def test_observation_is_a_view_and_a_choice_of_worlds_a_copy() -> None:
    world = World(short_scenarios(4), ReplayAgents)
    for rows in (slice(None), slice(0, 2)):
        seen = world.observe(rows)
        assert np.shares_memory(seen.ego, world.ego)
        assert np.shares_memory(seen.agents, world.agents)
    chosen = world.observe(np.array([3, 1]))
    assert [briefing.token for briefing in chosen.briefings] == [world.scenarios[3].token, world.scenarios[1].token]
    np.testing.assert_array_equal(chosen.ego, world.ego[[3, 1], :HISTORY])


def test_lights_are_those_of_each_world_and_of_the_step() -> None:
    random, scenarios = np.random.default_rng(0), short_scenarios(3)
    for i, scenario in enumerate(scenarios):
        shape = scenario.lights.state.shape
        scenarios[i] = replace(scenario, lights=replace(scenario.lights, state=random.integers(0, 4, shape, np.uint8)))
    world = World([*scenarios, without_lights(scenarios[0])], ReplayAgents)
    for world.step in (0, 5, 25):  # the shortest log ends at step 20: its last lights stay
        for rows in (slice(0, 4), np.array([3, 1])):
            seen = world.observe(rows)
            for i, b in enumerate(range(4)[rows] if isinstance(rows, slice) else rows):
                lanes, states = seen.lights(i)
                np.testing.assert_array_equal(lanes, world.scenarios[b].lights.lane)
                np.testing.assert_array_equal(states, lights_at(world.scenarios[b], world.step))


def test_history_moves_on_with_what_was_driven() -> None:
    scenarios = short_scenarios(3)
    world = World(scenarios, ReplayAgents)
    before = world.observe().ego.copy()
    advance(world, ahead(3))
    seen = world.observe()
    assert seen.step == 1
    np.testing.assert_array_equal(seen.ego[:, :-1], before[:, 1:])
    for b, scenario in enumerate(scenarios):
        now = scenario.ego[scenario.start]
        moved = np.hypot(*(seen.ego[b, -1, :2] - now[:2]))
        assert moved == pytest.approx(abs(now[Ego.VX]) * 0.1, abs=1e-9)
        np.testing.assert_array_equal(
            seen.agents[b, -1, : len(scenario.tracks)], scenario.tracks.state[:, scenario.start + 1]
        )


def test_step_is_the_difference_of_the_stamps() -> None:
    scenario = make_scenario(1, agents=2, frames=10)
    jitter = np.random.default_rng(0).integers(-4000, 4000, len(scenario.time_us))
    uneven = replace(scenario, time_us=scenario.time_us + jitter)
    world = World([uneven], ReplayAgents)
    advance(world, ahead(1))
    dt = (uneven.time_us[uneven.start + 1] - uneven.time_us[uneven.start]) * 1e-6
    now = uneven.ego[uneven.start]
    assert np.hypot(*(world.ego[0, PAST + 1, :2] - now[:2])) == pytest.approx(now[Ego.VX] * dt, abs=1e-9)
    assert world.observe().time_us[0, -1] == uneven.time_us[uneven.start + 1]


def test_seeds_belong_to_seed_scenario_and_step() -> None:
    scenarios = short_scenarios(3)
    together, alone = World(scenarios, ReplayAgents, seed=7), World(scenarios[2:], ReplayAgents, seed=7)
    other = World(scenarios, ReplayAgents, seed=8)
    seen = []
    for _ in range(5):
        assert together.observe().seeds[2] == alone.observe().seeds[0]
        seen += together.observe().seeds.tolist() + other.observe().seeds.tolist()
        for world in (together, alone, other):
            advance(world, ahead(len(world.scenarios)))
    assert len(set(seen)) == 30


def test_world_without_agents() -> None:
    world = World([empty_of_agents(make_scenario(0, agents=1, frames=5))], ReplayAgents)
    advance(world, ahead(1))
    assert world.observe().agents.shape == (1, HISTORY, 0, 5)


def test_perfect_tracking_lands_on_the_plan() -> None:
    scenario = make_scenario(2, agents=2, frames=10)
    world = World([scenario], ReplayAgents, controller="perfect")
    states = torch.zeros(1, 40, 4, dtype=torch.float64)
    turn = 0.02 * torch.arange(1, 41, dtype=torch.float64)
    states[0, :, 0], states[0, :, 1] = 30 * turn.sin(), 30 * (1 - turn.cos())  # circle of 30 m radius at 6 m/s
    states[0, :, 2], states[0, :, 3] = turn.cos(), turn.sin()
    advance(world, Plan(states))
    before, after = world.ego[0, PAST], world.ego[0, PAST + 1]
    c, s = np.cos(before[2]), np.sin(before[2])
    x, y = states[0, 0, :2].numpy()
    np.testing.assert_allclose(after[:2], before[:2] + np.array([c * x - s * y, s * x + c * y]), atol=1e-9)
    assert after[Ego.HEADING] - before[Ego.HEADING] == pytest.approx(0.02, abs=1e-9)
    assert after[Ego.VX] == pytest.approx(6.0, rel=1e-3)
    assert after[Ego.YAW_RATE] == pytest.approx(0.2, rel=1e-3)
    assert np.tan(after[Ego.STEERING]) == pytest.approx(3.089 / 30, rel=1e-3)
