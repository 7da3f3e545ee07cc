"""Running scales: the first batch sets them, later ones move them by a hundredth, and none divides by nothing."""

from __future__ import annotations

import torch

from radp.rules.scales import RuleScales


def test_scales_by_hand():
    scales = RuleScales(3)
    costs = torch.tensor([[1.0, 0.0, 4.0], [3.0, 0.0, 8.0]])
    torch.testing.assert_close(scales(costs), costs)  # before any batch
    scales.update(costs)
    torch.testing.assert_close(scales.scale, torch.tensor([2.0, 0.0, 6.0]))
    scales.update(2 * costs)
    torch.testing.assert_close(scales.scale, torch.tensor([0.99 * 2 + 0.01 * 4, 0.0, 0.99 * 6 + 0.01 * 12]))
    assert scales.updates == 2
    torch.testing.assert_close(scales(costs)[1], torch.tensor([3 / 2.02, 0.0, 8 / 6.06]))
    torch.testing.assert_close(scales(torch.full((1, 3), 0.5))[0, 1], torch.tensor(0.5 / 1e-3))
    other = RuleScales(1, decay=0.5, floor=2.0)
    for value in (1.0, 3.0):
        other.update(torch.tensor([[value]]))
    assert other.scale.item() == 2.0 and other(torch.tensor([[6.0]])).item() == 3.0


def test_scales_carry_no_gradient():
    scales, costs = RuleScales(1), torch.tensor([[4.0]], requires_grad=True)
    scales.update(costs)
    scales(costs).sum().backward()
    assert costs.grad.item() == 0.25
