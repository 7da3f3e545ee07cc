"""The attribution head: its one-query attention is ordinary attention, and its branches are separate."""

from __future__ import annotations

import torch

from radp.model.features import feature_count
from radp.model.head import AttributionHead, HeadConfig
from radp.model.layers import hiding_bias


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
    told = head(*inputs, torch.zeros(2, 3, dtype=torch.bool))
    assert told.shape == (2, 3) and (told > 0).all()
    (gradient,) = torch.autograd.grad(told[:, 1].sum(), head.branches.weight)
    by_rule = gradient.unflatten(0, (3, 8)).abs().sum((1, 2))
    assert by_rule[1] > 0 and by_rule[0] == 0 and by_rule[2] == 0
