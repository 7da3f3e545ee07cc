"""Log replay and constant velocity: plans with known answers."""

import numpy as np
import pytest
import torch

from radp.planners import load_planner, plan_from_world
from radp.scenario import Ego, Scenario
from radp.sim.plan import Plan
from radp.sim.planner import start_planner
from radp.sim.replay import observe_logs
from tests.made_scenarios import made_scenario
from tests.planners.driven import driven


def replayed(scenario: Scenario, step: int) -> Plan:
    planner = load_planner("log_replay")
    start_planner(planner, [scenario])
    return planner.plan(observe_logs([scenario], step))


def test_log_replay_returns_the_experts_states_in_the_ego_frame():
    scenario = made_scenario(radius=50.0)
    plan = replayed(scenario, step=30)
    assert plan.trajectory.shape == (1, 81, 4)
    np.testing.assert_allclose(plan.times[0], np.arange(81) * 0.1, atol=1e-9)
    np.testing.assert_allclose(plan.trajectory[0, 0], [0.0, 0.0, 1.0, 0.0], atol=1e-9)
    now, later = scenario.ego[30], scenario.ego[70]
    c, s = np.cos(now[Ego.HEADING]), np.sin(now[Ego.HEADING])
    dx, dy = later[:2] - now[:2]
    turned = later[Ego.HEADING] - now[Ego.HEADING]
    np.testing.assert_allclose(
        plan.trajectory[0, 40], [c * dx + s * dy, c * dy - s * dx, np.cos(turned), np.sin(turned)], atol=1e-9
    )


def test_log_replay_goes_on_at_constant_velocity_where_the_log_ends():
    plan = replayed(made_scenario(speed=8.0), step=145)
    trajectory = plan.trajectory[0].numpy()
    np.testing.assert_allclose(trajectory[:, 0], 0.8 * np.arange(81), atol=1e-9)
    np.testing.assert_allclose(np.diff(plan.times[0]), 0.1, atol=1e-9)


def test_log_replay_needs_the_log_from_start():
    planner = load_planner("log_replay")
    start_planner(planner, [made_scenario()])
    with pytest.raises(ValueError, match=r"no log of 'made': start\(scenarios\) comes before plan"):
        planner.plan(observe_logs([made_scenario()]))


def test_log_replay_drives_as_the_expert():
    scenario = made_scenario(radius=60.0)
    rollout, _ = driven(load_planner("log_replay"), scenario)
    gap = np.hypot(*(rollout.ego[:, :2] - scenario.ego[:-1, :2]).T)
    assert gap.max() < 0.3


def test_constant_velocity_is_straight_ahead():
    plan = load_planner("constant_velocity").plan(observe_logs([made_scenario(speed=6.0, radius=30.0)], step=60))
    assert plan.trajectory.shape == (1, 33, 4)
    np.testing.assert_allclose(plan.times[0], 0.25 * np.arange(33))
    np.testing.assert_allclose(plan.trajectory[0, :, 0], 1.5 * np.arange(33))
    assert torch.equal(plan.trajectory[0, :, 1:], torch.tensor([0.0, 1.0, 0.0]).double().expand(33, 3))


def test_world_poses_become_a_plan_in_the_ego_frame():
    observation = observe_logs([made_scenario(radius=30.0)], step=80)
    now = observation.ego[:, -1, :3]
    ahead = now.copy()
    ahead[:, 0] += 5.0 * np.cos(now[:, 2]) - 2.0 * np.sin(now[:, 2])
    ahead[:, 1] += 5.0 * np.sin(now[:, 2]) + 2.0 * np.cos(now[:, 2])
    ahead[:, 2] += 0.3
    plan = plan_from_world(observation, ahead[:, None])
    np.testing.assert_allclose(plan.trajectory[0, 0], [5.0, 2.0, np.cos(0.3), np.sin(0.3)], atol=1e-9)
    assert plan.times is None
