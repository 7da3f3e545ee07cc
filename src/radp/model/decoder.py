"""The denoiser: a diffusion transformer over the ego and its neighbours, conditioned on scene, route and time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from radp.model.config import ModelConfig
from radp.model.encoder import Encoding
from radp.model.layers import Attention, Mlp, PolylineMixer, hiding_bias
from radp.model.quick_linear import linear_of
from radp.scene.scene import POSE, EgoColumn, Scene, present

ROUTE_FEATURES, ROUTE_TOKENS, ROUTE_CHANNELS = 4, 32, 64
TIME_FEATURES, MAX_PERIOD = 256, 10_000.0


@dataclass(frozen=True)
class Context:
    """All that the denoiser needs of B scenes and that does not change while denoising."""

    route: Tensor  # (B, d), with the speed of the ego and the weights of the rules where these are wanted
    keys_values: Sequence[tuple[Tensor, Tensor]]  # for each block, (B, heads, S, d / heads) each
    token_bias: Tensor | None  # (B or 1, 1, 1, S) hides padded scene tokens, or says how many slots one stands for
    agent_bias: Tensor | None  # (B, 1, 1, P) hides neighbours that are not there from self-attention; None: all are


@dataclass(frozen=True)
class Modulation:
    """AdaLN parameters of every block (C, 6d) and of the final layer (C, 2d), for C conditions (scene, time)."""

    blocks: Sequence[Tensor]
    final: Tensor

    def at(self, index: int) -> Modulation:
        """Entry `index` of a leading axis: (steps, C, ...) -> (C, ...)."""
        return Modulation([block[index] for block in self.blocks], self.final[index])


class RouteEncoder(nn.Module):
    """Normalised route lanes (B, R, 20, 12) -> (B, d): all points as one sequence. An empty route gives zeros.

    Points go in unmasked, padding as zeros; only their positions and directions are read.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        points = config.route_lanes * config.lane_points
        self.polyline = PolylineMixer(
            points, ROUTE_FEATURES, ROUTE_TOKENS, ROUTE_CHANNELS, depth=1, rate=config.encoder_dropout
        )
        self.norm = nn.LayerNorm(ROUTE_CHANNELS)
        self.emb_project = Mlp(ROUTE_CHANNELS, config.hidden, config.hidden, config.encoder_dropout)

    def forward(self, route_lanes: Tensor) -> Tensor:
        points = route_lanes[..., :ROUTE_FEATURES].flatten(1, 2)
        there = present(points).any(-1, keepdim=True)
        return self.emb_project(self.norm(self.polyline(points))) * there


