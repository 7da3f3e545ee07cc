"""Shorter ways through the model that must not change its answer: packed tokens, fused GELU, attention without mask."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from radp.model.layers import PolylineMixer
from radp.model.quick_linear import FUSED_ROWS, LARGE, linear_of
from tests.made_models import SMALL, randomised
from tests.made_scenes import made_scene

CLOSE = {"atol": 2e-5, "rtol": 1e-5}


def scenes():
    """Three scenes that leave some slots of each kind unused, the last without any agent."""
    scene = made_scene(batch=3)
    scene.neighbor_agents_past[:, 20:] = 0
    scene.neighbor_agents_past[1, 3:] = 0
    scene.neighbor_agents_past[2] = 0
    scene.static_objects[:, 1:] = 0
    scene.lanes[:, 50:] = 0
    scene.lanes[0, 10:] = 0
    return scene


@pytest.mark.parametrize("switches", [{}, {"mask_padded_tokens": True}, {"route_tokens": True}])
@torch.no_grad()
def test_packed_tokens_give_the_same_encoding_and_the_same_estimates(switches):
    model = randomised(replace(SMALL, **switches))
    observed = model.observe(scenes())
    plain, (context, packed) = model.encoder(observed), model.context(observed)
    assert packed.tokens.shape[1] < plain.tokens.shape[1] == packed.whole().tokens.shape[1]
    torch.testing.assert_close(packed.whole().tokens, plain.tokens, **CLOSE)
    assert torch.equal(packed.whole().padded, plain.padded)
    x = torch.randn(3, model.config.predicted, 81, 4, generator=torch.Generator().manual_seed(0))
    time = torch.full((3,), 0.3)
    modulation = model.decoder.modulation(context.route, time)
    expected = model.denoise(x, time, modulation, model.decoder.context(observed, plain))
    torch.testing.assert_close(model.denoise(x, time, modulation, context), expected, **CLOSE)


@torch.no_grad()
def test_a_batch_that_fills_every_slot_is_not_changed_by_packing():
    model, scene = randomised(SMALL), made_scene(batch=2)
    for name in ("neighbor_agents_past", "static_objects", "lanes"):
        rows = getattr(scene, name)
        rows.copy_(torch.randn(rows.shape, generator=torch.Generator().manual_seed(1)))
    context, encoding = model.context(model.observe(scene))
    assert encoding.alike == 1 and context.token_bias is None and context.agent_bias is None
    torch.testing.assert_close(encoding.whole().tokens, model.encoder(model.observe(scene)).tokens, **CLOSE)


@pytest.mark.parametrize("gelu", ["", "none", "tanh"])
@pytest.mark.parametrize("rows", [1, FUSED_ROWS - 1, FUSED_ROWS, 200])
@pytest.mark.parametrize("wide", [40, LARGE // 24 + 1])
def test_a_quick_layer_answers_as_a_plain_one_with_and_without_gradients(gelu, rows, wide):
    torch.manual_seed(0)
    layer, x = nn.Linear(24, wide).eval(), 3 * torch.randn(rows, 24)
    expected = F.gelu(layer(x), approximate=gelu) if gelu else layer(x)
    assert linear_of(layer, x, gelu).requires_grad
    with torch.no_grad():
        for _ in range(3):  # the weight is packed when it is seen for the second time
            torch.testing.assert_close(linear_of(layer, x, gelu), expected, atol=3e-6, rtol=1e-5)
        doubled = linear_of(layer.double(), x.double(), gelu)
    torch.testing.assert_close(doubled.float(), expected, atol=3e-6, rtol=1e-5)


@torch.no_grad()
def test_a_weight_that_changes_is_packed_anew():
    layer, x = nn.Linear(300, 300).eval(), torch.randn(50, 300)
    for _ in range(3):
        linear_of(layer, x)
    layer.weight.mul_(-2.0)
    for _ in range(3):
        torch.testing.assert_close(linear_of(layer, x), layer(x), atol=1e-5, rtol=1e-5)
    layer.load_state_dict(nn.Linear(300, 300).state_dict())
    for _ in range(3):
        torch.testing.assert_close(linear_of(layer, x), layer(x), atol=1e-5, rtol=1e-5)


def test_the_mean_of_a_mixer_may_be_taken_before_its_last_layer():
    torch.manual_seed(0)
    mixer, x = PolylineMixer(5, 3, tokens=6, channels=8, depth=2, rate=0.5).eval(), torch.randn(4, 5, 3)
    expected = mixer(x)  # with gradients: as published
    assert expected.requires_grad
    with torch.no_grad():
        torch.testing.assert_close(mixer(x), expected, atol=1e-6, rtol=1e-5)
