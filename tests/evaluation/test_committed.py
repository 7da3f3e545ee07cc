"""Plans driven without replanning: against the closed loop's own step, against re-tracking by hand, and known risks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from radp.evaluation.committed import STEPS, committed_severities, drive_plans
from radp.evaluation.endpoints import COMMITTED
from radp.metrics.score import evaluate
from radp.planners.constant_velocity import ConstantVelocityPlanner
from radp.planners.log_replay import LogReplayPlanner
from radp.scenario import Ego
from radp.sim.bicycle import bicycle_step
from radp.sim.controller import trajectories_from_plan
from radp.sim.plan import Plan
from radp.sim.rollout import Rollout
from radp.sim.simulate import simulate
from radp.sim.tracker import track
from radp.sources.synthetic import make_scenario


def driven(planner, **options) -> Rollout:
    (rollout,) = simulate(planner, [make_scenario(0, **options)], agents="nonreactive", keep_plans=True)
    return rollout


@pytest.fixture(scope="module")
def replayed() -> Rollout:
    return driven(LogReplayPlanner(), agents=4, turn="left")


def test_the_first_step_is_that_of_the_closed_loop(replayed):
    found = drive_plans(replayed)
    assert found.shape == (len(replayed.ego) - STEPS, STEPS + 1, 11)
    np.testing.assert_array_equal(found[:, 0, Ego.VX :], replayed.ego[: len(found), Ego.VX :])
    np.testing.assert_allclose(found[:, 0, :3], replayed.ego[: len(found), :3], atol=1e-9)
    # Plans are kept in float32, and those of the log with its own stamps on an even grid.
    np.testing.assert_allclose(found[:, 1, :2], replayed.ego[1 : len(found) + 1, :2], atol=2e-3)
    np.testing.assert_allclose(found[:, 1, Ego.VX], replayed.ego[1 : len(found) + 1, Ego.VX], atol=2e-2)


def test_later_steps_are_those_of_the_controller_on_the_rest_of_the_plan(replayed):
    found, moment = drive_plans(replayed), 10
    plan = trajectories_from_plan(Plan(torch.from_numpy(replayed.plans[moment : moment + 1].copy())), 1)
    start, state = replayed.ego[moment], replayed.ego[moment]
    for k in range(STEPS):
        c, s = np.cos(state[2] - start[2]), np.sin(state[2] - start[2])
        c0, s0 = np.cos(start[2]), np.sin(start[2])
        gone = np.array([[c0, s0], [-s0, c0]]) @ (state[:2] - start[:2])  # where the ego is in the frame of the plan
        gone_us = replayed.time_us[moment + k] - replayed.time_us[moment]
        poses = plan.poses[0].copy()
        poses[:, :2] = (poses[:, :2] - gone) @ np.array([[c, -s], [s, c]])
        poses[:, 2] -= state[2] - start[2]
        times, reached = plan.times_us[0] - gone_us, np.zeros(11)
        command = track(
            np.zeros(3), state[Ego.VX], state[Ego.STEERING], 0, times, poses, len(times), np.zeros((8, 200))
        )
        dt = (replayed.time_us[moment + k + 1] - replayed.time_us[moment + k]) * 1e-6
        bicycle_step(state, *command, dt, reached)
        state = reached
        np.testing.assert_allclose(found[moment, k + 1], state, atol=1e-6)


def test_severities_have_their_names_and_end_before_the_drive(replayed):
    found = committed_severities(replayed, evaluate(replayed))
    assert set(found) == {e.series for e in COMMITTED}
    for values in found.values():
        assert len(values) == len(replayed.ego) and np.isnan(values[-STEPS:]).all()
        assert not np.isnan(values[:-STEPS]).any()
    assert found["committed_collision"][:-STEPS].max() == 0.0


def test_plans_that_brake_late_touch_what_the_drive_did_not():
    """A car stands in the lane. The drive ends before it; the plan of each moment goes on at its speed."""
    rollout = driven(ConstantVelocityPlanner(), agents=1, turn="straight")
    tracks, t = rollout.agents, 40
    ahead = rollout.ego[t + 10]
    state, valid = tracks.state.copy(), tracks.valid.copy()
    state[0], valid[0] = 0.0, False
    state[0, : t + 6, :3] = ahead[:3]  # there for everyone who looks at samples up to t + 5
    valid[0, : t + 6] = True
    stands = replace(rollout, agents=replace(tracks, state=state, valid=valid))
    found = committed_severities(stands, evaluate(stands))
    plain = committed_severities(rollout, evaluate(rollout))
    speed = rollout.ego[t, Ego.VX]
    assert speed > 3.0
    assert found["committed_ttc"][t - 10] > plain["committed_ttc"][t - 10]
    assert found["committed_collision"][t] > 0.0 and plain["committed_collision"][t] == 0.0
    assert found["committed_collision"][0] == 0.0  # too far away for 2 s


def test_a_plan_that_stands_falls_short():
    rollout = driven(LogReplayPlanner(), agents=0, turn="straight")
    plans = np.zeros_like(rollout.plans)
    plans[..., 2] = 1.0
    found = committed_severities(replace(rollout, plans=plans), evaluate(rollout))
    going = committed_severities(rollout, evaluate(rollout))
    count = len(rollout.ego) - STEPS
    assert (found["committed_goal"][:count] > going["committed_goal"][:count]).all()
    assert found["committed_kinematics"][5] > going["committed_kinematics"][5]


def test_without_plans_nothing_is_known(replayed):
    found = committed_severities(replace(replayed, plans=None), evaluate(replayed))
    assert all(np.isnan(values).all() for values in found.values())
