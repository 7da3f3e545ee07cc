"""The size and the switches of a model. `nuplan` is the published planner; `mini` is the same code made small."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

from radp.runs.settings import checked


@dataclass(frozen=True)
class ModelConfig:
    """Published sizes by default. The switches below the line change the published method; all are off by default."""

    agents: int = 32
    static_objects: int = 5
    lanes: int = 70
    route_lanes: int = 25
    lane_points: int = 20
    history: int = 21  # steps of agent history, the last is now
    neighbours: int = 10  # predicted together with the ego: P = 1 + neighbours
    horizon: int = 80  # future steps of 0.1 s

    hidden: int = 192
    heads: int = 6
    encoder_depth: int = 3
    decoder_depth: int = 3
    mixer_tokens: int = 64
    mixer_channels: int = 128
    mixer_depth: int = 3
    preproj_hidden: int = 512
    encoder_dropout: float = 0.1  # mixers, fusion (with drop-path) and route encoder
    decoder_dropout: float = 0.1  # attention of the DiT blocks
    output: Literal["x_start", "score"] = "x_start"

    # ---- switches, off in `nuplan` ----
    # "velocity": diffuse steps (dx, dy) / 0.1 s / velocity_scale instead of waypoints; waypoints are their running sum
    target_space: Literal["waypoint", "velocity"] = "waypoint"
    velocity_scale: float = 10.0  # m/s
    waypoint_loss_weight: float = 0.0  # weight of the loss on the summed waypoints; needs target_space "velocity"
    near_horizon_s: float | None = None  # weigh the loss of a step at time t by 1 / (t + near_horizon_s), mean 1
    # "driving": route_lanes hold one line in driving order from the ego on, instead of lanes by distance
    route_order: Literal["lanes", "driving"] = "lanes"
    yellow_is_unknown: bool = True  # the published scenes never say yellow
    lane_length: float | None = None  # m: longer lanes are cut into pieces of their own, so that 20 points suffice
    route_tokens: bool = False  # each route lane is also a scene token, with a learned place in the order
    mask_padded_tokens: bool = False  # cross-attention does not see padded scene tokens
    ego_speed: bool = False  # the ego's own speed joins route and time in AdaLN
    # share of the training scenes whose ego speed is withheld: a planner that always sees it learns to copy it
    speed_dropout: float = 0.0
    # s: a plan's speed starts at the ego's own and fades to the network's with this time constant (`radp.model.seam`)
    seam_s: float | None = None
    # s: the tracker gets a reference with which the car has the plan's speed and heading after this time
    # (`radp.sim.reference`)
    reference_s: float | None = None
    # m/s: lanes whose limit the map does not know have this one, or the ego's own speed where it is faster
    assumed_limit: float | None = None
    sampler_steps: int = 10  # denoising steps of a plan, plus one last call: as published, or fewer
    residual_cross_attention: bool = False  # x + f(x) around cross-attention and mlp2
    polyline_encoder: Literal["mixer", "flat"] = "mixer"  # "flat": one MLP over the flattened polyline
    noise_draws: int = 1  # stratified noise draws for each encoded scene in a training step
    rule_weights: tuple[str, ...] = ()  # rules whose log-weights join route and time in AdaLN, in this order

    def __post_init__(self) -> None:
        object.__setattr__(self, "rule_weights", tuple(self.rule_weights))  # JSON gives a list
        faults = [f"{name} must be positive" for name in LARGEST if getattr(self, name) < 1]
        faults += [f"{name} is more than {most}" for name, most in LARGEST.items() if getattr(self, name) > most]
        if self.heads > 0 and self.hidden % self.heads:
            faults.append(f"hidden {self.hidden} is no multiple of heads {self.heads}")
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                faults.append(f"{name} is {getattr(self, name)!r}, expected one of {', '.join(allowed)}")
        if self.neighbours > self.agents:
            faults.append(f"neighbours {self.neighbours} are more than agents {self.agents}")
        if self.target_space == "velocity" and self.output == "score":
            faults.append('target_space "velocity" needs output "x_start"')
        if self.target_space == "waypoint" and self.waypoint_loss_weight:
            faults.append('waypoint_loss_weight needs target_space "velocity"')
        if not 0.0 <= self.speed_dropout < 1.0:
            faults.append(f"speed_dropout is {self.speed_dropout}, expected 0 to 1, 1 excluded")
        if self.speed_dropout and not self.ego_speed:
            faults.append("speed_dropout needs ego_speed")
        for name in ("seam_s", "reference_s"):
            if (seconds := getattr(self, name)) is not None and not seconds > 0.0:
                faults.append(f"{name} is {seconds}, expected more than 0 s")
        if self.assumed_limit is not None and not self.assumed_limit > 0.0:
            faults.append(f"assumed_limit is {self.assumed_limit}, expected more than 0 m/s")
        if len(set(self.rule_weights)) < len(self.rule_weights):
            faults.append("rule_weights names a rule twice")
        if faults:
            raise ValueError("bad model config: " + "; ".join(faults))

    @property
    def predicted(self) -> int:
        """P: the ego and its predicted neighbours."""
        return 1 + self.neighbours

    @property
    def state_dim(self) -> int:
        """Length of one flattened trajectory: current state and horizon, four values each."""
        return (self.horizon + 1) * 4

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> ModelConfig:
        unknown = sorted(set(values) - {field.name for field in fields(ModelConfig)})
        if unknown:
            raise ValueError(f"bad model config: unknown settings {', '.join(unknown)}")
        return checked(ModelConfig, values)

    @staticmethod
    def preset(name: str) -> ModelConfig:
        if name not in PRESETS:
            raise ValueError(f"no model preset {name!r}; there are {', '.join(PRESETS)}")
        return PRESETS[name]

    @staticmethod
    def from_args(args: Mapping[str, Any]) -> ModelConfig:
        """From the published `args.json`. Absent fields take the published value; others are not looked at."""
        given = {ours: args[theirs] for ours, theirs in ARGS_NAMES.items() if theirs in args}
        unusual = [
            f"{name} is {args[name]}, only {expected} is supported"
            for name, expected in {"static_objects_state_dim": 10}.items()
            if args.get(name, expected) != expected
        ]
        if args.get("route_len", args.get("lane_len", 20)) != args.get("lane_len", 20):
            unusual.append(f"route_len {args['route_len']} differs from lane_len {args.get('lane_len', 20)}")
        if unusual:
            raise ValueError("args.json: " + "; ".join(unusual))
        return checked(ModelConfig, given)

    def to_args(self) -> dict[str, Any]:
        """The fields of the published `args.json` that describe a model; fails for what that layout cannot say."""
        plain = ModelConfig(**{name: getattr(self, name) for name in ARGS_NAMES})
        if plain != self:
            theirs = plain.to_json()
            extra = sorted(name for name, value in self.to_json().items() if value != theirs[name])
            raise ValueError(f"the published layout has no place for {', '.join(extra)}")
        args = {theirs: getattr(self, ours) for ours, theirs in ARGS_NAMES.items()}
        return args | {"route_len": self.lane_points, "static_objects_state_dim": 10, "device": "cpu"}


@dataclass(frozen=True)
class LoraSettings:
    """Adapters as in the paper: W x + alpha / rank * B A x."""

    rank: int = 8
    """Rank of the adapters."""
    alpha: int = 16
    """The adapters' answer counts alpha / rank times."""
    dropout: float = 0.05
    """Of what enters the adapters."""
    layers: Literal["feed-forward", "all"] = "feed-forward"
    """Which linear layers get one: those of the feed-forward parts of the DiT blocks, as in the paper, or all, the
    encoder's too."""


