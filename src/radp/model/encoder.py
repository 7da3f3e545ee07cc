"""The scene encoder: agents, static objects and lanes become tokens, and self-attention lets them see each other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from radp.model.config import ModelConfig
from radp.model.dropout import DropPath
from radp.model.layers import Attention, FlatPolyline, Mlp, PolylineMixer, hiding_bias, run_valid_rows
from radp.scene.normaliser import ObservationNormaliser
from radp.scene.scene import (
    AGENT_CONTINUOUS,
    AGENT_TYPE,
    LANE_GEOMETRY,
    LANE_LIGHT,
    POSE,
    XY,
    EgoColumn,
    LaneColumn,
    Scene,
    StaticColumn,
    present,
)

CONTINUOUS, TYPES, LANE_FEATURES, LIGHTS, STATIC_FEATURES = 8, 3, 8, 4, len(StaticColumn)
POSITION_FEATURES = 7  # x, y, cos, sin and the kind of token


@dataclass(frozen=True)
class Encoding:
    """tokens (B, S, d); padded (B, S) bool, True where the token stands for nothing.

    Order: agents, static objects, lanes (and route lanes with `route_tokens`). Padded tokens hold values, too, and all
    of a scene hold the same. When packed, the slots that no scene of the batch uses are one token, the last.
    """

    tokens: Tensor
    padded: Tensor
    slots: Tensor | None = None  # packed: for each slot, the index of its token
    alike: int = 1  # packed: how many slots the last token stands for

    def whole(self) -> Encoding:
        """With one token for each slot."""
        if self.slots is None:
            return self
        return Encoding(self.tokens.index_select(1, self.slots), self.padded.index_select(1, self.slots))


def polyline_body(config: ModelConfig, steps: int, features: int) -> nn.Module:
    if config.polyline_encoder == "flat":
        return FlatPolyline(steps, features, config.mixer_channels)
    return PolylineMixer(
        steps, features, config.mixer_tokens, config.mixer_channels, config.mixer_depth, config.encoder_dropout
    )


class AgentEncoder(nn.Module):
    """Agents (B, A, 21, 11) normalised -> tokens (B, A, d) and valid (B, A)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        channels, self.hidden = config.mixer_channels, config.hidden
        self.polyline = polyline_body(config, config.history, CONTINUOUS + 1)
        self.type_emb = nn.Linear(TYPES, channels)
        self.norm = nn.LayerNorm(channels)
        self.emb_project = Mlp(channels, config.hidden, config.hidden, config.encoder_dropout)

    def forward(self, agents: Tensor) -> tuple[Tensor, Tensor]:
        valid = present(agents[..., AGENT_CONTINUOUS]).any(-1)
        return run_valid_rows(self._encode, valid, self.hidden, agents), valid

    def _encode(self, agents: Tensor) -> Tensor:
        motion = agents[..., AGENT_CONTINUOUS]
        x = self.polyline(torch.cat((motion, present(motion).unsqueeze(-1)), -1))
        return self.emb_project(self.norm(x + self.type_emb(agents[:, -1, AGENT_TYPE])))


class StaticEncoder(nn.Module):
    """Static objects (B, S, 10) normalised -> tokens (B, S, d) and valid (B, S)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.hidden = config.hidden
        self.projection = Mlp(STATIC_FEATURES, config.hidden, config.hidden, config.encoder_dropout)

    def forward(self, objects: Tensor) -> tuple[Tensor, Tensor]:
        valid = present(objects)
        return run_valid_rows(self.projection, valid, self.hidden, objects), valid


class LaneEncoder(nn.Module):
    """Lanes (B, L, 20, 12), limit and has_limit (B, L, 1), normalised -> tokens (B, L, d) and valid (B, L)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        channels, self.hidden = config.mixer_channels, config.hidden
        self.polyline = polyline_body(config, config.lane_points, LANE_FEATURES)
        self.speed_limit_emb = nn.Linear(1, channels)
        self.unknown_speed_emb = nn.Embedding(1, channels)
        self.traffic_emb = nn.Linear(LIGHTS, channels)
        self.norm = nn.LayerNorm(channels)
        self.emb_project = Mlp(channels, config.hidden, config.hidden, config.encoder_dropout)

    def forward(self, lanes: Tensor, limit: Tensor, has_limit: Tensor) -> tuple[Tensor, Tensor]:
        valid = present(lanes[..., LANE_GEOMETRY]).any(-1)
        return run_valid_rows(self._encode, valid, self.hidden, lanes, limit, has_limit), valid

    def _encode(self, lanes: Tensor, limit: Tensor, has_limit: Tensor) -> Tensor:
        x = self.polyline(lanes[..., LANE_GEOMETRY])
        x = x + torch.where(has_limit, self.speed_limit_emb(limit), self.unknown_speed_emb.weight)
        return self.emb_project(self.norm(x + self.traffic_emb(lanes[:, 0, LANE_LIGHT])))


class FusionBlock(nn.Module):
    """(B, S, d) -> (B, S, d). Only the query is normed; keys and values are the raw residual stream."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        dim, rate = config.hidden, config.encoder_dropout
        self.norm1 = nn.LayerNorm(dim)
        self.attn = Attention(dim, config.heads, rate)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = Mlp(dim, 4 * dim, dim, rate)
        self.drop_path = DropPath(rate)

    def forward(self, x: Tensor, key_bias: Tensor) -> Tensor:
        x = x + self.drop_path(self.attn(self.norm1(x), self.attn.keys_values(x), key_bias))
        return x + self.drop_path(self.mlp(self.norm2(x)))


class Fusion(nn.Module):
    """Tokens (B, S, d), padded (B, S) -> (B, S, d)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(FusionBlock(config) for _ in range(config.encoder_depth))
        self.norm = nn.LayerNorm(config.hidden)

    def forward(self, x: Tensor, padded: Tensor) -> Tensor:
        key_bias = hiding_bias(padded)
        for block in self.blocks:
            x = block(x, key_bias)
        return self.norm(x)


