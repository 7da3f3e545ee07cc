"""Losses of the head against plain loops: weights of the tails, ranking pairs, how often rows are drawn."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from radp.model.head import Levels
from radp.training.head import Favour, fit_levels, head_loss, log_loss, ranking_loss

RULES = ("collision", "lane", "goal")


def made(count: int = 40, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Predicted and teacher pressures (B, 3); collision is mostly zero, some teacher values are nearly equal."""
    draw = np.random.default_rng(seed)
    teacher = draw.exponential(size=(count, 3))
    teacher[:, 0] *= draw.random(count) < 0.4
    teacher[::5, 1] = 0.7 + 0.04 * draw.random(len(teacher[::5]))
    return np.maximum(teacher + draw.normal(0, 0.5, teacher.shape), 0), teacher


def smooth_l1(error: float, beta: float = 0.2) -> float:
    return 0.5 * error**2 / beta if abs(error) < beta else abs(error) - 0.5 * beta


def test_regression_and_ranking_by_loop():
    predicted, teacher = made()
    threshold, weight = np.array([0.5, 1.0, 0.9]), np.array([2.0, 1.0, 1.25])
    total, pairs, ranked = 0.0, 0, 0.0
    for b in range(len(predicted)):
        for m in range(3):
            total += (weight[m] if teacher[b, m] > threshold[m] else 1.0) * smooth_l1(predicted[b, m] - teacher[b, m])
            for k in range(len(predicted)):
                if teacher[b, m] > teacher[k, m] + 0.05:
                    pairs += 1
                    ranked += math.log1p(math.exp(-(predicted[b, m] - predicted[k, m]) / 0.2))
    regression, ranking = head_loss(*(torch.from_numpy(a) for a in (predicted, teacher, threshold, weight)), 0.2)
    assert float(regression) == pytest.approx(total / predicted.size, rel=1e-10)
    assert float(ranking) == pytest.approx(0.2 * ranked / pairs, rel=1e-10)


def test_pairs_that_are_too_close_do_not_count():
    teacher = torch.tensor([[0.50], [0.54]], dtype=torch.float64)
    predicted = torch.tensor([[3.0], [0.0]], dtype=torch.float64, requires_grad=True)
    loss = ranking_loss(predicted, teacher)
    loss.backward()
    assert loss.item() == 0.0 and (predicted.grad == 0).all()


def test_tails_are_drawn_and_weighted_as_appendix_c4_says():
    _, teacher = made(200, 3)
    favour = Favour.of(teacher, RULES)
    positive = teacher[:, 0][teacher[:, 0] > 0]
    levels = [np.percentile(positive, 75), np.percentile(teacher[:, 1], 85), np.percentile(teacher[:, 2], 85)]
    np.testing.assert_allclose(favour.threshold, levels)
    np.testing.assert_array_equal(favour.weight, [2.0, 1.0, 1.25])
    for row, drawn in zip(teacher, favour.draw):
        expected = max(3.0 if row[0] > levels[0] else 1.0, 1.5 if row[1] > levels[1] or row[2] > levels[2] else 1.0)
        assert drawn == expected


def test_a_rule_that_never_presses_has_no_tail():
    teacher = np.zeros((20, 1))
    favour = Favour.of(teacher, ("collision",))
    assert np.isinf(favour.threshold[0]) and (favour.draw == 1).all()


def test_levels_take_back_what_favoured_draws_exaggerate():
    draw = np.random.default_rng(1)
    teacher = draw.exponential(size=(4000, 2))
    teacher[:, 0] *= draw.random(4000) < 0.4
    predicted = np.stack((0.6 + 0.5 * teacher[:, 0], 0.4 * teacher[:, 1]), 1) * draw.lognormal(0, 0.2, (4000, 2))
    start, slope = fit_levels(predicted[:2000], teacher[:2000])
    assert start.shape == slope.shape == (2, 40) and (slope > 0).all() and not start[:, 0].any()
    levels = Levels(2, 40)
    levels.load_state_dict({"start": start, "slope": slope})
    after = levels(torch.from_numpy(predicted[2000:]).float()).numpy()
    before = np.abs(predicted[2000:] - teacher[2000:]).mean(0)
    assert (np.abs(after - teacher[2000:]).mean(0) < 0.6 * before).all()
    for rule in range(2):
        order = np.argsort(predicted[2000:, rule])
        assert (np.diff(after[order, rule]) >= 0).all()


def test_levels_of_a_pressure_that_never_comes():
    start, slope = fit_levels(np.full((5, 1), 0.3), np.zeros((5, 1)))
    levels = Levels(1, start.shape[1])
    levels.load_state_dict({"start": start, "slope": slope})
    assert 0 <= float(levels(torch.tensor([[0.3]]))) < 0.01


def test_decades_count_down_to_silence():
    teacher = torch.tensor([1e-5, 0.0, 1e-3, 1e-25], dtype=torch.float64)
    predicted = torch.tensor([1e-3, 0.0, 1e-3, 0.0], dtype=torch.float64)
    assert log_loss(predicted, teacher).item() == pytest.approx((2.0 - 0.5) / 4, abs=1e-6)  # two decades, once
    nothing = torch.tensor([1e-12], requires_grad=True)
    log_loss(nothing, torch.tensor([1e-9])).backward()
    assert nothing.grad is not None and nothing.grad.item() < 0  # it learns to say more, though both are nothing
