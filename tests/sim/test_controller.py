"""What counts as a plan, and how it is read."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from radp.sim.controller import PlanError, drive, states_on_grid, trajectories_from_plan
from radp.sim.plan import Plan


def straight(worlds: int = 2, horizon: int = 80, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    states = torch.zeros(worlds, horizon, 4, dtype=dtype)
    states[..., 0] = 0.5 * torch.arange(1, horizon + 1)
    states[..., 2] = 1.0
    return states


def egos(count: int) -> np.ndarray:
    out = np.zeros((count, 11))
    out[:, 3] = np.linspace(2.0, 9.0, count)
    out[:, :3] = np.random.default_rng(0).uniform(-3.0, 3.0, (count, 3))
    out[:, 9] = 0.05
    return out


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (torch.zeros(2, 80, 4), "Tensor"),
        (Plan(torch.zeros(3, 80, 4)), r"\(3, 80, 4\), expected \(2, H, 4\)"),
        (Plan(torch.zeros(2, 80, 3)), r"\(2, 80, 3\)"),
        (Plan(torch.zeros(2, 4)), r"\(2, 4\)"),
        (Plan(torch.zeros(2, 0, 4)), r"\(2, 0, 4\)"),
        (Plan(torch.zeros(2, 80, 4, dtype=torch.int64)), "floats"),
        (Plan(torch.zeros(2, 80, 4), times=torch.zeros(2, 79)), r"times .*\(2, 79\)"),
        (Plan(torch.zeros(2, 80, 4), pressure=torch.zeros(1, 6)), r"pressure .*\(1, 6\)"),
    ],
)
def test_wrong_shapes_are_refused(plan: Plan, words: str) -> None:
    with pytest.raises(PlanError, match=words):
        trajectories_from_plan(plan, 2)


@pytest.mark.parametrize("value", (float("nan"), float("inf"), -float("inf")))
@pytest.mark.parametrize("column", range(4))
def test_values_that_are_not_finite_concern_their_world_alone(value: float, column: int) -> None:
    states = straight()
    states[1, 7, column] = value
    assert trajectories_from_plan(Plan(states), 2).failures == (
        None,
        "the plan holds a value that is not finite at state 7",
    )


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ([0.0, 0.5, 0.5], "do not increase"),
        ([-0.1, 0.5, 0.6], "do not increase"),
        ([0.01, 0.02, 0.03], "ends 0.03 s"),
        ([1.0, 2.0, 200.0], "ends 200 s"),
        ([1.0, float("nan"), 3.0], "not finite at state 1"),
        ([1.0, 2.0, float("inf")], "not finite at state 2"),
    ],
)
def test_wrong_times(times: list[float], words: str) -> None:
    plan = Plan(straight(1, 3), torch.tensor([times], dtype=torch.float64))
    (failure,) = trajectories_from_plan(plan, 1).failures
    assert failure is not None
    assert words in failure


def test_direction_of_length_zero() -> None:
    states = straight(1)
    states[0, 5, 2] = 0.0
    assert trajectories_from_plan(Plan(states), 1).failures == ("the plan has a direction of length 0 at state 5",)


def test_present_pose_is_put_in_front_unless_the_plan_starts_now() -> None:
    later = trajectories_from_plan(Plan(straight(1, 3)), 1)
    assert later.first.tolist() == [0]
    assert later.times_us.tolist() == [[0, 100_000, 200_000, 300_000]]
    np.testing.assert_array_equal(later.poses[0, 0], 0.0)
    states = straight(1, 3)
    states[0, 0, 1] = 0.4  # the plan's own idea of now is beside the ego
    now = trajectories_from_plan(Plan(states, torch.tensor([[0.0, 0.1, 0.2]])), 1)
    assert now.first.tolist() == [1]
    assert now.poses[0, 1].tolist() == [0.5, 0.4, 0.0]


def test_drive_is_the_same_in_any_batch() -> None:
    random = torch.Generator().manual_seed(0)
    states = straight(6) + 0.01 * torch.randn(6, 80, 4, generator=random, dtype=torch.float64)
    first = torch.tensor([0.0, 0.0, 0.0, 0.1, 0.1, 0.1])  # half of the plans start now
    times = first[:, None] + 0.1 * torch.arange(80)
    whole, dt = trajectories_from_plan(Plan(states, times), 6), np.full(6, 0.1)
    for controller in ("lqr", "perfect"):
        together = drive(egos(6), whole, dt, controller)
        for b in range(6):
            rows = np.array([b])
            np.testing.assert_array_equal(
                drive(egos(6)[rows], whole.select(rows), dt[rows], controller)[0], together[b]
            )


def test_float32_plans_are_close_to_float64_plans() -> None:
    plans = [trajectories_from_plan(Plan(straight(1, dtype=dtype)), 1) for dtype in (torch.float32, torch.float64)]
    ours, theirs = (drive(egos(1), plan, np.array([0.1])) for plan in plans)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_states_on_grid_of_an_uneven_plan() -> None:
    times = torch.tensor([[0.0, 0.25, 0.5, 1.0]])
    states = straight(1, 4)
    states[0, :, 0] = 4.0 * times[0]
    out = states_on_grid(trajectories_from_plan(Plan(states, times), 1), 0)
    assert out.dtype == np.float32
    np.testing.assert_allclose(out[:, 0], 0.4 * np.arange(1, 11), rtol=1e-6)
    np.testing.assert_array_equal(out[:, 2:], np.tile([1.0, 0.0], (10, 1)))