@dataclass(frozen=True)
class AssumedLimits:
    """Lanes whose limit is not known get `least` m/s, or the ego's own speed where it is faster."""

    least: float
    normaliser: ObservationNormaliser

    def __call__(self, scene: Scene) -> Scene:
        """The same normalised Scene, every limit known."""
        motion = slice(EgoColumn.VX, EgoColumn.AX)
        mean, std = self.normaliser.of("ego_current_state", scene.ego_current_state)
        speed = (scene.ego_current_state[:, motion] * std[motion] + mean[motion]).norm(dim=-1)
        assumed = speed.clamp(min=self.least).view(-1, 1, 1)
        filled: dict[str, Any] = {}
        for name in ("lanes", "route_lanes"):
            limit, known = getattr(scene, f"{name}_speed_limit"), getattr(scene, f"{name}_has_speed_limit")
            mean, std = self.normaliser.of(f"{name}_speed_limit", limit)
            filled[f"{name}_speed_limit"] = torch.where(known, limit, (assumed - mean) / std)
            filled[f"{name}_has_speed_limit"] = torch.ones_like(known)
        return replace(scene, **filled)


class SceneEncoder(nn.Module):
    """Normalised Scene -> Encoding."""

    def __init__(self, config: ModelConfig, limits: AssumedLimits | None = None) -> None:
        super().__init__()
        self.limits = limits
        self.neighbor_encoder = AgentEncoder(config)
        self.static_encoder = StaticEncoder(config)
        self.lane_encoder = LaneEncoder(config)
        self.pos_emb = nn.Linear(POSITION_FEATURES, config.hidden)
        self.fusion = Fusion(config)
        self.route_encoder = LaneEncoder(config) if config.route_tokens else None
        self.route_order_emb = nn.Embedding(config.route_lanes, config.hidden) if config.route_tokens else None

    def forward(self, scene: Scene, pack: bool = False) -> Encoding:
        """`pack` spares the slots that no scene uses; with dropout, padded tokens differ and cannot be packed."""
        tokens, valid = self.embed(scene)
        if not pack:
            return Encoding(self.fusion(tokens, ~valid), ~valid)
        used = valid.any(0)
        used[0] = True  # the one key that attention always sees
        count = int(used.sum())
        chosen = used.logical_not().argsort(stable=True)[: count + 1]  # those in use, and one of the others
        tokens, valid = (part.index_select(1, chosen) for part in (tokens, valid))
        slots = torch.where(used, used.cumsum(0) - 1, count)
        return Encoding(self.fusion(tokens, ~valid), ~valid, slots, alike=max(1, len(used) - count))

    def embed(self, scene: Scene) -> tuple[Tensor, Tensor]:
        """Tokens (B, S, d) before they see each other, zeros where there is nothing, and valid (B, S)."""
        scene = scene if self.limits is None else self.limits(scene)
        agents, agents_valid = self.neighbor_encoder(scene.neighbor_agents_past)
        objects, objects_valid = self.static_encoder(scene.static_objects)
        lanes, lanes_valid = self.lane_encoder(scene.lanes, scene.lanes_speed_limit, scene.lanes_has_speed_limit)
        tokens = torch.cat((agents, objects, lanes), 1)
        valid = torch.cat((agents_valid, objects_valid, lanes_valid), 1)
        positions = torch.cat(token_positions(scene), 1)
        if self.route_encoder is not None:
            route, route_valid = self._route(scene)
            tokens, valid = torch.cat((tokens, route), 1), torch.cat((valid, route_valid), 1)
            positions = torch.cat((positions, lane_positions(scene.route_lanes)), 1)
        placed = tokens + self.pos_emb(positions) * valid.unsqueeze(-1)  # padded tokens stay zero, without the bias
        return placed, valid

    def _route(self, scene: Scene) -> tuple[Tensor, Tensor]:
        assert self.route_encoder is not None and self.route_order_emb is not None
        route, valid = self.route_encoder(
            scene.route_lanes, scene.route_lanes_speed_limit, scene.route_lanes_has_speed_limit
        )
        return route + self.route_order_emb.weight[: route.shape[1]] * valid.unsqueeze(-1), valid


def token_positions(scene: Scene) -> tuple[Tensor, Tensor, Tensor]:
    """Normalised Scene -> (B, A, 7), (B, S, 7), (B, L, 7): pose in normalised units and one-hot kind of each token."""
    return (
        _with_kind(scene.neighbor_agents_past[:, :, -1, POSE], 0),
        _with_kind(scene.static_objects[..., POSE], 1),
        lane_positions(scene.lanes),
    )


def lane_positions(lanes: Tensor) -> Tensor:
    """(B, L, 20, 12) -> (B, L, 7): the middle point and its direction; a padded lane points along x."""
    middle = lanes[:, :, lanes.shape[2] // 2]
    angle = torch.atan2(middle[..., LaneColumn.DY], middle[..., LaneColumn.DX]).unsqueeze(-1)
    return _with_kind(torch.cat((middle[..., XY], angle.cos(), angle.sin()), -1), 2)


def _with_kind(poses: Tensor, kind: int) -> Tensor:
    one_hot = F.one_hot(torch.tensor(kind, device=poses.device), 3).to(poses.dtype)
    return torch.cat((poses, one_hot.expand(*poses.shape[:-1], 3)), -1)
