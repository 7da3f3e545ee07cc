"""The whole model: encoder, decoder, and the settings and normaliser that travel with the weights."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from radp.model.config import ModelConfig
from radp.model.decoder import Context, Decoder, Modulation
from radp.model.encoder import AssumedLimits, Encoding, SceneEncoder
from radp.model.layers import Attention
from radp.model.schedule import alpha, sigma
from radp.scene.normaliser import Normaliser
from radp.scene.scene import Scene

EMBEDDING_STD = 0.02
SILENT = ("decoder.speed_embedding.", "decoder.weight_embedding.")  # parts that begin by changing nothing


class DiffusionModel(nn.Module):
    """Predicts clean trajectories (or scores) of the ego and its neighbours from noisy ones.

    `normaliser` turns scenes in metres into what the network reads; `about` holds what else a checkpoint said.
    """

    def __init__(self, config: ModelConfig, normaliser: Normaliser | None = None) -> None:
        super().__init__()
        self.config = config
        self.normaliser = normaliser or Normaliser.published(config.neighbours)
        self.about: dict[str, Any] = {}
        least = config.assumed_limit
        limits = None if least is None else AssumedLimits(least, self.normaliser.observation)
        self.encoder = SceneEncoder(config, limits)
        self.decoder = Decoder(config)
        initialise(self)

    def _apply(self, fn: Any, *args: Any, **kwargs: Any) -> DiffusionModel:
        """What torch calls for `.to(...)`: the normaliser moves with the weights."""
        super()._apply(fn, *args, **kwargs)
        self.normaliser = self.normaliser.to(next(self.parameters()).device)
        return self

    def observe(self, scene: Scene) -> Scene:
        """Scene in metres, of this size or larger -> normalised Scene of the model's size."""
        size = self.config
        return self.normaliser.observation.normalise(
            scene.crop(size.agents, size.static_objects, size.lanes, size.route_lanes)
        )

    def context(self, observed: Scene, dense: bool = False) -> tuple[Context, Encoding]:
        """Normalised Scene -> what stays the same through all denoising calls, and the encoding it is made of.

        `dense`: no shape depends on values, as a graph needs it; else slots that no scene uses are spared.
        """
        dense = dense or torch.compiler.is_compiling()
        drops = self.training and self.config.encoder_dropout > 0.0
        encoding = self.encoder(observed, pack=not drops and not dense)
        return self.decoder.context(observed, encoding, dense), encoding

    def denoise(self, x: Tensor, time: Tensor, modulation: Modulation, context: Context) -> tuple[Tensor, Tensor]:
        """x (C, P, 81, 4), time (C,) or scalar -> clean trajectories or scores (C, P, 81, 4), tokens (C, P, d)."""
        output, tokens = self.decoder(x, modulation, context)
        if self.config.output == "score":
            output = output / (sigma(time) + 1e-6).view(-1, 1, 1, 1)
        return output, tokens

    def clean(self, x: Tensor, time: Tensor, output: Tensor) -> Tensor:
        """Output of `denoise` at x -> the clean trajectory: itself, or x_0 = (x + sigma^2 score) / alpha."""
        if self.config.output == "x_start":
            return output
        a, s = alpha(time).view(-1, 1, 1, 1), sigma(time).view(-1, 1, 1, 1)
        return (x + s**2 * output) / a

    def forward(self, observed: Scene, x: Tensor, time: Tensor) -> Tensor:
        """Normalised Scene of B, x (B K, P, 81, 4), time (B K,) -> (B K, P, 81, 4); K draws of a scene in a row."""
        context, _ = self.context(observed)
        draws = x.shape[0] // observed.batch_size
        modulation = self.decoder.modulation(context.route.repeat_interleave(draws, 0), time)
        return self.denoise(x, time, modulation, context)[0]


def initialise(model: DiffusionModel) -> None:
    """Xavier for matrices, zero bias, small normal embeddings; zero AdaLN and output, so a new model answers 0."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=EMBEDDING_STD)
    for module in model.modules():
        if isinstance(module, Attention):
            _initialise_packed(module)
    encoder, decoder = model.encoder, model.decoder
    small = [encoder.pos_emb, encoder.neighbor_encoder.type_emb, decoder.time_embedding.fc1, decoder.time_embedding.fc2]
    for lanes in (encoder.lane_encoder, encoder.route_encoder):
        small += [] if lanes is None else [lanes.speed_limit_emb, lanes.traffic_emb]
    for linear in small:
        nn.init.normal_(linear.weight, std=EMBEDDING_STD)
    zero = [block.modulation for block in decoder.blocks] + [decoder.final_layer.modulation, decoder.final_layer.fc2]
    if decoder.speed_embedding is not None:  # a model that goes on from one without speed begins as that one
        zero.append(decoder.speed_embedding.fc2)
    if decoder.weight_embedding is not None:
        zero.append(decoder.weight_embedding.fc2)
    for linear in zero:
        nn.init.zeros_(linear.weight)


def _initialise_packed(attention: Attention) -> None:
    """q, k, v as if they were one packed (3d, d) matrix: its larger fan-out makes the Xavier bound smaller."""
    dim = attention.q.in_features
    bound = math.sqrt(6.0 / (dim + 3 * dim))
    for linear in (attention.q, attention.k, attention.v):
        nn.init.uniform_(linear.weight, -bound, bound)


def extended(model: DiffusionModel, config: ModelConfig) -> DiffusionModel:
    """The same weights under other settings; parts that the model does not have yet begin by changing nothing.

    Settings that give a present part another shape, or remove one, are refused.
    """
    wider = DiffusionModel(config, model.normaliser)
    state, wanted = model.state_dict(), wider.state_dict()
    misfits = [name for name, value in state.items() if name not in wanted or wanted[name].shape != value.shape]
    added = [name for name in wanted if name not in state and not name.startswith(SILENT)]
    if misfits or added:
        raise ValueError(f"the weights do not fit these settings: {', '.join((misfits + added)[:5])}")
    wider.load_state_dict({**wanted, **state})
    wider.about = dict(model.about)
    return wider.eval()


def parameter_count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def build_model(config: ModelConfig | str, seed: int) -> DiffusionModel:
    """A new model with weights drawn from the seed; leaves torch's default generator as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return DiffusionModel(ModelConfig.preset(config) if isinstance(config, str) else config)
