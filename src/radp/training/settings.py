"""How planners and heads are trained: one place for the command line, the Python call and config.json.

Imports nothing heavy. Options of nested settings have no prefix on the command line: `loop.steps` is --steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Annotated, Literal

from tyro.conf import arg

from radp.model.config import LoraSettings, ModelConfig

WayBack = Literal["published", "own"]


@dataclass(frozen=True)
class LoopConfig:
    """Steps, learning rate, averaging, checkpoints."""

    steps: int = 50_000
    """Optimiser steps in all."""
    batch: int = 32
    """Samples of a step, over all processes."""
    lr: float = 1e-3
    """Learning rate after warm-up."""
    weight_decay: float = 0.01
    """Of AdamW."""
    warmup: int = 100
    """Steps of linear warm-up."""
    schedule: Literal["cosine", "constant"] = "cosine"
    """What the learning rate does after warm-up; cosine reaches zero at the last step."""
    decay: int = 0
    """Last steps of a constant schedule, in which the rate falls to zero in a straight line."""
    clip: float = 5.0
    """Largest norm of a step's gradient."""
    ema: float = 0.999
    """Share of the old value in the moving average of the weights."""
    ema_warmup: bool = True
    """Whether the average spans fewer steps in the beginning."""
    seed: int = 3407
    """Decides everything random."""
    log_every: int = 50
    """Steps between records of the loss."""
    save_every: int = 500
    """Steps between checkpoints."""
    validate_every: int = 2_000
    """Steps between validations."""

    def rate(self, step: int) -> float:
        """Factor on the learning rate in step `step` (0-based)."""
        if step < self.warmup:
            return (step + 1) / self.warmup
        if self.schedule == "constant":
            return min(1.0, (self.steps - step) / self.decay) if self.decay else 1.0
        done = (step - self.warmup) / max(1, self.steps - self.warmup)
        return 0.5 * (1.0 + math.cos(math.pi * min(1.0, done)))


@dataclass(frozen=True, kw_only=True)
class BaseRecipe:
    """How a base planner learns from samples."""

    loop: LoopConfig = field(default_factory=LoopConfig)
    augment: float = 0.5
    """Share of the samples that start beside the logged pose."""
    way_back: WayBack = "published"
    """How these return to the log: as published, or along the ego's own heading at first, without a jerk in bends."""
    ego_weight: float = 1.0
    """Weight of the ego's loss beside that of its neighbours."""
    validation_samples: int = 512
    """Samples of the validation loss, at most."""
    validation_batch: int = 64
    """How many of these at a time."""


@dataclass(frozen=True, kw_only=True)
class BaseConfig(BaseRecipe):
    """What is trained, and how."""

    model: ModelConfig


def paper_loop() -> LoopConfig:
    """The paper's settings of alignment; it does not say how long, so `steps` is ours."""
    return LoopConfig(
        steps=2_000, batch=128, lr=2e-5, warmup=0, schedule="constant", seed=3407, save_every=100, validate_every=500
    )


@dataclass(frozen=True, kw_only=True)
class WeightingConfig:
    """How the rules are weighed against each other: ours, all off by default."""

    conditioned: bool = False
    """Weights of rules become an input: each sample draws its own around the default, and its rule loss uses them. The
    whole model is written to OUT/model."""
    spread: float = 4.0
    """Weights are drawn between 1 / spread and spread times the default, evenly in their logarithm."""
    around_default: bool = False
    """Draw weights from 1 upwards and count each rule weight - 1 times, with --conditioned and --hold base: at the
    default nothing pulls, and the planner stays what it was. Below 1 it goes the opposite way, without having learnt
    it: to be rewarded for breaking rules would have no end."""
    dual_step: float = 0.0
    """Step of dual ascent: w <- w exp(step * (cost - budget)) after each batch; 0 keeps the weights fixed."""
    budgets: tuple[str, ...] = ()
    """Mean cost that dual ascent allows a rule, such as collision=0.05; rules without one keep their weight."""
    tiers: bool = False
    """A rule of a lower tier of the rulebook never pulls against one of a higher tier."""