# several times the published sizes: a network that cannot be held is refused before it is built
LARGEST = {
    "agents": 512, "static_objects": 512, "lanes": 1024, "route_lanes": 512, "lane_points": 256, "history": 256,
    "horizon": 1024, "hidden": 1024, "heads": 64, "encoder_depth": 24, "decoder_depth": 24, "mixer_tokens": 1024,
    "mixer_channels": 1024, "mixer_depth": 24, "preproj_hidden": 4096, "noise_draws": 64, "sampler_steps": 1000,
}  # fmt: skip
CHOICES = {
    "output": ("x_start", "score"),
    "target_space": ("waypoint", "velocity"),
    "polyline_encoder": ("mixer", "flat"),
    "route_order": ("lanes", "driving"),
}
ARGS_NAMES = {  # ours: published
    "agents": "agent_num",
    "static_objects": "static_objects_num",
    "lanes": "lane_num",
    "route_lanes": "route_num",
    "lane_points": "lane_len",
    "history": "time_len",
    "neighbours": "predicted_neighbor_num",
    "horizon": "future_len",
    "hidden": "hidden_dim",
    "heads": "num_heads",
    "encoder_depth": "encoder_depth",
    "decoder_depth": "decoder_depth",
    "encoder_dropout": "encoder_drop_path_rate",
    "decoder_dropout": "decoder_drop_path_rate",
    "output": "diffusion_model_type",
}

NUPLAN = ModelConfig()
MINI = replace(
    NUPLAN,
    agents=20,
    lanes=40,
    route_lanes=12,
    neighbours=6,
    hidden=120,
    heads=6,
    encoder_depth=2,
    mixer_tokens=16,
    mixer_channels=64,
    mixer_depth=2,
    preproj_hidden=256,
    encoder_dropout=0.0,
    decoder_dropout=0.0,
    target_space="velocity",
    waypoint_loss_weight=1.0,
    near_horizon_s=0.5,
    route_order="driving",
    yellow_is_unknown=False,
    lane_length=50.0,
    route_tokens=True,
    mask_padded_tokens=True,
    polyline_encoder="flat",
    noise_draws=4,
)
PRESETS = {"nuplan": NUPLAN, "mini": MINI}
