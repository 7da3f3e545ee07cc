"""GameFormer-Planner (Huang et al., ICCV 2023), the network: levels of interaction between plans and predictions.

Parameter names are the published ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from radp.planners.zoo.batch import Batch
from radp.scenario import DT

FUTURE = 80
AGENTS = 11  # the ego and the ten nearest others
GROUP = 10  # points of a polyline that become one token
MOST_ACCELERATION, MOST_CURVATURE = 5.0, 0.5  # m/s2, 1/m


@dataclass(frozen=True)
class GameFormerConfig:
    dim: int = 256
    heads: int = 8
    layers: int = 3
    levels: int = 2
    modes: int = 6
    dropout: float = 0.1


class ActorEncoder(nn.Module):
    """(N, 21, n) -> (N, d): the last step of an LSTM."""

    def __init__(self, inputs: int, dim: int) -> None:
        super().__init__()
        self.motion = nn.LSTM(inputs, dim, 2, batch_first=True)

    def forward(self, past: Tensor) -> Tensor:
        return self.motion(past)[0][:, -1]


class PositionTable(nn.Module):
    """Sinusoids of the point's index."""

    pe: Tensor

    def __init__(self, points: int, dim: int) -> None:
        super().__init__()
        rate = torch.exp(torch.arange(0, dim, 2) * (-math.log(10000.0) / dim))
        angle = torch.arange(points)[:, None] * rate
        self.register_buffer("pe", torch.stack((angle.sin(), angle.cos()), -1).flatten(1)[None])


class LineEncoder(nn.Module):
    """(B, E, P, n) polylines -> tokens (B, E P / 10, d), and which of them to hide: those with a point at x = 0."""

    def __init__(self, inputs: int, points: int, dim: int, rate: float) -> None:
        super().__init__()
        self.point_net = nn.Sequential(
            nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, dim)
        )
        self.position_encode, self.dropout = PositionTable(points, dim), nn.Dropout(rate)

    def forward(self, lines: Tensor) -> tuple[Tensor, Tensor]:
        x = self.dropout(self.point_net(lines) + self.position_encode.pe)
        tokens = x.unflatten(2, (-1, GROUP)).max(3).values.flatten(1, 2)
        return tokens, (lines[..., 0] == 0).unflatten(2, (-1, GROUP)).any(3).flatten(1)


class SceneFusion(nn.Module):
    """The scene -> tokens (B, 236, d): ego, 20 neighbours, 200 of lanes, 15 of crosswalks; hidden (B, 236)."""

    def __init__(self, config: GameFormerConfig) -> None:
        super().__init__()
        dim, rate = config.dim, config.dropout
        self.ego_encoder, self.agent_encoder = ActorEncoder(7, dim), ActorEncoder(11, dim)
        self.lane_encoder, self.crosswalk_encoder = LineEncoder(7, 50, dim, rate), LineEncoder(3, 30, dim, rate)
        layer = nn.TransformerEncoderLayer(
            dim, config.heads, 4 * dim, dropout=rate, activation=F.gelu, batch_first=True
        )
        self.fusion_encoder = nn.TransformerEncoder(layer, config.layers, enable_nested_tensor=False)

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        ego, others = batch["ego_agent_past"], batch["neighbor_agents_past"]
        neighbours = self.agent_encoder(others.flatten(0, 1)).unflatten(0, others.shape[:2])
        lanes, no_lane = self.lane_encoder(batch["map_lanes"])
        crosswalks, no_crosswalk = self.crosswalk_encoder(batch["map_crosswalks"])
        actors = torch.cat((ego[:, None, -1, :5], others[:, :, -1, :5]), 1)
        hidden = torch.cat((actors.sum(-1) == 0, no_lane, no_crosswalk), 1)
        tokens = torch.cat((self.ego_encoder(ego)[:, None], neighbours, lanes, crosswalks), 1)
        return self.fusion_encoder(tokens, src_key_padding_mask=_some_key(hidden)), hidden


def _some_key(hidden: Tensor) -> Tensor:
    """Rows in which everything is hidden show their first key: attention over nothing is not a number."""
    first = torch.zeros_like(hidden)
    first[:, 0] = hidden.all(1)
    return hidden & ~first


