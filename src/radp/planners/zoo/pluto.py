"""PLUTO (Cheng et al., 2024), the network: planTF's tokens, and queries of reference line and mode that become plans.

Parameter names are the published ones. The losses are in `pluto_loss`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from radp.planners.zoo.batch import Batch
from radp.planners.zoo.tokens import (
    CHANNELS,
    FUTURE,
    PAST,
    PointNet,
    PolygonTables,
    RoadUserEncoder,
    agents_seen,
    encoder_blocks,
    init_weights,
    line_features,
    polygons_seen,
)

UNLIKELY = -1e6  # logit of a reference line that is not there
FREQUENCIES = 64


@dataclass(frozen=True)
class PlutoConfig:
    """`published_batch_mask` repeats a slip of the published program: among B > 1 samples, the reference lines of one
    are hidden as those of another. Without it a plan does not depend on the rest of the batch."""

    dim: int = 128
    heads: int = 4
    depth: int = 4
    decoder_depth: int = 4
    modes: int = 12
    drop_path: float = 0.2
    dropout: float = 0.1
    state_dropout: float = 0.75
    history: int = CHANNELS  # of the first level of the history encoder
    published_batch_mask: bool = False


class FourierEmbedding(nn.Module):
    """(..., n) -> (..., d): each number as cos and sin of 64 learned frequencies and itself; the sum of n MLPs."""

    def __init__(self, inputs: int, dim: int) -> None:
        super().__init__()
        self.freqs = nn.Embedding(inputs, FREQUENCIES)
        self.mlps = nn.ModuleList(
            nn.Sequential(nn.Linear(2 * FREQUENCIES + 1, dim), nn.LayerNorm(dim), nn.ReLU(), nn.Linear(dim, dim))
            for _ in range(inputs)
        )
        self.to_out = nn.Sequential(nn.LayerNorm(dim), nn.ReLU(), nn.Linear(dim, dim))

    def forward(self, x: Tensor) -> Tensor:
        angle = x[..., None] * self.freqs.weight * 2 * math.pi
        waves = torch.cat((angle.cos(), angle.sin(), x[..., None]), -1)
        return self.to_out(torch.stack([mlp(waves[..., i, :]) for i, mlp in enumerate(self.mlps)]).sum(0))


class MlpLayer(nn.Module):
    def __init__(self, dim: int, hidden: int, out: int) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(dim, hidden), nn.LayerNorm(hidden), nn.ReLU(), nn.Linear(hidden, out))

    def forward(self, x: Tensor) -> Tensor:
        return self.mlp(x)


class BorderedPolygonEncoder(PolygonTables):
    """Polygons -> (B, M, d); in contrast to planTF's, points also know where the borders are."""

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self.polygon_encoder = PointNet(10, dim)
        self.speed_limit_emb = FourierEmbedding(1, dim)

    def forward(self, batch: Batch) -> Tensor:
        valid = batch["map/valid_mask"]
        position, vector, angle = (batch[f"map/point_{name}"] for name in ("position", "vector", "orientation"))
        centre = line_features(position[:, :, 0], vector[:, :, 0], angle[:, :, 0], batch["map/polygon_center"][..., :2])
        points = torch.cat((centre, position[:, :, 1] - position[:, :, 0], position[:, :, 2] - position[:, :, 0]), -1)
        shape = self.polygon_encoder(points.flatten(0, 1), valid.flatten(0, 1)).unflatten(0, valid.shape[:2])
        known = batch["map/polygon_has_speed_limit"]
        speed = self.unknown_speed_emb.weight[0].expand(*known.shape, -1).clone()
        speed[known] = self.speed_limit_emb(batch["map/polygon_speed_limit"][known][:, None])
        return shape + self.kinds(batch) + speed


class ObstacleEncoder(nn.Module):
    """Static objects -> (B, N, d) by size and kind; zeros where there is none."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.obj_encoder, self.type_emb = FourierEmbedding(2, dim), nn.Embedding(4, dim)

    def forward(self, batch: Batch) -> Tensor:
        tokens = self.obj_encoder(batch["static_objects/shape"])
        tokens = tokens + self.type_emb(batch["static_objects/category"].long())
        return tokens * batch["static_objects/valid_mask"][..., None]


class AgentPredictor(nn.Module):
    """(B, n, d) -> (B, n, 80, 6): displacement, cos and sin of the turn, velocity."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.loc_predictor = MlpLayer(dim, 2 * dim, 2 * FUTURE)
        self.yaw_predictor = MlpLayer(dim, 2 * dim, 2 * FUTURE)
        self.vel_predictor = MlpLayer(dim, 2 * dim, 2 * FUTURE)

    def forward(self, x: Tensor) -> Tensor:
        heads = (self.loc_predictor, self.yaw_predictor, self.vel_predictor)
        return torch.cat([head(x).unflatten(-1, (FUTURE, 2)) for head in heads], -1)


