"""UrbanDriver, the open-loop version of nuplan-devkit: polylines, each a vector, and one attention from the ego.

Parameter names are the published ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from radp.planners.zoo.batch import Batch

POINTS, COLUMNS, POSES = 20, 8, 16
PAST = 5  # frames of agents, oldest first in the features, newest first in the network
# name, polylines, row of the type embedding; the order of the network's input
LAYERS = (
    ("LANE", 30, 4),
    ("LEFT_BOUNDARY", 30, 7),
    ("RIGHT_BOUNDARY", 30, 8),
    ("STOP_LINE", 20, 5),
    ("CROSSWALK", 20, 6),
    ("ROUTE_LANES", 30, 9),
)
VEHICLES = 30
EGO_TYPE, VEHICLE_TYPE, TYPES = 0, 1, 11
POLYLINES = 1 + VEHICLES + sum(count for _, count, _ in LAYERS)  # 191


@dataclass(frozen=True)
class UrbanDriverConfig:
    dim: int = 256
    heads: int = 8
    layers: int = 3
    hidden: int = 1024  # of the output MLP
    positions: int = 5000  # rows of the stored table of sinusoids; 20 are used


class PointPosition(nn.Module):
    """Sinusoids of the point's index: column 2i sin(p w_i), 2i + 1 cos(p w_i), w_i = 10000^(-2i / dim)."""

    static_embedding: Tensor

    def __init__(self, dim: int, positions: int) -> None:
        super().__init__()
        rate = torch.exp(torch.arange(0, dim, 2).float() * (-math.log(10000.0) / dim))
        angle = torch.arange(positions).float()[:, None] * rate
        self.register_buffer("static_embedding", torch.stack((angle.sin(), angle.cos()), -1).flatten(1)[:, None])


