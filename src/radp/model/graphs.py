"""The model as four graphs of plain tensors, for export: no packing, no shape that depends on values.

The scene goes in as it is built, in metres; normalisation is inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from radp.model.decoder import Context, current_states
from radp.model.features import plan_features
from radp.model.head import AttributionHead
from radp.model.network import DiffusionModel
from radp.model.sampler import solve
from radp.model.schedule import call_times, denoising_times
from radp.model.target import TargetSpace
from radp.scene.scene import INPUT_FIELDS, EgoColumn, Scene


def context_names(model: DiffusionModel) -> tuple[str, ...]:
    """Names of the tensors that go from the encoder to every denoising step."""
    hiding = ("token_bias",) if model.config.mask_padded_tokens else ()
    pairs = (f"{what}_{i}" for i in range(model.config.decoder_depth) for what in ("keys", "values"))
    return ("route", "agent_bias", *hiding, *pairs)


def encoder_names(model: DiffusionModel) -> tuple[str, ...]:
    """Names of all that the encoder gives."""
    return ("current", "tokens", "padded", *context_names(model))


class EncoderGraph(nn.Module):
    """Nine tensors of a Scene of B -> current (B, P, 4) normalised, tokens (B, S, d), padded (B, S), the context."""

    def __init__(self, model: DiffusionModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, *scene: Tensor) -> tuple[Tensor, ...]:
        given: dict[str, Any] = dict(zip(INPUT_FIELDS, scene))
        observed = self.model.normaliser.observation.normalise(Scene(**given))
        context, encoding = self.model.context(observed, dense=True)
        current = current_states(observed, self.model.config.neighbours)
        return (current, encoding.tokens, encoding.padded, *_flattened(context))


class StepGraph(nn.Module):
    """x (B, P, 81, 4), time (B,), the context -> clean estimate (B, P, 81, 4), ego token (B, d)."""

    def __init__(self, model: DiffusionModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor, time: Tensor, *context: Tensor) -> tuple[Tensor, Tensor]:
        modulation = self.model.decoder.modulation(context[0], time)
        output, tokens = self.model.denoise(x, time, modulation, _unflattened(self.model, context))
        return self.model.clean(x, time, output), tokens[:, 0]


class HeadGraph(nn.Module):
    """Plan (B, T, 4) in metres, ego_current_state (B, 10), ego token (B, d), tokens, padded, and the geometry (B, G) if
    the head asks for it -> pressures (B, M)."""

    def __init__(self, head: AttributionHead) -> None:
        super().__init__()
        self.head = head

    def forward(
        self, trajectory: Tensor, ego: Tensor, ego_token: Tensor, tokens: Tensor, padded: Tensor,
        geometry: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        speed = ego[:, EgoColumn.VX : EgoColumn.AX].square().sum(-1).sqrt()
        features = plan_features(trajectory, speed, ego[:, EgoColumn.AX])
        return self.head(ego_token, features, tokens, padded, geometry)


class LoopGraph(nn.Module):
    """Noise (B, P, T, 4) and a Scene -> trajectories (B, P, T, 4) in metres, ego token, tokens, padded: all calls."""

    times: Tensor

    def __init__(self, model: DiffusionModel, steps: int, temperature: float) -> None:
        super().__init__()
        self.encoder, self.step = EncoderGraph(model), StepGraph(model)
        self.temperature = temperature
        self.register_buffer("times", denoising_times(steps), persistent=False)  # not to be traced
        self.space = TargetSpace(model.config, model.normaliser)

    def forward(self, noise: Tensor, *scene: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        current, tokens, padded, *context = self.encoder(*scene)
        times = self.times
        calls = call_times(times)
        ego_token = current[:, 0]  # replaced in the first call

        def denoise(x: Tensor, call: int) -> Tensor:
            nonlocal ego_token
            estimate, ego_token = self.step(x, calls[call].expand(x.shape[0]), *context)
            return estimate

        start = torch.cat((current.unsqueeze(2), self.temperature * noise), 2)
        joint = self.space.to_metres(solve(denoise, start, current, times))[:, :, 1:]
        return joint, ego_token, tokens, padded


def _flattened(context: Context) -> tuple[Tensor, ...]:
    biases = (bias for bias in (context.agent_bias, context.token_bias) if bias is not None)
    return (context.route, *biases, *(part for pair in context.keys_values for part in pair))


def _unflattened(model: DiffusionModel, parts: Sequence[Tensor]) -> Context:
    route, agent_bias, *rest = parts
    token_bias = rest.pop(0) if model.config.mask_padded_tokens else None
    return Context(route, list(zip(rest[::2], rest[1::2])), token_bias, agent_bias)
