"""Parts that planTF and PLUTO share: agents' histories, the ego's state and polylines as tokens; the encoder block.

Parameter names are the published ones.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from radp.planners.zoo.batch import Batch

PAST, FUTURE = 21, 80  # samples of 0.1 s; index 20 is now
STATE_TOKENS = 6  # x, y, yaw, vx, ax, steering
DROPPED_TOKENS = 3  # the last ones of a state may be hidden in training
LEVELS = ((1, 2, 3), (2, 4, 3), (4, 8, 5))  # multiple of the channels, heads, window of each level of the histories
CHANNELS = 32  # of the first level
BLOCKS = 2  # of each level


class RowDropPath(nn.Module):
    """Leaves a branch out for whole rows with probability `rate` in training, and scales the others."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.rate == 0.0:
            return x
        keep = torch.rand(len(x), *(1,) * (x.ndim - 1), device=x.device) >= self.rate
        return x * keep / (1.0 - self.rate)


class GeluMlp(nn.Module):
    """(..., d) -> (..., d) through `hidden` with GELU."""

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(dim, hidden), nn.Linear(hidden, dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(F.gelu(self.fc1(x)))


class NeighbourAttention(nn.Module):
    """(N, L, c): each step attends to a window of k steps round it, shifted inwards at the ends, never cut."""

    def __init__(self, dim: int, heads: int, window: int) -> None:
        super().__init__()
        self.heads, self.window = heads, window
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.rpb = nn.Parameter(torch.zeros(heads, 2 * window - 1))
        nn.init.trunc_normal_(self.rpb, std=0.02, a=-2.0, b=2.0)

    def forward(self, x: Tensor) -> Tensor:
        length, k = x.shape[1], self.window
        q, keys, values = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        step = torch.arange(length, device=x.device)
        start = (step - (k - 1) // 2).clamp(0, length - k)[:, None]
        seen = (step >= start) & (step < start + k)
        offset = (step - step[:, None] + k - 1).clamp(0, 2 * k - 2)
        logits = q @ keys.transpose(-1, -2) / math.sqrt(q.shape[-1]) + self.rpb[:, offset]
        mixed = logits.masked_fill(~seen, -math.inf).softmax(-1) @ values
        return self.proj(mixed.transpose(1, 2).flatten(2))


class HistoryBlock(nn.Module):
    def __init__(self, dim: int, heads: int, window: int, drop: float) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn, self.mlp = NeighbourAttention(dim, heads, window), GeluMlp(dim, 3 * dim)
        self.drop_path = RowDropPath(drop)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.drop_path(self.attn(self.norm1(x)))
        return x + self.drop_path(self.mlp(self.norm2(x)))


class Halving(nn.Module):
    """(N, L, c) -> (N, L / 2, 2c)."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.reduction = nn.Conv1d(dim, 2 * dim, 3, stride=2, padding=1, bias=False)
        self.norm = nn.LayerNorm(2 * dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.reduction(x.transpose(1, 2)).transpose(1, 2))


class HistoryLevel(nn.Module):
    """(N, L, c) -> the level's result (N, L, c), and what goes on to the next level."""

    def __init__(self, dim: int, heads: int, window: int, drops: list[float], last: bool) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(HistoryBlock(dim, heads, window, drop) for drop in drops)
        self.downsample = None if last else Halving(dim)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        for block in self.blocks:
            x = block(x)
        return x, x if self.downsample is None else self.downsample(x)


class HistoryEncoder(nn.Module):
    """(N, 9, 20) changes from step to step -> (N, d): a pyramid of three lengths, read at the last step."""

    def __init__(self, dim: int, drop_path: float, channels: int = CHANNELS) -> None:
        super().__init__()
        sizes = [(times * channels, heads, window) for times, heads, window in LEVELS]
        self.embed = nn.ModuleDict({"proj": nn.Conv1d(9, channels, 3, padding=1)})
        drops = np.linspace(0, drop_path, BLOCKS * len(sizes)).tolist()
        self.levels = nn.ModuleList(
            HistoryLevel(*size, drops[BLOCKS * i : BLOCKS * i + BLOCKS], last=i == len(sizes) - 1)
            for i, size in enumerate(sizes)
        )
        for i, (width, _, _) in enumerate(sizes):
            self.add_module(f"norm{i}", nn.LayerNorm(width))
        self.lateral_convs = nn.ModuleList(nn.Conv1d(width, dim, 3, padding=1) for width, _, _ in sizes)
        self.fpn_conv = nn.Conv1d(dim, dim, 3, padding=1)

    def forward(self, changes: Tensor) -> Tensor:
        x = self.embed["proj"](changes).transpose(1, 2)
        laterals = []
        for i, level in enumerate(self.levels):
            result, x = level(x)
            laterals.append(self.lateral_convs[i](getattr(self, f"norm{i}")(result).transpose(1, 2)))
        down = laterals[-1]
        for lateral in laterals[-2::-1]:
            down = lateral + F.interpolate(down, scale_factor=2.0, mode="linear")
        return self.fpn_conv(down)[..., -1]


class StateAttention(nn.Module):
    """current_state (B, >= 6) -> (B, d): one query over a token for each number.

    In training, speed, acceleration and steering are hidden with probability `drop`: where `uniform` (B, 3) < drop.
    """

    def __init__(self, dim: int, drop: float) -> None:
        super().__init__()
        self.drop = drop
        self.linears = nn.ModuleList(nn.Linear(1, dim) for _ in range(STATE_TOKENS))
        self.attn = nn.MultiheadAttention(dim, 4, batch_first=True)
        self.pos_embed = nn.Parameter(torch.randn(1, STATE_TOKENS, dim) * 0.02)
        self.query = nn.Parameter(torch.randn(1, 1, dim) * 0.02)

    def forward(self, state: Tensor, uniform: Tensor | None = None) -> Tensor:
        tokens = torch.stack([linear(state[:, i, None]) for i, linear in enumerate(self.linears)], 1) + self.pos_embed
        hidden = torch.zeros(len(state), STATE_TOKENS, dtype=torch.bool, device=state.device)
        if self.training and self.drop > 0:
            drawn = torch.rand(len(state), DROPPED_TOKENS, device=state.device) if uniform is None else uniform
            hidden[:, -DROPPED_TOKENS:] = drawn < self.drop
        query = self.query.expand(len(state), -1, -1)
        return self.attn(query, tokens, tokens, key_padding_mask=hidden, need_weights=False)[0][:, 0]


class RoadUserEncoder(nn.Module):
    """Histories and the ego's state -> (B, A, d), the ego first; its past is not read, only its state."""

    def __init__(self, dim: int, drop_path: float, state_drop: float, channels: int = CHANNELS) -> None:
        super().__init__()
        self.history_encoder = HistoryEncoder(dim, drop_path, channels)
        self.ego_state_emb = StateAttention(dim, state_drop)
        self.type_emb = nn.Embedding(4, dim)

    def forward(self, batch: Batch, uniform: Tensor | None = None) -> Tensor:
        seen = agents_seen(batch)
        history = self.history_encoder(self.changes(batch)[seen])
        tokens = history.new_zeros(*seen.shape, history.shape[-1])
        tokens[seen] = history
        ego = self.ego_state_emb(batch["current_state"], uniform)
        tokens = torch.cat((ego[:, None], tokens[:, 1:]), 1)
        return tokens + self.type_emb(batch["agent/category"].long())

    @staticmethod
    def changes(batch: Batch) -> Tensor:
        """(B, A, 9, 20): change of position and velocity, cos and sin of that of the heading, size, both steps seen."""
        valid = batch["agent/valid_mask"][:, :, :PAST]
        both = (valid[..., 1:] & valid[..., :-1]).float()
        moved, sped, turned = (
            batch[f"agent/{name}"][:, :, :PAST].diff(dim=2) for name in ("position", "velocity", "heading")
        )
        turned = turned * both
        parts = (moved * both[..., None], sped * both[..., None], turned.cos()[..., None], turned.sin()[..., None])
        size = batch["agent/shape"][:, :, 1:PAST]
        return torch.cat((*parts, size, both[..., None]), -1).transpose(-1, -2)


class PointNet(nn.Module):
    """points (N, P, n), valid (N, P) -> (N, d): two rounds of a point-wise MLP and a maximum over all points, where
    the points that are not valid count as zeros. Batch norm runs over the valid points."""

    def __init__(self, features: int, dim: int) -> None:
        super().__init__()
        self.first_mlp = nn.Sequential(
            nn.Linear(features, dim), nn.BatchNorm1d(dim), nn.ReLU(), nn.Linear(dim, 2 * dim)
        )
        self.second_mlp = nn.Sequential(
            nn.Linear(4 * dim, 2 * dim), nn.BatchNorm1d(2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim)
        )

    def forward(self, points: Tensor, valid: Tensor) -> Tensor:
        first = self.first_mlp(points[valid])
        most = _scatter(first, valid).max(1).values
        linear, *rest = self.second_mlp
        assert isinstance(linear, nn.Linear)
        both = with_rows(linear, first, most, valid.nonzero()[:, 0])
        for layer in rest:
            both = layer(both)
        return _scatter(both, valid).max(1).values


def with_rows(linear: nn.Linear, values: Tensor, rows: Tensor, row: Tensor) -> Tensor:
    """linear([values, rows[row]]) for values (n, a), rows (m, b), row (n,); the part of the rows is computed once each,
    not once a value."""
    own, shared = linear.weight.split((values.shape[-1], rows.shape[-1]), 1)
    return F.linear(values, own, linear.bias) + F.linear(rows, shared).index_select(0, row)


def _scatter(values: Tensor, valid: Tensor) -> Tensor:
    full = values.new_zeros(*valid.shape, values.shape[-1])
    full[valid] = values
    return full


class EncoderBlock(nn.Module):
    """(B, S, d), hidden (B, S) True = not a key -> (B, S, d)."""

    def __init__(self, dim: int, heads: int, drop: float) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.mlp, self.drop_path = GeluMlp(dim, 4 * dim), RowDropPath(drop)

    def forward(self, x: Tensor, hidden: Tensor) -> Tensor:
        h = self.norm1(x)
        x = x + self.drop_path(self.attn(h, h, h, key_padding_mask=hidden, need_weights=False)[0])
        return x + self.drop_path(self.mlp(self.norm2(x)))


def encoder_blocks(dim: int, heads: int, depth: int, drop_path: float) -> nn.ModuleList:
    drops = np.linspace(0, drop_path, depth).tolist()
    return nn.ModuleList(EncoderBlock(dim, heads, drop) for drop in drops)


def agents_seen(batch: Batch) -> Tensor:
    """(B, A): agents that were seen at some step up to now."""
    return batch["agent/valid_mask"][:, :, :PAST].any(-1)


def polygons_seen(batch: Batch) -> Tensor:
    """(B, M): polygons with a point in range."""
    return batch["map/valid_mask"].any(-1)


def line_features(position: Tensor, vector: Tensor, orientation: Tensor, origin: Tensor) -> Tensor:
    """(..., P, 2), (..., P, 2), (..., P), (..., 2) -> (..., P, 6): place from the origin, step, cos and sin."""
    direction = torch.stack((orientation.cos(), orientation.sin()), -1)
    return torch.cat((position - origin[..., None, :], vector, direction), -1)


class PolygonTables(nn.Module):
    """What planTF and PLUTO look up for a polygon: its kind, whether it is on the route, its light, no speed limit."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.type_emb, self.on_route_emb = nn.Embedding(3, dim), nn.Embedding(2, dim)
        self.traffic_light_emb, self.unknown_speed_emb = nn.Embedding(4, dim), nn.Embedding(1, dim)

    def kinds(self, batch: Batch) -> Tensor:
        """(B, M, d): the sum of the first three."""
        kind, route, light = (batch[f"map/polygon_{name}"].long() for name in ("type", "on_route", "tl_status"))
        return self.type_emb(kind) + self.on_route_emb(route) + self.traffic_light_emb(light)


def init_weights(module: nn.Module) -> None:
    """Xavier for linear layers and attention, small normal tables; convolutions as torch has them."""
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    elif isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
