"""How planners and heads are trained: one place for the command line, the Python call and config.json.

Imports nothing heavy. Options of nested settings have no prefix on the command line: `loop.steps` is --steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Annotated, Literal

from tyro.conf import arg

from radp.model.config import LoraSettings, ModelConfig


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
    dual_step: float = 0.0
    """Step of dual ascent: w <- w exp(step * (cost - budget)) after each batch; 0 keeps the weights fixed."""
    budgets: tuple[str, ...] = ()
    """Mean cost that dual ascent allows a rule, such as collision=0.05; rules without one keep their weight."""
    tiers: bool = False
    """A rule of a lower tier of the rulebook never pulls against one of a higher tier."""


@dataclass(frozen=True, kw_only=True)
class AlignConfig:
    """How adapters learn the diffusion loss and the driving rules together.

    Defaults are the paper's; the switches that are ours are off.
    """

    loop: LoopConfig = field(default_factory=paper_loop)
    lora: LoraSettings = field(default_factory=LoraSettings)
    weighting: WeightingConfig = field(default_factory=WeightingConfig)
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
    """Which samples are looked at for contact."""

    samples: int = 20_000
    """How many to look at, drawn without repetition."""
    within: float = 5.0
    """Seconds of the plan in which contact counts."""
    seed: int = 0
    """Decides samples and noise."""