class DecoderBlock(nn.Module):
    """(B, R, M, d) queries: attention over lines, over modes, to the scene, then an MLP."""

    def __init__(self, config: PlutoConfig) -> None:
        super().__init__()
        dim, rate = config.dim, config.dropout
        self.batch_slip = config.published_batch_mask
        self.r2r_attn, self.m2m_attn, self.cross_attn = (
            nn.MultiheadAttention(dim, config.heads, dropout=rate, batch_first=True) for _ in range(3)
        )
        self.ffn = nn.Sequential(nn.Linear(dim, 4 * dim), nn.ReLU(), nn.Dropout(rate), nn.Linear(4 * dim, dim))
        self.norm1, self.norm2, self.norm3, self.norm4 = (nn.LayerNorm(dim) for _ in range(4))
        self.dropout1, self.dropout2, self.dropout3 = (nn.Dropout(rate) for _ in range(3))

    def forward(self, tgt: Tensor, lines: Tensor, modes: Tensor, memory: Tensor, hidden: Tensor) -> Tensor:
        """lines (B, R) True = valid; modes (1, M, d) positions; memory (B, S, d), hidden (B, S) True = no key."""
        batch, count, many = tgt.shape[:3]
        rows = tgt.transpose(1, 2).flatten(0, 1)  # (B M, R, d)
        unseen = ~lines & lines.any(1, keepdim=True)  # attention over nothing is not a number
        mask = unseen.repeat(many, 1) if self.batch_slip else unseen.repeat_interleave(many, 0)
        h = self.norm1(rows)
        rows = rows + self.dropout1(self.r2r_attn(h, h, h, key_padding_mask=mask, need_weights=False)[0])
        tgt = rows.unflatten(0, (batch, many)).transpose(1, 2)
        valid = tgt[lines]  # (n, M, d)
        h = self.norm2(valid)
        q = h + modes
        mixed = torch.zeros_like(tgt)
        mixed[lines] = valid + self.dropout2(self.m2m_attn(q, q, h, need_weights=False)[0])
        flat = mixed.flatten(1, 2)
        seen = self.cross_attn(self.norm3(flat), memory, memory, key_padding_mask=hidden, need_weights=False)[0]
        flat = flat + self.dropout2(seen)
        flat = flat + self.dropout3(self.ffn(self.norm4(flat)))
        return flat.unflatten(1, (count, many))


