"""Small models whose every layer has weights, for tests."""

from dataclasses import replace

import torch

from radp.model.config import NUPLAN, ModelConfig
from radp.model.network import DiffusionModel, build_model

SMALL = replace(
    NUPLAN, hidden=32, heads=2, mixer_tokens=8, mixer_channels=16, preproj_hidden=32, encoder_depth=1, mixer_depth=1,
    decoder_depth=2,
)  # fmt: skip

# How far the same computation may differ between processors, thread counts and batches: float32 sums are then taken in
# another order, and each layer of a network adds some units in the last place of values of about 1.
ONE_PASS = {"atol": 1e-4, "rtol": 1e-4}
SAMPLED = {"atol": 1e-3, "rtol": 1e-4}  # m, after ten passes that feed each other: a millimetre, which no drive notices


def randomised(config: ModelConfig, seed: int = 0) -> DiffusionModel:
    """A model whose zero-initialised layers have weights, too."""
    model = build_model(config, seed).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.05 * torch.randn(parameter.shape, generator=generator)
    return model
