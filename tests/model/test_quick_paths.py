"""Shorter ways through the model that must not change its answer: packed tokens, fused GELU, attention without mask."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from radp.model.layers import FUSED_ROWS, gelu_of
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


@pytest.mark.parametrize("approximate", ["none", "tanh"])
@pytest.mark.parametrize("rows", [1, FUSED_ROWS - 1, FUSED_ROWS, 200])
def test_gelu_of_a_layer_is_its_gelu_with_and_without_gradients(approximate, rows):
    torch.manual_seed(0)
    layer, x = nn.Linear(24, 40), 3 * torch.randn(rows, 24)
    expected = F.gelu(layer(x), approximate=approximate)
    assert gelu_of(layer, x, approximate).requires_grad
    with torch.no_grad():
        torch.testing.assert_close(gelu_of(layer, x, approximate), expected, atol=2e-6, rtol=1e-5)
        doubled = gelu_of(layer.double(), x.double(), approximate)
    torch.testing.assert_close(doubled.float(), expected, atol=2e-6, rtol=1e-5)