@dataclass(frozen=True, kw_only=True)
class AvoidConfig:
    """What makes alignment specific: ours, all off by default. docs/training.md has the recipe."""

    hold: Literal["logs", "base"] = "logs"
    """What holds the planner where no rule speaks: the diffusion loss on logged futures, as in the paper, or the base
    planner's own answer at the same noise. With base and no rules nothing is learnt.
    """
    way: Literal["x0", "chain", "ranked", "pushed"] = "x0"
    """Where rules act: on the clean plan at random noise, as in the paper; on the end of the own denoising chain, with
    gradients through its last calls; in choosing the best of several own plans, which is then learnt; or, with
    --conditioned, in pushing an own plan as far as its weights ask, which is then learnt. All but the first need
    --hold base.
    """
    trained: Literal["adapters", "decoder", "model", "weights"] = "adapters"
    """What learns: LoRA adapters, as in the paper, the whole decoder, the whole model, or, with --conditioned, nothing
    but the input for weights of rules: at the default weights the planner then stays exactly what it was.
    """
    rule_set: str = "paper"
    """Rules of the loss: paper, avoid (made for own states), v2, v2-2s, v2-discount, road (eight more)."""
    without: tuple[str, ...] = ()
    """Rules left out of the loss, by name."""
    gate: bool = False
    """Count collision only where the plan comes within 0.3 m of somebody within 4 s, lane only where a corner is
    0.3 m off the road within 4 s, and the others where one of these is so. Followers in the ego's lane never count.
    """
    urgent: bool = False
    """Contact counts only within the time that it takes to stop, 1.5 s and braking at 3 m/s2, instead of 4 s."""
    contexts: Literal["executed", "constant", "both"] = "executed"
    """How the others move in the eyes of the rules: as in the samples, straight on, or the mean of both judgements."""
    root: bool = False
    """Take sqrt(1 + J / scale) - 1 of each rule, with scales from 0.01 to 10: its pull does not fade."""
    along: bool = False
    """Let the rules move a plan along its own way alone: brake or drive on, never swerve."""
    steer: tuple[str, ...] = ()
    """Rules that may steer nevertheless, such as lane, kinematics and comfort, which speak of the plan's shape."""
    free: float = 0.1
    """Weight of the base's answer, beside 1 elsewhere, where that answer itself is one that the gate would open for."""
    keep_up: float = 0.0
    """Further weight of the base's answer where nothing is to be mended and the plan is shorter than the base's within
    4 s: caution that nobody asked for."""
    calls: int = 1
    """Last calls of the chain that carry gradients."""
    plans: int = 8
    """Own plans of a focus state that are ranked."""
    copies: bool = False
    """With --way ranked: choose among braked, delayed and hastened copies of one own plan instead, the one that mends
    with the least change. States of a list made with --driven learn the copy that goes as their drive did."""
    haste: float = 0.0
    """With --copies: m/s2 by which the other plans are hastened, by at most 2 m/s or a quarter of their speed, where
    the way is free: nobody within 1.5 s of the faster plan at any place of it, no red light, the limit kept, slow in
    bends; else by half or a quarter of that. 0: none are."""
    encounters: int = 0
    """Behind the folders of samples, the same folders once more with so many variants of each sample in which somebody
    is moved along its own way so that the ego would meet it; lists of --focus in that order. With --contexts constant.
    """
    slowed: float = 0.0
    """Share of each batch, of states without a place in --focus, in which the ego stands or is slower than it was, with
    --hold base: who has yielded comes to such states, and there the base says when to go."""
    times: Literal["random", "own"] = "random"
    """Noise that own plans get, with --way x0, ranked or pushed: at random times, as in the diffusion loss, or as the
    planner meets it: at the times of its own calls, with its temperature; a plan to be learnt then starts anywhere
    between the own plan and itself.
    """
    draws: int = 2
    """Noise draws of a state in a step, with --hold base; the chain takes one."""
    kept_states: int = 10_000
    """States whose encoding stays in memory, with --hold base."""


