"""The attribution head: rule pressures predicted online from what the planner has computed anyway (Eq. 10, 11)."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn.functional import gelu, softplus

from radp.model.features import feature_count
from radp.model.geometry import geometry_count, plan_geometry
from radp.model.layers import Attention, hiding_bias
from radp.model.quick_features import quick_plan_features
from radp.model.sampler import PlanSample
from radp.model.weights import check_finite, read_weights
from radp.runs.errors import reading_file
from radp.runs.json_text import json_text
from radp.scene.scene import EgoColumn, Scene

HIDDEN = 256
MOST = {"tokens": 1024, "heads": 64, "hidden": 4096, "pieces": 1000}  # several times the largest in use
MOST_RULES = 256
FARTHEST = 5.0  # standard deviations of a geometric value that count at most


@dataclass(frozen=True)
class HeadConfig:
    """tokens: width d of the planner's tokens; rules: names of the M outputs in order; pieces: of its `Levels`."""

    tokens: int
    rules: tuple[str, ...]
    heads: int = 6
    hidden: int = HIDDEN
    pieces: int = 0  # none: pressures as they were trained
    rule_set: str = "paper"  # whose pressures it was taught
    geometry: str = ""  # of the plan in its scene, in the query as well: cheap, full or none
    silence: float = 0.0  # pressures below it are 0, as the teacher's are where a rule is content

    def __post_init__(self) -> None:
        """A head that cannot be held is refused before it is built."""
        sizes = {**{name: getattr(self, name) for name in MOST}, "rules": len(self.rules)}
        least = {"pieces": 0}
        for name, most in {**MOST, "rules": MOST_RULES}.items():
            if type(sizes[name]) is not int or not least.get(name, 1) <= sizes[name] <= most:
                raise ValueError(f"{name} is {sizes[name]}, expected {least.get(name, 1)} to {most}")
        if not isinstance(self.silence, float) or not 0.0 <= self.silence < 1.0:
            raise ValueError(f"silence is {self.silence}, expected a number from 0.0 to below 1")

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(values: dict[str, Any]) -> HeadConfig:
        return HeadConfig(**{**values, "rules": tuple(values["rules"])})


class HeadInputs(NamedTuple):
    """What the head sees of B plans, in the order of its arguments."""

    ego_token: Tensor  # (B, d)
    features: Tensor  # (B, Q)
    scene: Tensor  # (B, S, d)
    padded: Tensor  # (B, S) bool
    geometry: Tensor | None = None  # (B, G) of the kind that the head asks for


def head_inputs(drawn: PlanSample, scene: Scene, geometry: str = "") -> HeadInputs:
    """Of the first plan drawn for each of B scenes: all that the planner has computed anyway, q(X), and a kind of
    geometry."""
    ego, joint = scene.ego_current_state, drawn.trajectories[:, 0]
    speed = ego[:, EgoColumn.VX : EgoColumn.AX].norm(dim=-1)
    features = quick_plan_features(joint[:, 0], speed, ego[:, EgoColumn.AX])
    around = plan_geometry(geometry, joint[:, 0], scene, joint[:, 1:]) if geometry else None
    return HeadInputs(drawn.tokens[:, 0, 0], features, drawn.encoding.tokens, drawn.encoding.padded, around)


class Levels(nn.Module):
    """Pressures (B, M) -> (B, M): for each rule an increasing line of K straight pieces from 0 on."""

    def __init__(self, rules: int, pieces: int) -> None:
        super().__init__()
        self.start: Tensor  # (M, K) increasing, the first 0
        self.slope: Tensor  # (M, K) positive
        self.register_buffer("start", torch.zeros(rules, pieces))
        self.register_buffer("slope", torch.ones(rules, pieces))

    def forward(self, raw: Tensor) -> Tensor:
        width = torch.cat((self.start.diff(dim=-1), torch.full_like(self.start[:, :1], torch.inf)), -1)
        return (self.slope * (raw.unsqueeze(-1) - self.start).clamp(min=0.0).minimum(width)).sum(-1)