class TimeEmbedding(nn.Module):
    """Diffusion time (C,) in (0, 1] -> (C, d): sinusoids of the raw time, then an MLP."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(TIME_FEATURES, dim)
        self.fc2 = nn.Linear(dim, dim)

    def forward(self, time: Tensor) -> Tensor:
        half = TIME_FEATURES // 2
        frequency = torch.exp(-math.log(MAX_PERIOD) / half * torch.arange(half, dtype=time.dtype, device=time.device))
        angle = time[..., None] * frequency
        return self.fc2(F.silu(self.fc1(torch.cat((angle.cos(), angle.sin()), -1))))


def modulated(x: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
    """(C, P, d), (C, 1, d), (C, 1, d) -> x (1 + scale) + shift, in one pass."""
    return torch.addcmul(shift, x, 1 + scale)


class DiTBlock(nn.Module):
    """x (C, P, d) -> (C, P, d). As published there is no residual around cross-attention and mlp2."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        dim, rate = config.hidden, config.decoder_dropout
        self.residual = config.residual_cross_attention
        self.norm1 = nn.LayerNorm(dim)
        self.attn = Attention(dim, config.heads, rate)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp1 = Mlp(dim, 4 * dim, dim, gelu="tanh")
        self.norm3 = nn.LayerNorm(dim)
        self.cross_attn = Attention(dim, config.heads, rate)
        self.norm4 = nn.LayerNorm(dim)
        self.mlp2 = Mlp(dim, 4 * dim, dim, gelu="tanh")
        self.modulation = nn.Linear(dim, 6 * dim)

    def forward(
        self,
        x: Tensor,
        modulation: Tensor,
        agent_bias: Tensor | None,
        keys_values: tuple[Tensor, Tensor],
        token_bias: Tensor | None,
    ) -> Tensor:
        """modulation (C, 6d); C = B, or a multiple of it with the draws of one scene in a row."""
        shift_a, scale_a, gate_a, shift_m, scale_m, gate_m = modulation.unsqueeze(1).chunk(6, -1)
        h = modulated(self.norm1(x), shift_a, scale_a)
        x = torch.addcmul(x, gate_a, self.attn(h, self.attn.keys_values(h), agent_bias))
        h = modulated(self.norm2(x), shift_m, scale_m)
        x = torch.addcmul(x, gate_m, self.mlp1(h))
        seen = self._look_at_scene(self.norm3(x), keys_values, token_bias)
        x = x + seen if self.residual else seen
        out = self.mlp2(self.norm4(x))
        return x + out if self.residual else out

    def _look_at_scene(self, query: Tensor, keys_values: tuple[Tensor, Tensor], bias: Tensor | None) -> Tensor:
        """Several draws of one scene stand side by side on the query axis, so keys and values exist once a scene."""
        scenes = keys_values[0].shape[0]
        return self.cross_attn(query.reshape(scenes, -1, query.shape[-1]), keys_values, bias).view_as(query)


class FinalLayer(nn.Module):
    """x (C, P, d), modulation (C, 2d) -> (C, P, 81 * 4)."""

    def __init__(self, dim: int, out: int) -> None:
        super().__init__()
        self.norm_final = nn.LayerNorm(dim)
        self.norm1 = nn.LayerNorm(dim)
        self.fc1 = nn.Linear(dim, 4 * dim)
        self.norm2 = nn.LayerNorm(4 * dim)
        self.fc2 = nn.Linear(4 * dim, out)
        self.modulation = nn.Linear(dim, 2 * dim)

    def forward(self, x: Tensor, modulation: Tensor) -> Tensor:
        shift, scale = modulation.unsqueeze(1).chunk(2, -1)
        x = self.norm1(modulated(self.norm_final(x), shift, scale))
        return linear_of(self.fc2, self.norm2(linear_of(self.fc1, x, "tanh")))