class SubgraphLayer(nn.Module):
    """(N, 20, d), valid (N, 20) -> (N, 20, d): every point sees the maximum over the valid points of its polyline."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.mlp = nn.ModuleDict({"linear": nn.Linear(dim, dim, bias=False), "norm": nn.LayerNorm(dim)})
        self.linear_remap = nn.Linear(2 * dim, dim)

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        own = F.relu(self.mlp["norm"](self.mlp["linear"](x)))
        first, second = self.linear_remap.weight.chunk(2, 1)  # of the point's own half and of the maximum's
        return F.linear(own, first, self.linear_remap.bias) + F.linear(max_over(own, valid), second)[:, None]


def max_over(x: Tensor, valid: Tensor) -> Tensor:
    """x (N, P, d), valid (N, P), at least one a row -> (N, d)."""
    return x.masked_fill(~valid[..., None], -math.inf).max(1).values


class Subgraph(nn.Module):
    """(N, 20, d), valid (N, 20) -> (N, d): a vector for each polyline."""

    def __init__(self, dim: int, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(SubgraphLayer(dim) for _ in range(layers))

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x, valid)
        return max_over(x, valid)


class OutputMlp(nn.Module):
    """(B, d) -> (B, 48)."""

    def __init__(self, sizes: tuple[int, ...]) -> None:
        super().__init__()
        layers = [nn.Linear(a, b) for a, b in pairwise(sizes)]
        for layer in layers:
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)
        self.layers = nn.ModuleList(layers)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers[:-1]:
            x = F.relu(layer(x))
        return self.layers[-1](x)


class GlobalHead(nn.Module):
    """The attention of the ego, and the MLP after it."""

    def __init__(self, config: UrbanDriverConfig) -> None:
        super().__init__()
        self.encoder = nn.MultiheadAttention(config.dim, config.heads, batch_first=True)
        self.output_embed = OutputMlp((config.dim, config.hidden, config.hidden, 3 * POSES))


class UrbanDriver(nn.Module):
    """features (B, 191, 20, 8), avails (B, 191, 20) of `assemble` -> poses (B, 16, 3) every 0.5 s."""

    def __init__(self, config: UrbanDriverConfig | None = None) -> None:
        super().__init__()
        self.config = config = config or UrbanDriverConfig()
        dim = config.dim
        self.feature_embedding = nn.Linear(COLUMNS, dim)
        self.positional_embedding = PointPosition(dim, config.positions)
        self.type_embedding = nn.ModuleDict({"embedding": nn.Embedding(TYPES, dim)})
        self.local_subgraph = Subgraph(dim, config.layers)
        self.global_head = GlobalHead(config)
        kinds = [EGO_TYPE] + [VEHICLE_TYPE] * VEHICLES + [row for _, count, row in LAYERS for _ in range(count)]
        self.register_buffer("kinds", torch.tensor(kinds), persistent=False)

    def forward(self, batch: Batch) -> Tensor:
        mixed, _ = self.attend(*self.polylines(batch["features"], batch["avails"]))
        return self.global_head.output_embed(mixed).unflatten(1, (POSES, 3))

    def polylines(self, features: Tensor, avails: Tensor) -> tuple[Tensor, Tensor]:
        """-> a vector for each polyline (B, 191, d), zero where it has no valid point; seen (B, 191)."""
        seen = avails.any(-1)
        x = self.feature_embedding(features[seen]) + self.positional_embedding.static_embedding[:POINTS, 0]
        vectors = x.new_zeros(*seen.shape, x.shape[-1])
        vectors[seen] = self.local_subgraph(x, avails[seen])
        return vectors, seen

    def attend(self, polylines: Tensor, seen: Tensor) -> tuple[Tensor, Tensor]:
        """-> what the ego gathers (B, d) and its attention (B, 191), the mean over heads."""
        scaled = self.scaled(polylines)
        keys = scaled + self.type_embedding["embedding"](self.kinds)
        hidden = torch.cat((torch.zeros_like(seen[:, :1]), ~seen[:, 1:]), 1)
        mixed, attention = self.global_head.encoder(scaled[:, :1], keys, scaled, key_padding_mask=hidden)
        return mixed[:, 0], attention[:, 0]

    def scaled(self, polylines: Tensor) -> Tensor:
        """Vectors of length sqrt(d)."""
        return F.normalize(polylines, dim=-1) * math.sqrt(polylines.shape[-1])


def assemble(sample: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """ego (5, 7), agents_VEHICLE (5, N, 8), coords_X, avails_X, traffic_light_LANE of one sample -> features
    (191, 20, 8), avails (191, 20): newest frame first, missing polylines zero and not available."""
    features = torch.zeros(POLYLINES, POINTS, COLUMNS)
    avails = torch.zeros(POLYLINES, POINTS, dtype=torch.bool)
    features[0, :PAST, :3] = sample["ego"].flip(0)[:, :3]
    avails[0, :PAST] = True
    agents = sample["agents_VEHICLE"].flip(0)[:, :VEHICLES].transpose(0, 1)
    features[1 : 1 + len(agents), :PAST] = agents
    avails[1 : 1 + len(agents), :PAST] = True
    first = 1 + VEHICLES
    for name, count, _ in LAYERS:
        features[first : first + count, :, :2] = sample[f"coords_{name}"]
        avails[first : first + count] = sample[f"avails_{name}"]
        if name == "LANE":
            features[first : first + count, :, 2:6] = sample["traffic_light_LANE"]
        first += count
    return features.masked_fill(~avails[..., None], 0.0), avails


def weighted_loss(output: Tensor, target: Tensor) -> Tensor:
    """The devkit's: mean |xy error| w_k + mean |heading error| w_k, w_k = exp(-k / 16); the heading is not wrapped."""
    weight = torch.exp(-torch.arange(POSES, device=output.device) / POSES)
    error = (output - target).abs()
    return (error[..., :2] * weight[:, None]).mean() + (error[..., 2] * weight).mean()