class CrossTransformer(nn.Module):
    """Attention without a residual, then an MLP with one."""

    def __init__(self, config: GameFormerConfig) -> None:
        super().__init__()
        dim, rate = config.dim, config.dropout
        self.cross_attention = nn.MultiheadAttention(dim, config.heads, rate, batch_first=True)
        self.norm_1, self.norm_2, self.ffn = nn.LayerNorm(dim), nn.LayerNorm(dim), _ffn(dim, rate)
        self.dropout = nn.Dropout(rate)

    def forward(self, query: Tensor, memory: Tensor, hidden: Tensor) -> Tensor:
        """query (B, Q, d), memory (B, S, d), hidden (B, S) for all queries, or (B, Q, S)."""
        masks = {"key_padding_mask": hidden} if hidden.ndim == 2 else {"attn_mask": self.for_heads(hidden)}
        seen = self.norm_1(self.cross_attention(query, memory, memory, need_weights=False, **masks)[0])
        return self.norm_2(self.ffn(seen) + seen)

    def for_heads(self, hidden: Tensor) -> Tensor:
        """(B, Q, S) -> (B heads, Q, S)."""
        return hidden.repeat_interleave(self.cross_attention.num_heads, 0)


class SelfTransformer(nn.Module):
    def __init__(self, config: GameFormerConfig) -> None:
        super().__init__()
        dim, rate = config.dim, config.dropout
        self.self_attention = nn.MultiheadAttention(dim, config.heads, rate, batch_first=True)
        self.norm_1, self.norm_2, self.ffn = nn.LayerNorm(dim), nn.LayerNorm(dim), _ffn(dim, rate)

    def forward(self, x: Tensor, hidden: Tensor) -> Tensor:
        x = self.norm_1(self.self_attention(x, x, x, key_padding_mask=hidden, need_weights=False)[0] + x)
        return self.norm_2(self.ffn(x) + x)


def _ffn(dim: int, rate: float) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(dim, 4 * dim), nn.GELU(), nn.Dropout(rate), nn.Linear(4 * dim, dim), nn.Dropout(rate)
    )


class GaussianHead(nn.Module):
    """(..., d) -> (..., 80, 4) mean and log deviation of x and y; (...) score."""

    def __init__(self, dim: int, rate: float) -> None:
        super().__init__()
        self.gaussian = nn.Sequential(
            nn.Linear(dim, 2 * dim), nn.ELU(), nn.Dropout(rate), nn.Linear(2 * dim, 4 * FUTURE)
        )
        self.score = nn.Sequential(nn.Linear(dim, 64), nn.ELU(), nn.Linear(64, 1))

    def forward(self, x: Tensor, place: Tensor) -> tuple[Tensor, Tensor]:
        """place (..., 2): where each agent is now; means are given from there."""
        values = self.gaussian(x).unflatten(-1, (FUTURE, 4))
        means = values[..., :2] + place[..., None, :]
        return torch.cat((means, values[..., 2:]), -1), self.score(x).squeeze(-1)