class WeightEmbedding(nn.Module):
    """Log-weights of W rules -> what joins route and time in the modulation.

    Each rule has a direction, which the scene decides; they add up, times their log-weights. So the default, zeros, is
    exactly 0, and half and double go opposite ways.
    """

    def __init__(self, rules: int, dim: int) -> None:
        super().__init__()
        self.rules = rules
        self.look = nn.Linear(dim, dim // 2)
        self.fc1 = nn.Linear(dim + dim // 2, dim)
        self.fc2 = nn.Linear(dim, rules * dim)

    def forward(self, log_weights: Tensor, route: Tensor, encoding: Encoding) -> Tensor:
        """(B, W), (B, d), tokens -> (B, d)."""
        seen = F.relu(self.look(encoding.tokens)).masked_fill(encoding.padded.unsqueeze(-1), 0.0).amax(1)
        directions = self.fc2(F.gelu(self.fc1(torch.cat((route, seen), -1)))).unflatten(-1, (self.rules, -1))
        return (log_weights.unsqueeze(-1) * directions).sum(1)


class Decoder(nn.Module):
    """Noisy trajectories (C, P, 81, 4), step 0 = current state, normalised -> the same shape, raw network output."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        dim = config.hidden
        self.neighbours = config.neighbours
        self.mask_padded_tokens = config.mask_padded_tokens
        self.preproj = Mlp(config.state_dim, config.preproj_hidden, dim)
        self.agent_embedding = nn.Embedding(2, dim)  # row 0: the ego, row 1: every neighbour
        self.route_encoder = RouteEncoder(config)
        self.time_embedding = TimeEmbedding(dim)
        self.speed_embedding = Mlp(1, dim, dim) if config.ego_speed else None
        self.speed_dropout = config.speed_dropout
        weights = len(config.rule_weights)
        self.weight_embedding = WeightEmbedding(weights, dim) if weights else None
        blocks = nn.ModuleList(DiTBlock(config) for _ in range(config.decoder_depth))
        self.blocks = cast("Sequence[DiTBlock]", blocks)  # the type ModuleList does not say of what
        self.final_layer = FinalLayer(dim, config.state_dim)

    def context(self, scene: Scene, encoding: Encoding, dense: bool = False) -> Context:
        """Route encoding and the keys and values of cross-attention: once a plan, not once a denoising step."""
        route = self.route_encoder(scene.route_lanes)
        if self.speed_embedding is not None:
            route = route + self._speed(scene)
        if self.weight_embedding is not None and scene.rule_weights is not None:
            route = route + self.weight_embedding(scene.rule_weights, route, encoding)
        return Context(
            route=route,
            keys_values=[block.cross_attn.keys_values(encoding.tokens, packed=True) for block in self.blocks],
            token_bias=self._token_bias(encoding),
            agent_bias=self._agent_bias(present(current_states(scene, self.neighbours)), dense),
        )

    def _token_bias(self, encoding: Encoding) -> Tensor | None:
        if self.mask_padded_tokens:
            return hiding_bias(encoding.padded)
        if encoding.alike == 1:
            return None
        bias = encoding.tokens.new_zeros(1, 1, 1, encoding.tokens.shape[1])
        bias[..., -1] = math.log(encoding.alike)  # n equal keys are one key of n times the weight
        return bias

    def _agent_bias(self, there: Tensor, dense: bool) -> Tensor | None:
        """there (B, P) bool. Attention without a mask is quicker."""
        return hiding_bias(~there) if dense or not bool(there.all()) else None

    def _speed(self, scene: Scene) -> Tensor:
        """(B, d) from the ego's speed; in training a share of the scenes gets nothing."""
        assert self.speed_embedding is not None
        embedded = self.speed_embedding(scene.ego_current_state[:, EgoColumn.VX, None])
        if not (self.training and self.speed_dropout):
            return embedded
        kept = torch.rand(len(embedded), 1, device=embedded.device) >= self.speed_dropout
        return embedded * kept

    def modulation(self, route: Tensor, time: Tensor) -> Modulation:
        """route (..., d), time broadcastable to (...) -> AdaLN parameters (..., 6d) and (..., 2d)."""
        condition = F.silu(route + self.time_embedding(time))
        blocks = [block.modulation(condition) for block in self.blocks]
        return Modulation(blocks, self.final_layer.modulation(condition))

    def forward(self, x: Tensor, modulation: Modulation, context: Context) -> tuple[Tensor, Tensor]:
        """x (C, P, 81, 4) -> output (C, P, 81, 4) and the tokens (C, P, d) before the final layer."""
        draws = x.shape[0] // context.route.shape[0]
        agent_bias = context.agent_bias
        if agent_bias is not None and draws > 1:
            agent_bias = agent_bias.repeat_interleave(draws, 0)
        embedding = self.agent_embedding.weight
        tokens = self.preproj(x.flatten(2))
        tokens = tokens + torch.cat((embedding[:1], embedding[1:].expand(self.neighbours, -1)))
        for block, parameters, keys_values in zip(self.blocks, modulation.blocks, context.keys_values):
            tokens = block(tokens, parameters, agent_bias, keys_values, context.token_bias)
        return self.final_layer(tokens, modulation.final).view_as(x), tokens


def current_states(scene: Scene, neighbours: int) -> Tensor:
    """Scene (metres or normalised) -> (B, 1 + neighbours, 4): pose now of the ego and of its nearest neighbours."""
    ego = scene.ego_current_state[:, None, POSE]
    return torch.cat((ego, scene.neighbor_agents_past[:, :neighbours, -1, POSE]), 1)
