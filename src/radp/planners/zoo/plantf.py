"""planTF (Cheng et al., ICRA 2024): tokens of agents and map polygons, a transformer, six plans with scores.

Parameter names are the published ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

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


@dataclass(frozen=True)
class PlanTFConfig:
    dim: int = 128
    heads: int = 8
    depth: int = 4
    modes: int = 6
    drop_path: float = 0.2
    state_dropout: float = 0.75
    history: int = CHANNELS  # of the first level of the history encoder
    categories: bool = False  # whether the closed loop says who is a car: training does, the published planner does not


class PolygonEncoder(PolygonTables):
    """Polygons -> (B, M, d): their centre lines, kind, route, light and speed limit."""

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self.polygon_encoder = PointNet(6, dim)
        self.speed_limit_emb = nn.Sequential(nn.Linear(1, dim), nn.ReLU(), nn.Linear(dim, dim))

    def forward(self, batch: Batch) -> Tensor:
        position, vector, angle = (batch[f"map/point_{name}"] for name in ("position", "vector", "orientation"))
        points = line_features(position[:, :, 0], vector[:, :, 0], angle[:, :, 0], batch["map/polygon_center"][..., :2])
        valid = batch["map/valid_mask"]
        shape = self.polygon_encoder(points.flatten(0, 1), valid.flatten(0, 1)).unflatten(0, valid.shape[:2])
        return shape + self.kinds(batch) + self.speed(batch)

    def speed(self, batch: Batch) -> Tensor:
        limit = self.speed_limit_emb(batch["map/polygon_speed_limit"][..., None])
        return torch.where(batch["map/polygon_has_speed_limit"][..., None], limit, self.unknown_speed_emb.weight[0])


class TrajectoryDecoder(nn.Module):
    """(B, d) -> plans (B, modes, 80, 4: x, y, cos, sin) and their logits (B, modes)."""

    def __init__(self, dim: int, modes: int) -> None:
        super().__init__()
        self.modes = modes
        self.multimodal_proj = nn.Linear(dim, modes * dim)
        self.loc = scored_mlp(dim, 4 * FUTURE)
        self.pi = scored_mlp(dim, 1)

    def forward(self, ego: Tensor) -> tuple[Tensor, Tensor]:
        modes = self.multimodal_proj(ego).unflatten(-1, (self.modes, -1))
        return self.loc(modes).unflatten(-1, (FUTURE, 4)), self.pi(modes).squeeze(-1)


def scored_mlp(dim: int, out: int, bias: bool = True) -> nn.Sequential:
    return nn.Sequential(nn.Linear(dim, 2 * dim, bias=bias), nn.LayerNorm(2 * dim), nn.ReLU(), nn.Linear(2 * dim, out))


class PlanTF(nn.Module):
    """A batch of `vector_features` -> trajectory (B, 6, 80, 4), probability (B, 6) logits, prediction (B, A-1, 80, 2).

    Everything in the rear-axle frame of now; predictions are displacements of the agents from where they are.
    """

    def __init__(self, config: PlanTFConfig | None = None) -> None:
        super().__init__()
        self.config = config = config or PlanTFConfig()
        dim = config.dim
        self.pos_emb = nn.Sequential(nn.Linear(4, dim), nn.ReLU(), nn.Linear(dim, dim))
        self.agent_encoder = RoadUserEncoder(dim, config.drop_path, config.state_dropout, config.history)
        self.map_encoder = PolygonEncoder(dim)
        self.encoder_blocks = encoder_blocks(dim, config.heads, config.depth, config.drop_path)
        self.norm = nn.LayerNorm(dim)
        self.trajectory_decoder = TrajectoryDecoder(dim, config.modes)
        self.agent_predictor = scored_mlp(dim, 2 * FUTURE, bias=False)
        self.apply(init_weights)

    def forward(self, batch: Batch, uniform: Tensor | None = None) -> Batch:
        agents = batch["agent/valid_mask"].shape[1]
        x = torch.cat((self.agent_encoder(batch, uniform), self.map_encoder(batch)), 1) + self.positions(batch)
        hidden = torch.cat((~agents_seen(batch), ~polygons_seen(batch)), 1)
        for block in self.encoder_blocks:
            x = block(x, hidden)
        x = self.norm(x)
        trajectory, probability = self.trajectory_decoder(x[:, 0])
        prediction = self.agent_predictor(x[:, 1:agents]).unflatten(-1, (FUTURE, 2))
        return {"trajectory": trajectory, "probability": probability, "prediction": prediction}

    def positions(self, batch: Batch) -> Tensor:
        """(B, A + M, d): where each token is and which way it looks."""
        now = PAST - 1
        place = torch.cat((batch["agent/position"][:, :, now], batch["map/polygon_center"][..., :2]), 1)
        angle = torch.cat((batch["agent/heading"][:, :, now], batch["map/polygon_center"][..., 2]), 1)
        return self.pos_emb(torch.cat((place, angle.cos()[..., None], angle.sin()[..., None]), -1))


def best_plan(output: Batch) -> Tensor:
    """(B, 80, 3) x, y, heading of the plan with the largest logit."""
    best = output["probability"].argmax(-1)
    plan = output["trajectory"][torch.arange(len(best)), best]
    return torch.cat((plan[..., :2], torch.atan2(plan[..., 3], plan[..., 2])[..., None]), -1)


def plantf_loss(output: Batch, batch: Batch) -> Batch:
    """reg_loss (plan nearest to the driven one), cls_loss (that this one is chosen), prediction_loss, and their sum."""
    target = batch["agent/target"]
    heading = target[:, 0, :, 2:]
    driven = torch.cat((target[:, 0, :, :2], heading.cos(), heading.sin()), -1)
    distance = (output["trajectory"][..., :2] - driven[:, None, :, :2]).norm(dim=-1).sum(-1)
    best = distance.argmin(-1)
    plan = output["trajectory"][torch.arange(len(best)), best]
    parts = {
        "reg_loss": F.smooth_l1_loss(plan, driven),
        "cls_loss": F.cross_entropy(output["probability"], best),
        "prediction_loss": prediction_loss(output, batch),
    }
    return {"loss": parts["reg_loss"] + parts["cls_loss"] + parts["prediction_loss"], **parts}


def prediction_loss(output: Batch, batch: Batch) -> Tensor:
    """Mean over what was seen of the others; 0 where nobody was."""
    seen = batch["agent/valid_mask"][:, 1:, PAST : PAST + FUTURE]
    if not bool(seen.any()):
        return output["prediction"].sum() * 0.0
    return F.smooth_l1_loss(output["prediction"][seen], batch["agent/target"][:, 1:, :, :2][seen])
