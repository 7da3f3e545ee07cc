"""The tracker's reference: the car goes where a plan that starts at it leads, tight bends included."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from radp.integrations.nuplan_devkit import world_poses
from radp.planners.takeover import Takeover
from radp.sim.bicycle import AX, HEADING, STEERING, VX, WHEEL_BASE
from radp.sim.controller import drive, followed_trajectories
from radp.sim.observation import Observation
from radp.sim.plan import Plan
from radp.sim.reference import tracker_reference
from radp.sim.simulate import simulate
from radp.sim.tracker import track
from tests.sim.made_worlds import RandomPlanner, short_scenarios

RADIUS, SPEED, LOOK = 7.0, 3.5, 0.6
NOW = [VX, AX, STEERING]


def bend(way: np.ndarray) -> np.ndarray:
    """(..., 3) poses on a right turn of 90 degrees with radius 7 m that begins 6 m ahead of the origin."""
    turned = np.clip((way - 6.0) / RADIUS, 0.0, np.pi / 2)
    out = np.maximum(way - 6.0 - RADIUS * np.pi / 2, 0.0)
    x = np.minimum(way, 6.0) + RADIUS * np.sin(turned)
    return np.stack((x, -RADIUS * (1 - np.cos(turned)) - out, -turned), -1)


def plan_from(ego: np.ndarray) -> torch.Tensor:
    """A plan (1, 80, 4) that starts at the car and is on the bend's line again after 2 s."""
    line = bend(np.arange(0.0, 40.0, 0.02))
    at = int(np.hypot(line[:, 0] - ego[0], line[:, 1] - ego[1]).argmin())
    poses = bend(0.02 * at + SPEED * 0.1 * np.arange(81))
    aside = -np.sin(poses[0, 2]) * (ego[0] - poses[0, 0]) + np.cos(poses[0, 2]) * (ego[1] - poses[0, 1])
    slant = SPEED * np.tan(ego[HEADING] - poses[0, 2])
    s = np.clip(0.1 * np.arange(81) / 2.0, 0.0, 1.0)
    offset = aside * (1 - 3 * s**2 + 2 * s**3) + 2.0 * slant * s * (1 - s) ** 2
    xy = poses[:, :2] + offset[:, None] * np.stack((-np.sin(poses[:, 2]), np.cos(poses[:, 2])), -1)
    c, n = np.cos(ego[HEADING]), np.sin(ego[HEADING])
    own = (xy - ego[:2]) @ np.array([[c, -n], [n, c]])
    step = np.diff(own, axis=0)
    heading = np.arctan2(step[:, 1], step[:, 0])
    return torch.from_numpy(np.column_stack((own[1:], np.cos(heading), np.sin(heading))))[None]


def worst_offset(look: float | None) -> float:
    """Metres that the car swings out of the bend, planning anew at every step."""
    ego = np.zeros((1, 11))
    ego[0, VX] = SPEED
    line, worst = bend(np.arange(0.0, 40.0, 0.02)), 0.0
    for _ in range(60):
        plan = Plan(plan_from(ego[0]))
        if look is not None:
            plan = replace(plan, reference=tracker_reference(plan.trajectory, torch.from_numpy(ego[:, NOW]), look))
        ego = drive(ego, followed_trajectories(plan, 1), np.array([0.1]))
        worst = max(worst, float(np.hypot(line[:, 0] - ego[0, 0], line[:, 1] - ego[0, 1]).min()))
    return worst


def test_the_car_stays_on_a_tight_bend_only_with_the_reference() -> None:
    assert worst_offset(None) > 0.65
    assert worst_offset(LOOK) < 0.3  # a line whose curvature jumps cannot be followed exactly


def test_the_tracker_asks_for_the_steering_that_gives_the_heading_of_the_plan() -> None:
    plans = torch.cat([plan_from(np.r_[bend(np.array(way)), np.zeros(8)]) for way in (2.0, 5.0, 9.0, 14.0)])
    steering = torch.tensor([0.0, -0.1, -0.3, -0.4], dtype=torch.float64)
    now = torch.stack((torch.full((4,), SPEED), torch.zeros(4), steering), -1)
    bent = tracker_reference(plans, now, LOOK)
    times, work = np.arange(81) * 100_000, np.zeros((8, 90))
    for plan, reference, delta in zip(plans.numpy(), bent.numpy(), steering.tolist()):
        poses = np.zeros((81, 3))
        poses[1:] = np.column_stack((reference[:, :2], np.arctan2(reference[:, 3], reference[:, 2])))
        asked = track(np.zeros(3), SPEED, delta, 0, times, poses, 81, work)[1]
        # the bicycle, step by step: the heading after the time to look ahead, at the plan's speed
        heading, angle = 0.0, delta
        for _ in range(6):
            heading += SPEED * 0.1 * (angle + asked * 0.1 / 0.15 * 0.05) / WHEEL_BASE
            angle += asked * 0.1 / 0.15 * 0.1
        assert heading == pytest.approx(np.arctan2(plan[5, 3], plan[5, 2]), abs=0.01)


