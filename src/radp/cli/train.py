"""radp train: base, align, head."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from radp.runs.errors import BadInput

if TYPE_CHECKING:
    from radp.model.config import ModelConfig
    from radp.scenario import Scenario


def _spread(split: str | None, count: int) -> Sequence[Scenario]:
    """`count` scenarios of a split, spread evenly over it."""
    from radp.scenario.splits import open_split

    if split is None:
        return []
    scenarios = open_split(split)
    count = min(count, len(scenarios))
    return [scenarios[i * len(scenarios) // count] for i in range(count)]


def _switched(model: ModelConfig, switches: Sequence[str]) -> ModelConfig:
    """The model with some settings changed: NAME=VALUE each, values as in JSON; a bare word is text."""
    changed = model.to_json()
    for switch in switches:
        name, equals, text = switch.partition("=")
        if not equals:
            raise BadInput(f"{switch!r} is no NAME=VALUE")
        try:
            value = json.loads(text)
        except json.JSONDecodeError:
            value = text
        usual = changed.get(name, value)
        if any(isinstance(value, kind) != isinstance(usual, kind) for kind in (str, bool)):
            raise BadInput(f"{name} is {json.dumps(value)}, expected something like {json.dumps(usual)}")
        changed[name] = value
    try:
        return type(model).from_json(changed)
    except (TypeError, ValueError) as error:
        raise BadInput(str(error)) from None


def _shared(verb: TrainBase | TrainAlign) -> int:
    """The verb in several processes."""
    from radp.runs.processes import share

    if verb.batch % verb.processes:
        raise BadInput(f"a batch of {verb.batch} cannot be shared by {verb.processes} processes")
    share(replace(verb, processes=1), verb.processes)
    return 0


@dataclass(frozen=True)
class TrainBase:
    """Train a diffusion planner from scratch, or go on where the same command was stopped.

    `data` are folders of samples made by `radp data samples`, or of the published .npz files. Checkpoints are
    written to OUT/state, the averaged weights to OUT/model at the end. Works under `accelerate launch` as well.

    Example:
        radp train base --data runs/samples --preset mini --steps 50000 --out runs/base
        radp train base --data runs/samples runs/driven --shares 0.6 0.4 --start-from diffusion-planner-mini \\
            --schedule constant --decay 2000 --out runs/more
    """

    data: tuple[Path, ...]
    """Samples to learn from; several folders share every batch."""
    out: Path
    """Run folder; the same command resumes it."""
    shares: tuple[float, ...] = ()
    """Share of each folder in a batch; by its number of samples when not given."""
    preset: Literal["mini", "nuplan"] = "mini"
    """Model size: mini for two cores, nuplan as published."""
    switches: tuple[str, ...] = ()
    """NAME=VALUE each, settings of the model that differ from the preset (or, if its weights allow it, from the
    model to start from), as route_tokens=false.
    """
    validation: Path | None = None
    """Samples for the validation loss, of other road networks."""
    closed_loop: str | None = None
    """Split or store whose first scenarios are driven while training."""
    closed_loop_scenarios: int = 28
    """How many of these, spread evenly."""
    start_from: Path | None = None
    """A packaged model, model folder or .pth to go on from instead of random weights."""
    steps: int = 50_000
    """Optimiser steps in all."""
    batch: int = 32
    """Samples of a step, over all processes."""
    lr: float = 1e-3
    """Learning rate after warm-up."""
    warmup: int = 100
    """Steps of linear warm-up."""
    schedule: Literal["cosine", "constant"] = "cosine"
    """What the learning rate does after warm-up."""
    decay: int = 0
    """Last steps of a constant schedule, in which the rate falls to zero."""
    augment: float = 0.5
    """Share of the samples that start beside the logged pose."""
    seed: int = 3407
    """Decides everything random."""
    save_every: int = 500
    """Steps between checkpoints."""
    validate_every: int = 5_000
    """Steps between validations."""
    threads: int = 2
    """Torch threads of each process."""
    processes: int = 1
    """Share each batch among this many; on a CPU, two of one thread are faster than one of two."""
    stop_after: int | None = None
    """Stop at this step as if interrupted, the schedule still reaching to `steps`."""

    def __call__(self) -> int:
        if self.processes > 1:
            return _shared(self)
        import torch

        from radp.model.checkpoint import load_model
        from radp.model.config import ModelConfig
        from radp.model.network import extended
        from radp.model.paths import model_path
        from radp.planners.diffusion import scene_config
        from radp.runs.folder import RunFolder
        from radp.training.base import BaseConfig
        from radp.training.base import train_base as run
        from radp.training.data import Mixture, open_samples
        from radp.training.loop import LoopConfig, is_main_process

        torch.set_num_threads(self.threads)
        initial = load_model(model_path(self.start_from)) if self.start_from is not None else None
        model = _switched(initial.config if initial is not None else ModelConfig.preset(self.preset), self.switches)
        if initial is not None:
            try:
                initial = extended(initial, model)
            except ValueError as error:
                raise BadInput(f"{self.start_from}: {error}") from None
        loop = LoopConfig(
            steps=self.steps,
            batch=self.batch,
            lr=self.lr,
            warmup=self.warmup,
            schedule=self.schedule,
            decay=self.decay,
            seed=self.seed,
        )
        loop = replace(loop, save_every=self.save_every, validate_every=self.validate_every)
        config = BaseConfig(model=model, loop=loop, augment=self.augment)
        scenes = scene_config(model)
        samples = Mixture([open_samples(folder, scenes) for folder in self.data], self.shares or None)
        held_out = open_samples(self.validation, scenes) if self.validation is not None else None
        if len(samples) < self.batch:
            raise BadInput(f"{self.data[0]} holds {len(samples)} samples, fewer than one batch of {self.batch}")
        drives = _spread(self.closed_loop, self.closed_loop_scenarios)
        folders = " ".join(map(str, self.data))
        settings = {
            **asdict(config),
            "data": folders,
            "samples": len(samples),
            "start_from": str(self.start_from or ""),
        }
        if self.shares:
            settings["shares"] = samples.shares.tolist()
        folder = RunFolder.create(self.out, "train base", settings, self.seed, {"threads": self.threads})
        path = run(config, folder, samples, held_out, drives, initial, self.stop_after)
        if is_main_process():
            print(path)
        return 0


@dataclass(frozen=True)
class TrainAlign:
    """Align a planner with the driving rules through LoRA adapters; the defaults are the paper's.

    Adapters are written to OUT/adapter in PEFT's own format, the scales of the rules to OUT/scales.json. The paper's
    variants: --no-rules trains the adapters on the diffusion loss alone, --no-normalisation skips the scales.

    Example:
        radp train align --base diffusion-planner-mini --data runs/samples --out runs/radp
    """

    base: str
    """Packaged model, model folder or published .pth to align."""
    data: Path
    """Samples made by `radp data samples`."""
    out: Path
    """Run folder; the same command resumes it."""
    validation: Path | None = None
    """Samples for the validation loss, of other road networks."""
    closed_loop: str | None = None
    """Split or store whose scenarios are driven while training."""
    closed_loop_scenarios: int = 28
    """How many of these, spread evenly."""
    steps: int = 2_000
    """Optimiser steps in all."""
    batch: int = 128
    """Samples of a step, over all processes."""
    lr: float = 2e-5
    """Learning rate."""
    strength: float = 0.004
    """Weight of the rules beside the diffusion loss (lambda in the paper)."""
    min_time: float = 0.0
    """Rules act on draws with a diffusion time from this; 0 is all, as in the paper."""
    max_time: float = 1.0
    """Rules act on draws with a diffusion time up to this; 1 is all, as in the paper."""
    focus: Path | None = None
    """List made by `radp train focus`: samples on which the base planner would touch somebody."""
    focus_share: float = 0.5
    """Share of each batch that comes from that list."""
    compress: bool = False
    """Take log(1 + J / scale) of each rule, with scales of at most 10, instead of J / scale."""
    no_rules: bool = False
    """Train the adapters without rules."""
    no_normalisation: bool = False
    """Do not divide the costs by their running scales."""
    seed: int = 3407
    """Decides everything random."""
    save_every: int = 100
    """Steps between checkpoints."""
    validate_every: int = 500
    """Steps between validations."""
    threads: int = 2
    """Torch threads of each process."""
    processes: int = 1
    """Share each batch among this many; on a CPU, two of one thread are faster than one of two."""
    stop_after: int | None = None
    """Stop at this step as if interrupted."""

    def __call__(self) -> int:
        if self.processes > 1:
            return _shared(self)
        import torch

        from radp.attribution.online import RULE_SCENES
        from radp.model.paths import model_path
        from radp.planners.diffusion import scene_config
        from radp.planners.learned import load_planner_model
        from radp.runs.folder import RunFolder
        from radp.training.align import AlignConfig, paper_loop
        from radp.training.align import train_align as run
        from radp.training.data import open_samples
        from radp.training.focus import Focus
        from radp.training.loop import is_main_process

        torch.set_num_threads(self.threads)
        model = load_planner_model(model_path(self.base))
        loop = replace(paper_loop(), steps=self.steps, batch=self.batch, lr=self.lr, seed=self.seed)
        loop = replace(loop, save_every=self.save_every, validate_every=self.validate_every)
        config = AlignConfig(
            loop=loop,
            strength=self.strength,
            rules=not self.no_rules,
            normalise=not self.no_normalisation,
            min_time=self.min_time,
            max_time=self.max_time,
            focus_share=self.focus_share if self.focus is not None else 0.0,
            compress=self.compress,
        )
        scenes = scene_config(model.config)
        samples, rule_samples = open_samples(self.data, scenes), open_samples(self.data, RULE_SCENES)
        held_out = open_samples(self.validation, scenes) if self.validation is not None else None
        chosen = Focus.load(self.focus).rows_in(samples) if self.focus is not None else []
        settings = {
            **asdict(config),
            "base": self.base,
            "data": str(self.data),
            "samples": len(samples),
            "focus": len(chosen),
        }
        folder = RunFolder.create(self.out, "train align", settings, self.seed, {"threads": self.threads})
        drives = _spread(self.closed_loop, self.closed_loop_scenarios)
        path = run(config, folder, model, samples, rule_samples, held_out, drives, self.stop_after, chosen)
        if is_main_process():
            print(path)
        return 0


@dataclass(frozen=True)
class TrainFocus:
    """List the samples on which a planner would touch somebody soon and the logged way does not.

    Example:
        radp train focus --planner diffusion-planner-mini --data runs/samples --out runs/focus.json
    """

    planner: str
    """Packaged model or planner folder."""
    data: Path
    """Samples of the training split, made by `radp data samples`."""
    out: Path
    """JSON file, for `radp train align --focus`."""
    samples: int = 20_000
    """How many to look at, drawn without repetition."""
    within: float = 5.0
    """Seconds of the plan in which contact counts."""
    seed: int = 0
    """Decides samples and noise."""
    threads: int = 2
    """Torch threads."""

    def __call__(self) -> int:
        import torch

        from radp.attribution.online import RULE_SCENES
        from radp.planners.learned import load_learned
        from radp.training.data import open_samples
        from radp.training.focus import find_focus

        torch.set_num_threads(self.threads)
        model = load_learned(self.planner)
        source, rule_source = open_samples(self.data, model.scenes), open_samples(self.data, RULE_SCENES)
        found = find_focus(model, source, rule_source, self.samples, self.seed, self.within)
        found.save(self.out)
        print(f"{self.out}: {len(found.rows)} of {found.looked_at} samples")
        return 0


@dataclass(frozen=True)
class TrainHead:
    """Train the attribution head on a cache of teacher pressures; the defaults are the paper's.

    Example:
        radp train head --cache runs/cache-train --validation runs/cache-val --out runs/head
    """

    cache: Path
    """Made by `radp cache`."""
    out: Path
    """Run folder; the same command resumes it."""
    validation: Path | None = None
    """A cache of other samples, of the same planner."""
    epochs: int = 50
    """Passes over the cache."""
    batch: int = 512
    """Samples of a step."""
    lr: float = 1e-4
    """Learning rate."""
    heads: int = 6
    """Attention heads."""
    seed: int = 3407
    """Decides everything random."""
    threads: int = 2
    """Torch threads."""

    def __call__(self) -> int:
        import torch

        from radp.attribution.cache import Cache
        from radp.runs.folder import RunFolder
        from radp.training.head import HeadTraining
        from radp.training.head import train_head as run

        torch.set_num_threads(self.threads)
        config = HeadTraining(epochs=self.epochs, batch=self.batch, lr=self.lr, seed=self.seed)
        train, held_out = Cache(self.cache), Cache(self.validation) if self.validation is not None else None
        if held_out is not None and not held_out.is_like(train):
            raise BadInput(
                f"{self.validation} was made with another planner, other rules or another calibration than {self.cache}"
            )
        settings = {**asdict(config), "heads": self.heads, "cache": train.made_of}
        folder = RunFolder.create(self.out, "train head", settings, self.seed, {"threads": self.threads})
        print(run(config, folder, train, held_out, self.heads))
        return 0
