"""Closing the seam between the ego's speed and a plan's, by hand-made plans."""

import math

import pytest
import torch

from radp.model.seam import close_seam


def straight(*speeds: float) -> torch.Tensor:
    """(1, H, 4): straight on, one speed a step."""
    x = torch.tensor(speeds, dtype=torch.float64).cumsum(0) * 0.1
    return torch.stack((x, torch.zeros_like(x), torch.ones_like(x), torch.zeros_like(x)), -1)[None]


def speeds_of(plan: torch.Tensor) -> torch.Tensor:
    start = torch.cat((torch.zeros_like(plan[:, :1, :2]), plan[..., :2]), 1)
    return start.diff(dim=1).norm(dim=-1) / 0.1


def test_a_plan_that_starts_at_the_egos_speed_stays_as_it_is():
    plan = straight(*[5.0 + 0.1 * h for h in range(80)])
    torch.testing.assert_close(close_seam(plan, torch.tensor([5.0]), 0.6), plan)


@pytest.mark.parametrize("speed", [4.0, 9.0])
def test_the_speed_fades_from_the_egos_to_the_plans(speed):
    plan = straight(*[6.0] * 80)
    faded = speeds_of(close_seam(plan, torch.tensor([speed]), 0.6))[0]
    expected = torch.tensor([6.0 + (speed - 6.0) * math.exp(-0.1 * h / 0.6) for h in range(80)], dtype=torch.float64)
    torch.testing.assert_close(faded, expected)


def test_no_plan_drives_backwards():
    plan = straight(*[5.0] * 3, *[0.0] * 77)
    faded = close_seam(plan, torch.tensor([0.5]), 0.6)
    assert (faded[0, :, 0].diff() >= -1e-9).all()


def test_the_path_of_a_bend_is_kept():
    """Half a circle of 20 m: the new poses lie on it and look along it."""
    angle = torch.arange(1, 81, dtype=torch.float64) * 0.03
    arc = torch.stack((20 * angle.sin(), 20 * (1 - angle.cos()), angle.cos(), angle.sin()), -1)[None]
    faded = close_seam(arc, torch.tensor([3.0]), 0.6)
    radius = (faded[0, :, :2] - torch.tensor([0.0, 20.0])).norm(dim=-1)
    assert (radius - 20.0).abs().max() < 0.003  # chords of 0.6 m lie 2 mm inside the circle
    heading = torch.atan2(faded[0, :, 3], faded[0, :, 2])
    around = torch.atan2(faded[0, :, 0], 20.0 - faded[0, :, 1])
    assert (heading - around).abs().max() < 0.002


def test_a_fast_ego_rolls_on_where_the_plan_stands():
    plan = straight(*[0.0] * 80)
    faded = close_seam(plan, torch.tensor([6.0]), 0.6)
    way = 0.1 * sum(6.0 * math.exp(-0.1 * h / 0.6) for h in range(80))
    assert float(faded[0, -1, 0]) == pytest.approx(way)
    assert torch.isfinite(faded).all()


def test_gradients_are_finite_at_a_standstill():
    plan = straight(*[0.0] * 80).requires_grad_()
    close_seam(plan, torch.tensor([0.0]), 0.6).sum().backward()
    assert plan.grad is not None and torch.isfinite(plan.grad).all()