@dataclass(frozen=True, kw_only=True)
class AlignConfig:
    """How adapters learn the diffusion loss and the driving rules together.

    Defaults are the paper's; the switches that are ours are off.
    """

    loop: LoopConfig = field(default_factory=paper_loop)
    lora: LoraSettings = field(default_factory=LoraSettings)
    weighting: WeightingConfig = field(default_factory=WeightingConfig)
    avoid: AvoidConfig = field(default_factory=AvoidConfig)
    start: str = ""
    """Adapters of the same base to go on from, a packaged name or a folder; their rank and alpha count. With --hold
    base the base's own answers still hold them, so what they learnt in vain is unlearnt."""
    strength: float = 0.004
    """Weight of the rules beside the diffusion loss (lambda in the paper)."""
    ego_weight: float = 2.0
    """Weight of the ego's diffusion loss beside that of its neighbours."""
    rules: bool = True
    """Whether the rules are in the loss; without them the adapters learn the diffusion loss alone."""
    normalise: Annotated[bool, arg(name="normalisation")] = True
    """Whether costs are divided by their running scales."""
    min_time: float = 0.0
    """Rules act on draws with a diffusion time from this; 0 is all, as in the paper."""
    max_time: float = 1.0
    """Rules act on draws with a diffusion time up to this; 1 is all, as in the paper."""
    focus_share: float = 0.0
    """Share of each batch that comes from the samples of --focus."""
    compress: bool = False
    """Take log(1 + J / scale) of each rule, with scales from 0.01 to 10: near misses then do not drown a slow bump."""
    augment: float = 0.5
    """Share of the samples that start beside the logged pose."""


@dataclass(frozen=True, kw_only=True)
class HeadTraining:
    """The paper's settings; one epoch is as many draws as there are samples."""

    epochs: int = 50
    """Passes over the cache."""
    batch: int = 512
    """Samples of a step."""
    lr: float = 1e-4
    """Learning rate."""
    weight_decay: float = 1e-4
    """Of AdamW."""
    heads: int = 6
    """Attention heads."""
    rank_weight: float = 0.2
    """Weight of the ranking loss beside the regression."""
    log_weight: float = 0.0
    """Weight of a regression of logarithms, which teaches the order of pressures that are close to nothing; ours."""
    geometry: Literal["none", "cheap", "full"] = "none"
    """Geometry of the plan in its scene that the head sees too: none (as in the paper), cheap (what the planner holds
    anyway) or full (needs what the teacher needs). The cache must keep it."""
    seed: int = 3407
    """Decides everything random."""

    def loop(self, samples: int) -> LoopConfig:
        steps = max(1, samples // self.batch)
        return LoopConfig(
            steps=self.epochs * steps, batch=self.batch, lr=self.lr, weight_decay=self.weight_decay, warmup=0,
            schedule="constant", ema=0.999, seed=self.seed, save_every=5 * steps, validate_every=5 * steps,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class FocusSearch:
    """Which samples are looked at, and what makes one worth a second look."""

    samples: int = 20_000
    """How many to look at, drawn without repetition."""
    within: float = 5.0
    """Seconds of the plan in which contact counts."""
    margin: float = 0.0
    """Metres: a plan that comes nearer to somebody counts as contact."""
    corners: bool = False
    """Whether a plan that takes a corner of the body off the road counts as well."""
    near_misses: bool = False
    """Whether a plan with a time to collision below nuPlan's bound counts as well."""
    urgent: bool = False
    """Of contact and near misses, only those within the time that it takes to stop, 1.5 s and braking at 3 m/s2."""
    own: bool = False
    """The samples are states of the planner's own drives: what was executed may have collided, too, and those who
    follow in the ego's lane or are touched already do not count.
    """
    contexts: Literal["executed", "constant"] = "executed"
    """How the others move: as in the samples, or straight on."""
    mendable: bool = False
    """Of these states, only those in which a braked, delayed or hastened copy of the plan is better."""
    driven: float = 0.0
    """Instead of all this, states whose drive went on by so many metres more or less than the plan within that time."""
    encounters: int = 0
    """Look at so many variants of each sample in which somebody is moved along its own way so that the ego would meet
    it, instead of the samples; with --contexts constant."""
    lag: float = 2.0
    """Metres within that time by which a slower planner must fall behind."""
    repeat: int = 1
    """How often a state is listed whose plan counts, where states of a slower planner are listed once."""
    seed: int = 0
    """Decides samples and noise."""
