"""The attribution head: its one-query attention is ordinary attention, and its branches are separate."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from radp.model.features import feature_count, plan_features
from radp.model.geometry import geometry_count
from radp.model.head import AttributionHead, HeadConfig, load_head, save_head
from radp.model.layers import hiding_bias
from radp.model.quick_features import quick_plan_features
from radp.runs.errors import BadInput


def made() -> AttributionHead:
    torch.manual_seed(0)
    return AttributionHead(HeadConfig(24, ("a", "b", "c"), heads=6, hidden=8)).double()


def test_attention_of_one_query_is_attention():
    head, query, scene = made(), torch.randn(4, 24).double(), torch.randn(4, 9, 24).double()
    padded = torch.rand(4, 9) < 0.5
    keys_values = head.attention.keys_values(scene)
    expected = head.attention(query.unsqueeze(1), keys_values, hiding_bias(padded).double()).squeeze(1)
    torch.testing.assert_close(head.attend(query, scene, padded), expected, rtol=1e-12, atol=1e-12)


def test_hidden_tokens_change_nothing():
    head, padded = made(), torch.tensor([[False, True, False]])
    inputs = torch.randn(1, 24).double(), torch.randn(1, feature_count()).double()
    scene = torch.randn(1, 3, 24).double()
    other = scene.clone()
    other[0, 1] = 100.0
    torch.testing.assert_close(head(*inputs, scene, padded), head(*inputs, other, padded))


def test_neurons_of_a_rule_feed_no_other_rule():
    head = made()
    inputs = torch.randn(2, 24).double(), torch.randn(2, feature_count()).double(), torch.randn(2, 3, 24).double()
    predicted = head(*inputs, torch.zeros(2, 3, dtype=torch.bool))
    assert predicted.shape == (2, 3) and (predicted > 0).all()
    (gradient,) = torch.autograd.grad(predicted[:, 1].sum(), head.branches.weight)
    by_rule = gradient.unflatten(0, (3, 8)).abs().sum((1, 2))
    assert by_rule[1] > 0 and by_rule[0] == 0 and by_rule[2] == 0


def test_levels_are_a_line_of_pieces_that_goes_on():
    head = made().float()
    inputs = torch.randn(64, 24), torch.randn(64, feature_count()), torch.randn(64, 3, 24)
    predicted = head(*inputs, torch.zeros(64, 3, dtype=torch.bool))
    start = torch.tensor([[0.0, 0.5, 0.7], [0.0, 0.2, 0.6], [0.0, 1.0, 2.0]])
    slope = torch.tensor([[0.1, 2.0, 1.0], [1.0, 0.5, 3.0], [0.3, 0.3, 0.4]])
    levelled = head.with_levels(start, slope)(*inputs, torch.zeros(64, 3, dtype=torch.bool))
    for rule in range(3):
        x = np.append(start[rule].numpy(), 1000.0)
        y = np.append(0.0, np.cumsum(slope[rule].numpy() * np.diff(x)))
        expected = np.interp(predicted[:, rule].detach().numpy(), x, y)
        np.testing.assert_allclose(levelled[:, rule].detach().numpy(), expected, rtol=1e-4)


def test_pressures_below_silence_are_nothing(tmp_path):
    head, hidden = made().float(), torch.zeros(64, 3, dtype=torch.bool)
    inputs = torch.randn(64, 24), torch.randn(64, feature_count()), torch.randn(64, 3, 24)
    raw = head(*inputs, hidden)
    line = torch.zeros(3, 1), torch.ones(3, 1)
    silence = float(raw.detach().median())
    heard = head.with_levels(*line, silence)
    save_head(heard, tmp_path)
    for one in (heard, load_head(tmp_path)):
        torch.testing.assert_close(one(*inputs, hidden), torch.where(raw < silence, 0.0, raw))
    with pytest.raises(ValueError, match="silence is -1"):
        replace(head.config, silence=-1.0)


def test_a_head_with_levels_is_saved_and_read(tmp_path):
    head = made().float().with_levels(torch.tensor([[0.0, 0.4]] * 3), torch.tensor([[0.5, 1.5]] * 3))
    save_head(head, tmp_path)
    again = load_head(tmp_path)
    assert again.config == head.config and again.config.pieces == 2
    inputs = torch.randn(2, 24), torch.randn(2, feature_count()), torch.randn(2, 3, 24), torch.zeros(2, 3).bool()
    assert torch.equal(again(*inputs), head(*inputs))
    with torch.no_grad():
        again.out_bias[0] = torch.nan
    save_head(again, tmp_path)
    with pytest.raises(ValueError, match="out_bias holds a value that is not finite"):
        load_head(tmp_path)


def test_geometry_is_a_part_of_the_query_where_a_head_asks_for_it(tmp_path):
    head = AttributionHead(replace(made().config, geometry="cheap", rule_set="v2")).eval()
    count = geometry_count("cheap")
    seen = torch.randn(50, count) * 3 + 1
    seen[:, 0] = 7.0  # never changes
    head.standardise(seen)
    inputs = (torch.randn(50, 24), torch.randn(50, feature_count()), torch.randn(50, 3, 24))
    padded = torch.zeros(50, 3, dtype=torch.bool)
    predicted = head(*inputs, padded, seen)
    assert not torch.allclose(predicted, head(*inputs, padded, seen.flip(0)))
    wild = seen.clone()
    wild[:, 1] = 1e9  # as far as anything can be
    assert torch.isfinite(head(*inputs, padded, wild)).all()
    with pytest.raises(ValueError, match="needs the cheap geometry"):
        head(*inputs, padded)
    save_head(head, tmp_path)
    again = load_head(tmp_path)
    assert again.config == head.config
    assert torch.equal(again(*inputs, padded, seen), predicted)


def test_heads_of_before_have_no_geometry_and_the_papers_rules(tmp_path):
    save_head(made().float(), tmp_path)
    about = json.loads((tmp_path / "head.json").read_text())
    del about["head"]["geometry"], about["head"]["rule_set"]
    (tmp_path / "head.json").write_text(json.dumps(about))
    config = load_head(tmp_path).config
    assert (config.geometry, config.rule_set) == ("", "paper")


@pytest.mark.parametrize(
    "size", ({"pieces": 10**9}, {"hidden": 10**6}, {"tokens": 10**7}, {"heads": 0}, {"hidden": "256"}, {"rules": []})
)
def test_a_head_that_cannot_be_held_is_refused_before_it_is_built(tmp_path, size):
    save_head(made().float(), tmp_path)
    about = json.loads((tmp_path / "head.json").read_text())
    about["head"] |= size
    (tmp_path / "head.json").write_text(json.dumps(about))
    with pytest.raises(BadInput, match=rf"head\.json: not a readable attribution head \({next(iter(size))} is"):
        load_head(tmp_path)


def test_compiled_features_are_those_of_torch() -> None:
    """Wild plans, standing plans, plans without a heading, horizons that the windows do not fill."""
    generator = torch.Generator().manual_seed(5)
    speed, accel = 10 * torch.rand(6, generator=generator), torch.randn(6, generator=generator)
    for horizon in (80, 83):
        plans = torch.randn(6, horizon, 4, generator=generator).cumsum(1)
        plans[1] = 0.0
        plans[2, :, 2:] = 0.0
        plans[3] = torch.tensor([0.0, 0.0, -1.0, -1e-3])  # turned around: the angle wraps
        made = quick_plan_features(plans, speed, accel)
        assert made.dtype == plans.dtype
        torch.testing.assert_close(made, plan_features(plans, speed, accel), rtol=1e-4, atol=1e-4)