class PlanningDecoder(nn.Module):
    """Reference lines and scene tokens -> trajectory (B, R, M, 80, 6), logits (B, R, M)."""

    def __init__(self, config: PlutoConfig) -> None:
        super().__init__()
        dim = config.dim
        self.r_encoder, self.r_pos_emb = PointNet(6, dim), FourierEmbedding(3, dim)
        self.m_emb = nn.Parameter(torch.randn(1, 1, config.modes, dim) * 0.01)
        self.m_pos = nn.Parameter(torch.randn(1, config.modes, dim) * 0.01)
        self.q_proj, self.cat_x_proj = nn.Linear(2 * dim, dim), nn.Linear(2 * dim, dim)
        self.decoder_blocks = nn.ModuleList(DecoderBlock(config) for _ in range(config.decoder_depth))
        self.loc_head, self.yaw_head, self.vel_head = (MlpLayer(dim, 2 * dim, 2 * FUTURE) for _ in range(3))
        self.pi_head = MlpLayer(dim, dim, 1)

    def forward(self, batch: Batch, memory: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        query = self.queries(batch)
        lines = batch["reference_line/valid_mask"].any(-1)
        for block in self.decoder_blocks:
            query = block(query, lines, self.m_pos, memory, hidden)
        query = self.cat_x_proj(torch.cat((query, memory[:, None, None, 0].expand_as(query)), -1))
        heads = (self.loc_head, self.yaw_head, self.vel_head)
        trajectory = torch.cat([head(query).unflatten(-1, (FUTURE, 2)) for head in heads], -1)
        return trajectory, self.pi_head(query).squeeze(-1)

    def queries(self, batch: Batch) -> Tensor:
        """(B, R, M, d): each reference line with each mode."""
        position, vector, orientation = (
            batch[f"reference_line/{name}"] for name in ("position", "vector", "orientation")
        )
        valid, first = batch["reference_line/valid_mask"], position[:, :, 0]
        points = line_features(position, vector, orientation, first)
        shape = self.r_encoder(points.flatten(0, 1), valid.flatten(0, 1)).unflatten(0, valid.shape[:2])
        lines = shape + self.r_pos_emb(torch.cat((first, orientation[..., :1]), -1))
        pair = torch.broadcast_tensors(lines[:, :, None], self.m_emb)
        return self.q_proj(torch.cat(pair, -1))


class Pluto(nn.Module):
    """A batch of features -> trajectory (B, R, 12, 80, 6: x, y, cos, sin, vx, vy), probability (B, R, 12) logits,
    prediction (B, A-1, 80, 6), ref_free_trajectory (B, 80, 4), hidden (B, d). R = 0 leaves out the first two."""

    def __init__(self, config: PlutoConfig | None = None) -> None:
        super().__init__()
        self.config = config = config or PlutoConfig()
        dim = config.dim
        self.pos_emb = FourierEmbedding(3, dim)
        self.agent_encoder = RoadUserEncoder(dim, config.drop_path, config.state_dropout, config.history)
        self.map_encoder, self.static_objects_encoder = BorderedPolygonEncoder(dim), ObstacleEncoder(dim)
        self.encoder_blocks = encoder_blocks(dim, config.heads, config.depth, config.drop_path)
        self.norm = nn.LayerNorm(dim)
        self.agent_predictor = AgentPredictor(dim)
        self.planning_decoder = PlanningDecoder(config)
        self.hidden_proj = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, dim))
        self.ref_free_decoder = MlpLayer(dim, 2 * dim, 4 * FUTURE)
        self.apply(init_weights)

    def forward(self, batch: Batch, uniform: Tensor | None = None) -> Batch:
        agents = batch["agent/valid_mask"].shape[1]
        tokens = (
            self.agent_encoder(batch, uniform), self.map_encoder(batch), self.static_objects_encoder(batch)
        )  # fmt: skip
        x = torch.cat(tokens, 1) + self.positions(batch)
        hidden = ~torch.cat((agents_seen(batch), polygons_seen(batch), batch["static_objects/valid_mask"]), 1)
        for block in self.encoder_blocks:
            x = block(x, hidden)
        x = self.norm(x)
        output = {
            "prediction": self.agent_predictor(x[:, 1:agents]),
            "hidden": self.hidden_proj(x[:, 0]),
            "ref_free_trajectory": self.ref_free_decoder(x[:, 0]).unflatten(-1, (FUTURE, 4)),
        }
        if batch["reference_line/position"].shape[1]:
            output["trajectory"], output["probability"] = self.planning_decoder(batch, x, hidden)
        return output

    def positions(self, batch: Batch) -> Tensor:
        """(B, A + M + N, d): where each token is and which way it looks."""
        now = PAST - 1
        centre = batch["map/polygon_center"]
        place = (batch["agent/position"][:, :, now], centre[..., :2], batch["static_objects/position"])
        angle = torch.cat((batch["agent/heading"][:, :, now], centre[..., 2], batch["static_objects/heading"]), 1)
        wrapped = torch.remainder(angle + math.pi, 2 * math.pi) - math.pi
        return self.pos_emb(torch.cat((torch.cat(place, 1), wrapped[..., None]), -1))


def plans(output: Batch, batch: Batch) -> Batch:
    """What the planner reads: output_trajectory (B, 80, 3) of the likeliest candidate, or the one without a reference
    line where there is none; output_ref_free_trajectory; output_prediction (B, A-1, 80, 5) x, y, heading, velocity;
    probability with invalid lines at -1e6 and candidate_trajectories (B, R, 12, 80, 3)."""
    free, others = _pose(output["ref_free_trajectory"]), output["prediction"]
    now = PAST - 1
    start = batch["agent/position"][:, 1:, now, None], batch["agent/heading"][:, 1:, now, None]
    turn = torch.atan2(others[..., 3], others[..., 2]) + start[1]
    result = {
        "output_trajectory": free,
        "output_ref_free_trajectory": free,
        "output_prediction": torch.cat((others[..., :2] + start[0], turn[..., None], others[..., 4:]), -1),
    }
    if "trajectory" not in output:
        empty = free.new_zeros(len(free), 0, 0)
        return result | {"probability": empty, "candidate_trajectories": free.new_zeros(len(free), 0, 0, FUTURE, 3)}
    lines = batch["reference_line/valid_mask"].any(-1)
    probability = output["probability"].masked_fill(~lines[..., None], UNLIKELY)
    candidates = _pose(output["trajectory"])
    best = probability.flatten(1).argmax(1)
    chosen = candidates.flatten(1, 2)[torch.arange(len(best)), best]
    result["output_trajectory"] = torch.where(lines.any(1)[:, None, None], chosen, free)
    return result | {"probability": probability, "candidate_trajectories": candidates}


def _pose(trajectory: Tensor) -> Tensor:
    """(..., >= 4) x, y, cos, sin -> (..., 3) x, y, heading."""
    return torch.cat((trajectory[..., :2], torch.atan2(trajectory[..., 3], trajectory[..., 2])[..., None]), -1)
