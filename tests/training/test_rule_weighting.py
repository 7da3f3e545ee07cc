"""Weights of rules in the alignment loss: fixed, drawn, by dual ascent, by tiers."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from radp.rules import default_rules
from radp.runs.errors import BadInput
from radp.training.rule_weighting import DualAscent, RuleWeighting, draw_log_weights, one_sided
from radp.training.settings import WeightingConfig

SIX = default_rules()
WEIGHTS = torch.tensor([rule.weight for rule in SIX])


def made(**settings: object) -> RuleWeighting:
    return RuleWeighting(WeightingConfig(**settings), SIX, nn.Module())  # type: ignore[arg-type]


def test_without_any_switch_it_is_the_papers_sum() -> None:
    terms = torch.rand(7, 6, generator=torch.Generator().manual_seed(0))
    weighting = made()
    assert torch.equal(weighting(terms, terms, None, terms), (terms.mean(0) * WEIGHTS).sum())
    assert weighting.records() == {}


def test_each_sample_counts_with_its_own_weights() -> None:
    terms = torch.rand(3, 6, generator=torch.Generator().manual_seed(1))
    drawn = torch.tensor([[0.0] * 6, [math.log(2.0)] + [0.0] * 5, [math.log(0.25)] * 6])
    wanted = sum(float(terms[c, m] * WEIGHTS[m] * math.exp(drawn[c, m])) for c in range(3) for m in range(6)) / 3
    assert float(made(conditioned=True)(terms, terms, drawn, terms)) == pytest.approx(wanted, rel=1e-6)


def test_around_the_default_only_what_was_changed_counts() -> None:
    terms = torch.rand(2, 6, generator=torch.Generator().manual_seed(1))
    drawn = torch.tensor([[0.0] * 6, [math.log(3.0), math.log(2.0)] + [0.0] * 4])
    wanted = float(2.0 * terms[1, 0] * WEIGHTS[0] + terms[1, 1] * WEIGHTS[1]) / 2
    weighting = made(conditioned=True, around_default=True)
    assert float(weighting(terms, terms, drawn, terms)) == pytest.approx(wanted, rel=1e-6)
    assert float(weighting(terms, terms, torch.zeros(2, 6), terms)) == 0.0


def test_weights_are_drawn_evenly_in_their_logarithm_all_or_one_alone_or_none() -> None:
    every = draw_log_weights(80_000, 3, 4.0, torch.Generator().manual_seed(0))
    drawn, alone = every[::4], every[1::2]
    assert every.abs().max() <= math.log(4.0) and drawn.mean().abs() < 0.02
    share = (drawn < -math.log(2.0)).float().mean()  # a quarter of the range
    assert float(share) == pytest.approx(0.25, abs=0.01)
    assert ((alone != 0).sum(-1) == 1).all() and not every[2::4].any()
    assert (alone != 0).float().mean(0).tolist() == pytest.approx([1 / 3] * 3, abs=0.02)
    upwards = draw_log_weights(80_000, 3, 4.0, torch.Generator().manual_seed(0), upwards=True)
    assert torch.equal(upwards, every.abs())


def test_dual_ascent_by_hand() -> None:
    memory = nn.Module()
    config = WeightingConfig(dual_step=0.5, budgets=("collision=0.2", "goal=1.0"))
    weighting = RuleWeighting(config, SIX, memory)
    costs = torch.tensor([[1.0, 9.0, 0.0, 0.0, 0.0, 0.4], [0.4, 9.0, 0.0, 0.0, 0.0, 0.0]])
    total = weighting(costs, costs, None, costs)
    factor = torch.tensor([math.exp(0.5 * (0.7 - 0.2)), 1, 1, 1, 1, math.exp(0.5 * (0.2 - 1.0))])
    torch.testing.assert_close(total, (costs.mean(0) * WEIGHTS * factor).sum())
    assert weighting.records()["weight/collision"] == pytest.approx(2.5 * math.exp(0.25), rel=1e-5)
    assert "dual.log_factor" in memory.state_dict()  # kept with the scales of the rules
    for _ in range(40):
        weighting(costs, costs, None, costs)
    assert weighting.records()["weight/collision"] == pytest.approx(25.0, rel=1e-5)  # clipped at ten times
    assert weighting.records()["weight/lane"] == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"budgets": ("collision=1",)}, "add --dual-step"),
        ({"dual_step": 0.1}, "needs a budget"),
        ({"dual_step": 0.1, "budgets": ("colision=1",)}, "no rule 'colision'"),
        ({"dual_step": 0.1, "budgets": ("collision",)}, "no weight of a rule"),
        ({"spread": 0.5}, "expected at least 1"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, object], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        made(**settings)


def test_a_lower_tier_never_pulls_against_a_higher_one() -> None:
    high, low = torch.tensor([[1.0, 0.0]]), torch.tensor([[-2.0, 3.0]])
    assert one_sided([high, low]).tolist() == [[1.0, 3.0]]
    assert one_sided([high, -low]).tolist() == [[3.0, -3.0]]  # it does not pull against: nothing changes
    draws = torch.Generator().manual_seed(4)
    pulls = [torch.randn(200, 12, generator=draws, dtype=torch.float64) for _ in range(3)]
    whole, top = one_sided(pulls), pulls[0]
    two = one_sided(pulls[:2])
    assert (((two - top) * top).sum(1) >= -1e-9).all() and (((whole - two) * top).sum(1) >= -1e-9).all()
    assert (((whole - two) * (two - top)).sum(1) >= -1e-2).all()
    assert torch.equal(one_sided([top, torch.zeros_like(top)]), top)
    assert torch.isfinite(one_sided([torch.zeros_like(top), top])).all()


def test_tiers_change_the_gradient_and_not_the_value() -> None:
    """Collision (tier 1) wants the answer up, goal (tier 5) down, and more strongly: collision's pull remains."""
    output = torch.zeros(2, 3, requires_grad=True)
    up, down = -output[:, 0], 4.0 * output[:, 0] + output[:, 1]
    nothing = torch.zeros_like(up)
    terms = torch.stack((up, nothing, nothing, nothing, nothing, down), 1)
    plain, tiered = (made(tiers=tiers)(terms, terms, None, output) for tiers in (False, True))
    torch.testing.assert_close(plain, tiered)
    (pull,) = torch.autograd.grad(tiered, output, retain_graph=True)
    torch.testing.assert_close(pull, torch.tensor([[-2.5, 1.5, 0.0]]).expand(2, 3) / 2)
    (both,) = torch.autograd.grad(plain, output)
    torch.testing.assert_close(both[:, 0], torch.full((2,), (-2.5 + 6.0) / 2))


def test_factors_go_on_where_they_were() -> None:
    first = DualAscent(SIX, 0.1, ["lane=1"])
    first.update(torch.full((4, 6), 3.0))
    second = DualAscent(SIX, 0.1, ["lane=1"])
    second.load_state_dict(first.state_dict())
    assert torch.equal(first(), second()) and float(first()[1]) == pytest.approx(math.exp(0.2))
    assert replace(WeightingConfig(), tiers=True).conditioned is False