class AttributionHead(nn.Module):
    """z = [ego token; q(X); geometry] asks the scene tokens; M separate two-layer MLPs on [z; c] give M pressures.

    Geometry is standardised by what was usual in training, and left out in the paper's head.
    """

    geometry_mean: Tensor  # (G,)
    geometry_deviation: Tensor  # (G,)

    def __init__(self, config: HeadConfig) -> None:
        super().__init__()
        self.config = config
        features = feature_count()
        self.feature_norm = nn.LayerNorm(features)
        self.token_norm = nn.LayerNorm(config.tokens)
        self.scene_norm = nn.LayerNorm(config.tokens)
        seen = geometry_count(config.geometry)
        if seen:
            self.register_buffer("geometry_mean", torch.zeros(seen))
            self.register_buffer("geometry_deviation", torch.ones(seen))
        query = config.tokens + features + seen
        self.query = nn.Linear(query, config.tokens)
        self.attention = Attention(config.tokens, config.heads, 0.0)
        width = query + config.tokens
        # M separate MLPs side by side: neurons of one rule feed no other, and one product computes all
        rules = len(config.rules)
        self.branches = nn.Linear(width, rules * config.hidden)
        bound = config.hidden**-0.5
        self.out_weight = nn.Parameter(torch.empty(rules, config.hidden).uniform_(-bound, bound))
        self.out_bias = nn.Parameter(torch.empty(rules).uniform_(-bound, bound))
        self.levels = Levels(rules, config.pieces) if config.pieces else nn.Identity()

    def forward(
        self, ego_token: Tensor, features: Tensor, scene: Tensor, padded: Tensor, geometry: Tensor | None = None
    ) -> Tensor:
        """ego_token (B, d), features (B, Q), scene (B, S, d), padded (B, S) bool, geometry (B, G) if its configuration
        asks for it -> pressures (B, M), at least 0."""
        parts = [self.token_norm(ego_token), self.feature_norm(features)]
        if self.config.geometry:
            if geometry is None:
                raise ValueError(f"this head needs the {self.config.geometry} geometry of the plan")
            usual = (geometry - self.geometry_mean) / self.geometry_deviation
            parts.append(usual.clamp(-FARTHEST, FARTHEST))
        z = torch.cat(parts, -1)
        context = self.attend(self.query(z), self.scene_norm(scene), padded)
        hidden = gelu(self.branches(torch.cat((z, context), -1))).unflatten(-1, self.out_weight.shape)
        pressure = softplus((hidden * self.out_weight).sum(-1) + self.out_bias)
        if self.config.silence:
            pressure = torch.where(pressure < self.config.silence, 0.0, pressure)
        return self.levels(pressure)

    def standardise(self, geometry: Tensor) -> None:
        """Take mean and deviation of the geometry (N, G) of the training states; one that never changes stays 0."""
        self.geometry_mean.copy_(geometry.mean(0))
        self.geometry_deviation.copy_(geometry.std(0).clamp(min=1e-3))

    def with_levels(self, start: Tensor, slope: Tensor, silence: float = 0.0) -> AttributionHead:
        """This head with its pressures (M) passed through the lines of start and slope (M, K), see `Levels`; those
        below `silence` become 0 before."""
        head = AttributionHead(replace(self.config, pieces=start.shape[1], silence=silence))
        head.load_state_dict({**self.state_dict(), "levels.start": start, "levels.slope": slope})
        return head.eval()

    def attend(self, query: Tensor, scene: Tensor, padded: Tensor) -> Tensor:
        """query (B, d), scene (B, S, d), padded (B, S) -> (B, d): multi-head attention of the one query.

        Keys and values of all tokens are never made: the query goes through the key weights, and the mean of the
        tokens through the value weights, which is the same and much less work for a single query.
        """
        made, heads = self.attention, self.config.heads
        key, value = (layer.weight.unflatten(0, (heads, -1)) for layer in (made.k, made.v))  # (heads, e, d)
        q = made.q(query).unflatten(-1, (heads, -1))  # (B, heads, e)
        asked = torch.einsum("bhe,hed->bhd", q, key)
        constant = (q * made.k.bias.view(heads, -1)).sum(-1, keepdim=True)
        scores = (asked @ scene.transpose(1, 2) + constant) * q.shape[-1] ** -0.5
        weights = torch.softmax(scores + hiding_bias(padded).squeeze(1), -1)  # (B, heads, S)
        seen = torch.einsum("bhd,hed->bhe", weights @ scene, value).flatten(1) + made.v.bias
        return made.o(seen)


WEIGHTS, CONFIG = "head.safetensors", "head.json"


def save_head(head: AttributionHead, folder: Path | str, about: dict[str, Any] | None = None) -> None:
    """Write head.safetensors and head.json; `about` says how it was trained."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    save_file({name: value.detach().contiguous() for name, value in head.state_dict().items()}, folder / WEIGHTS)
    (folder / CONFIG).write_text(json_text({"head": head.config.to_json(), "about": about or {}}) + "\n")


def load_head(folder: Path | str) -> AttributionHead:
    """Inverse of `save_head`, in eval mode; BadInput names the folder and what is wrong."""
    folder = Path(folder)
    weights = read_weights(folder / WEIGHTS)
    check_finite(weights, folder / WEIGHTS)
    with reading_file(folder / CONFIG, "attribution head"):
        head = AttributionHead(HeadConfig.from_json(json.loads((folder / CONFIG).read_bytes())["head"]))
        head.load_state_dict(weights)
    return head.eval()