class InitialPredictor(nn.Module):
    """Level 0: everybody for himself. -> content (B, 11, 6, d), futures (B, 11, 6, 80, 4), scores (B, 11, 6)."""

    modal: Tensor
    agent: Tensor

    def __init__(self, config: GameFormerConfig) -> None:
        super().__init__()
        self.multi_modal_query_embedding = nn.Embedding(config.modes, config.dim)
        self.agent_query_embedding = nn.Embedding(AGENTS, config.dim)
        self.query_encoder = CrossTransformer(config)
        self.predictor = GaussianHead(config.dim, config.dropout)
        self.register_buffer("modal", torch.arange(config.modes))
        self.register_buffer("agent", torch.arange(AGENTS))

    def forward(self, encoding: Tensor, hidden: Tensor, place: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        modes, agents = self.multi_modal_query_embedding(self.modal), self.agent_query_embedding(self.agent)
        query = encoding[:, :AGENTS, None] + modes + agents[:, None]
        content = self.query_encoder(query.flatten(1, 2), encoding, _some_key(hidden)).view_as(query)
        return content, *self.predictor(content, place[:, :, None])


class FutureEncoder(nn.Module):
    """(B, 11, 6, 80, 2) means -> (B, 11, 6, d): place, direction and velocity of each step, the maximum over them."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(5, 64), nn.ReLU(), nn.Linear(64, dim))

    def forward(self, means: Tensor, place: Tensor) -> Tensor:
        means = means.detach()
        start = place[:, :, None, None].expand_as(means[..., :1, :])
        move = torch.cat((start, means), -2).diff(dim=-2)
        angle = torch.atan2(move[..., 1], move[..., 0].clamp(min=1e-6))
        return self.mlp(torch.cat((means, angle[..., None], move / DT), -1)).max(-2).values


class InteractionStage(nn.Module):
    """Level k: everybody knows what everybody else intended at the level before."""

    def __init__(self, config: GameFormerConfig, futures: FutureEncoder) -> None:
        super().__init__()
        self.interaction_encoder, self.query_encoder = SelfTransformer(config), CrossTransformer(config)
        self.future_encoder = futures
        self.decoder = GaussianHead(config.dim, config.dropout)

    def forward(
        self, before: tuple[Tensor, Tensor, Tensor], encoding: Tensor, hidden: Tensor, place: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        content, futures, scores = before
        seen = self.future_encoder(futures[..., :2], place)
        intention = (seen * scores.softmax(-1)[..., None]).mean(2)
        actors = hidden[:, :AGENTS]
        between = self.interaction_encoder(intention, _some_key(actors))
        memory = torch.cat((between, encoding), 1)
        masks = torch.cat((actors, hidden), 1)[:, None].repeat(1, AGENTS, 1)
        masks.diagonal(dim1=1, dim2=2).fill_(True)
        masks = _some_key(masks.flatten(0, 1)).unflatten(0, masks.shape[:2])  # (B, 11, S)
        query = content + seen
        modes = query.shape[2]
        content = self.query_encoder(query.flatten(1, 2), memory, masks.repeat_interleave(modes, 1)).view_as(query)
        return content, *self.decoder(content, place[:, :, None])


class LevelDecoder(nn.Module):
    def __init__(self, config: GameFormerConfig) -> None:
        super().__init__()
        futures = FutureEncoder(config.dim)
        self.initial_predictor = InitialPredictor(config)
        self.interaction_stage = nn.ModuleList(InteractionStage(config, futures) for _ in range(config.levels))

    def forward(self, encoding: Tensor, hidden: Tensor, place: Tensor) -> list[tuple[Tensor, Tensor, Tensor]]:
        """-> content, futures and scores of each level."""
        levels = [self.initial_predictor(encoding, hidden, place)]
        for stage in self.interaction_stage:
            levels.append(stage(levels[-1], encoding, hidden, place))
        return levels


class PlanHead(nn.Module):
    """content of the ego (B, 6, d), the route and the present state -> poses (B, 80, 3)."""

    def __init__(self, config: GameFormerConfig) -> None:
        super().__init__()
        self.route_encoder = LineEncoder(3, 50, config.dim, config.dropout)
        self.route_fusion = CrossTransformer(config)
        self.plan_decoder = nn.Sequential(
            nn.Linear(2 * config.dim, 256), nn.ELU(), nn.Dropout(config.dropout), nn.Linear(256, 2 * FUTURE)
        )

    def forward(self, ego: Tensor, route: Tensor, state: Tensor) -> Tensor:
        tokens, hidden = self.route_encoder(route)
        hidden = torch.cat((torch.zeros_like(hidden[:, :1]), hidden[:, 1:]), 1)
        both = torch.cat((ego, self.route_fusion(ego, tokens, hidden)), -1)
        return drive(self.plan_decoder(both.max(1).values).unflatten(1, (FUTURE, 2)), state)


def drive(controls: Tensor, state: Tensor) -> Tensor:
    """controls (B, 80, 2: acceleration, curvature), state (B, >= 5: x, y, yaw, vx, vy) -> poses (B, 80, 3)."""
    acceleration = controls[..., 0].clamp(-MOST_ACCELERATION, MOST_ACCELERATION)
    speed = torch.hypot(state[:, 3], state[:, 4])[:, None] + torch.cumsum(acceleration * DT, 1)
    speed = speed.clamp(min=0)
    turn = controls[..., 1].clamp(-MOST_CURVATURE, MOST_CURVATURE) * speed
    yaw = torch.fmod(state[:, 2:3] + torch.cumsum(turn * DT, 1), 2 * math.pi)
    x = state[:, 0:1] + torch.cumsum(speed * yaw.cos() * DT, 1)
    y = state[:, 1:2] + torch.cumsum(speed * yaw.sin() * DT, 1)
    return torch.stack((x, y, yaw), -1)


class GameFormer(nn.Module):
    """ego_agent_past (B, 21, 7), neighbor_agents_past (B, 20, 21, 11), map_lanes (B, 40, 50, 7), map_crosswalks
    (B, 5, 30, 3), route_lanes (B, 10, 50, 3) -> ego_plan (B, 80, 3), level_k_interactions (B, 11, 6, 80, 4: means and
    log deviations), level_k_scores (B, 11, 6). Rows of zeros are padding; so is an ego that stands exactly still."""

    def __init__(self, config: GameFormerConfig | None = None) -> None:
        super().__init__()
        self.config = config = config or GameFormerConfig()
        self.encoder, self.decoder, self.planner = SceneFusion(config), LevelDecoder(config), PlanHead(config)

    def forward(self, batch: Batch) -> Batch:
        encoding, hidden = self.encoder(batch)
        ego, others = batch["ego_agent_past"][:, -1], batch["neighbor_agents_past"][:, : AGENTS - 1, -1]
        place = torch.cat((ego[:, None, :2], others[..., :2]), 1)
        levels = self.decoder(encoding, hidden, place)
        output = {"ego_plan": self.planner(levels[-1][0][:, 0], batch["route_lanes"], ego)}
        for k, (_, futures, scores) in enumerate(levels):
            output |= {f"level_{k}_interactions": futures, f"level_{k}_scores": scores}
        return output


def gameformer_loss(output: Batch, batch: Batch) -> Batch:
    """ego_future (B, 80, 3), neighbors_future (B, >= 10, 80, 3), zero = unknown -> plan_loss, level_k_loss, sums."""
    ego, others = batch["ego_future"], batch["neighbors_future"][:, : AGENTS - 1]
    parts, level = {}, 0
    while f"level_{level}_scores" in output:
        futures, scores = output[f"level_{level}_interactions"], output[f"level_{level}_scores"]
        parts[f"level_{level}_loss"] = level_loss(futures, scores, ego, others)[0]
        level += 1
    parts["level_k_loss"] = torch.stack(list(parts.values())).sum()
    plan = output["ego_plan"]
    parts["plan_loss"] = F.smooth_l1_loss(plan, ego) + F.smooth_l1_loss(plan[:, -1], ego[:, -1])
    return {"loss": parts["level_k_loss"] + parts["plan_loss"], **parts}


def level_loss(futures: Tensor, scores: Tensor, ego: Tensor, others: Tensor) -> tuple[Tensor, Tensor]:
    """Negative log likelihood of the mode nearest to what happened, and of its score; best mode (B, 11)."""
    known = torch.cat((torch.ones_like(ego[:, None, :, 0], dtype=torch.bool), others[..., 0] != 0), 1)
    futures = futures * known[:, :, None, :, None]
    truth = torch.cat((ego[:, None], others), 1)[..., :2]
    distance = (futures[..., :2] - truth[:, :, None]).norm(dim=-1).mean(-1)
    best = distance.argmin(-1)
    chosen = torch.take_along_dim(futures, best[:, :, None, None, None], 2)[:, :, 0]
    spread = chosen[..., 2:].clamp(-2.0, 2.0)
    nll = (spread + 0.5 * ((truth - chosen[..., :2]) / spread.exp()) ** 2).sum(-1).mean()
    score = F.cross_entropy(scores.flatten(0, 1), best.flatten(), label_smoothing=0.2, reduction="none")
    return nll + (score * (truth[:, :, 0, 0] != 0).flatten()).mean(), best