def test_nothing_is_bent_where_nothing_is_to_be_steered() -> None:
    straight = torch.zeros(2, 80, 4, dtype=torch.float64)
    straight[0, :, 0], straight[1, :, 0] = 0.5 * torch.arange(1, 81), 0.02 * torch.arange(1, 81)
    straight[..., 2] = 1.0
    bent = tracker_reference(straight, torch.tensor([[5.0, 0.0, 0.0], [0.2, 0.0, 0.3]]), LOOK)
    torch.testing.assert_close(bent, straight, rtol=0.0, atol=1e-6)  # the second one creeps


def overshoot(speed: float, look: float | None) -> float:
    """Metres beyond the place where plans stop, made anew at every step: with a steady deceleration, in 4 s."""
    ego, place = np.zeros((1, 11)), 2 * speed
    ego[0, VX] = speed
    for _ in range(100):
        v, left = max(ego[0, VX], 0.05), max(place - ego[0, 0], 1e-3)
        t = np.minimum(0.1 * np.arange(1, 81), 2 * left / v)
        states = np.column_stack((v * t - v * v * t * t / (4 * left), np.zeros(80), np.ones(80), np.zeros(80)))
        plan = Plan(torch.from_numpy(states)[None])
        if look is not None:
            plan = replace(plan, reference=tracker_reference(plan.trajectory, torch.from_numpy(ego[:, NOW]), look))
        ego = drive(ego, followed_trajectories(plan, 1), np.array([0.1]))
    assert abs(ego[0, VX]) < 0.02
    return float(ego[0, 0] - place)


@pytest.mark.parametrize("speed", [3.0, 8.0])
def test_the_car_stops_where_the_plan_does_only_with_the_reference(speed: float) -> None:
    assert overshoot(speed, None) > 0.15 * speed
    assert abs(overshoot(speed, LOOK)) < 0.03 * speed


def test_a_car_that_comes_to_rest_is_left_to_rest() -> None:
    """Just above and below 0.2 m/s the tracker has two laws; a reference must not use the step between them."""
    for speed, rate in product((0.24, 0.21, 0.2, 0.18, 0.1, 0.0), (0.3, 1.0, 3.0)):
        way = speed / rate * (1 - np.exp(-rate * 0.1 * np.arange(1, 81)))
        plan = torch.zeros(1, 80, 4, dtype=torch.float64)
        plan[0, :, 0], plan[..., 2] = torch.from_numpy(way), 1.0
        for accel in (-0.4, 0.0, 0.4):
            moved = tracker_reference(plan, torch.tensor([[speed, accel, 0.0]]), LOOK)
            assert float((moved - plan).abs().max()) < 0.5, (speed, rate, accel)


class Bent(RandomPlanner):
    """Plans as a wanderer does, with a reference that turns to the left."""

    def plan(self, observation: Observation) -> Plan:
        plan = super().plan(observation)
        turned = torch.atan2(plan.trajectory[..., 3], plan.trajectory[..., 2]) + 0.02 * torch.arange(1, 81)
        direction = torch.stack((turned.cos(), turned.sin()), -1)
        return replace(plan, reference=torch.cat((plan.trajectory[..., :2], direction), -1))


def test_the_controller_follows_the_reference_and_the_drive_keeps_the_plan() -> None:
    scenarios = short_scenarios(1)
    plain, bent = (
        next(iter(simulate(one, scenarios, agents="nonreactive", keep_plans=True))) for one in (RandomPlanner(), Bent())
    )
    assert plain.plans is not None and bent.plans is not None
    np.testing.assert_array_equal(plain.plans[0], bent.plans[0])
    assert np.abs(plain.ego[3:, :2] - bent.ego[3:, :2]).max() > 0.05
    exact = [next(iter(simulate(p, scenarios, controller="perfect"))) for p in (RandomPlanner(), Bent())]
    np.testing.assert_array_equal(exact[0].ego, exact[1].ego)  # perfect tracking needs no reference


def test_a_takeover_and_the_devkit_follow_the_reference() -> None:
    scenario = short_scenarios(1)[0]
    taken = Takeover(Bent(), RandomPlanner(), {scenario.token: 1000})
    alone, together = (next(iter(simulate(p, [scenario], agents="nonreactive"))) for p in (Bent(), taken))
    np.testing.assert_allclose(together.ego, alone.ego, atol=1e-9)
    still = torch.tensor([1.0, 0.0, 1.0, 0.0]).expand(1, 80, 4)
    poses, _ = world_poses(Plan(still, reference=still + still.new_tensor([0.0, 0.5, 0.0, 0.0])), (10.0, 20.0, 0.0))
    np.testing.assert_allclose(poses[1], (11.0, 20.5, 0.0))
