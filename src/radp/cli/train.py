"""radp train: base, align, head."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

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


def _shared(verb: Callable[..., int], processes: int, arguments: dict[str, Any]) -> int:
    """The verb in several processes."""
    from radp.runs.processes import share

    if arguments["batch"] % processes:
        raise BadInput(f"a batch of {arguments['batch']} cannot be shared by {processes} processes")
    share(verb, processes, {**arguments, "processes": 1})
    return 0


def train_base(
    data: tuple[Path, ...],
    out: Path,
    shares: tuple[float, ...] = (),
    preset: Literal["mini", "nuplan"] = "mini",
    switches: tuple[str, ...] = (),
    validation: Path | None = None,
    closed_loop: str | None = None,
    closed_loop_scenarios: int = 28,
    start_from: Path | None = None,
    steps: int = 50_000,
    batch: int = 32,
    lr: float = 1e-3,
    warmup: int = 100,
    schedule: Literal["cosine", "constant"] = "cosine",
    decay: int = 0,
    augment: float = 0.5,
    seed: int = 3407,
    save_every: int = 500,
    validate_every: int = 5_000,
    threads: int = 2,
    processes: int = 1,
    stop_after: int | None = None,
) -> int:
    """Train a diffusion planner from scratch, or go on where the same command was stopped.

    `data` are folders of samples made by `radp data samples`, or of the published .npz files. Checkpoints are
    written to OUT/state, the averaged weights to OUT/model at the end. Works under `accelerate launch` as well.

    Example:
        radp train base --data runs/samples --preset mini --steps 50000 --out runs/base
        radp train base --data runs/samples runs/driven --shares 0.6 0.4 --start-from diffusion-planner-mini \\
            --schedule constant --decay 2000 --out runs/more

    Args:
        data: Samples to learn from; several folders share every batch.
        out: Run folder; the same command resumes it.
        shares: Share of each folder in a batch; by its number of samples when not given.
        preset: Model size: mini for two cores, nuplan as published.
        switches: NAME=VALUE each, settings of the model that differ from the preset (or, if its weights allow it, from
            the model to start from), as route_tokens=false.
        validation: Samples for the validation loss, of other road networks.
        closed_loop: Split or store whose first scenarios are driven while training.
        closed_loop_scenarios: How many of these, spread evenly.
        start_from: A packaged model, model folder or .pth to go on from instead of random weights.
        steps: Optimiser steps in all.
        batch: Samples of a step, over all processes.
        lr: Learning rate after warm-up.
        warmup: Steps of linear warm-up.
        schedule: What the learning rate does after warm-up.
        decay: Last steps of a constant schedule, in which the rate falls to zero.
        augment: Share of the samples that start beside the logged pose.
        seed: Decides everything random.
        save_every: Steps between checkpoints.
        validate_every: Steps between validations.
        threads: Torch threads of each process.
        processes: Share each batch among this many; on a CPU, two of one thread are faster than one of two.
        stop_after: Stop at this step as if interrupted, the schedule still reaching to `steps`.
    """
    if processes > 1:
        return _shared(train_base, processes, dict(locals()))
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

    torch.set_num_threads(threads)
    initial = load_model(model_path(start_from)) if start_from is not None else None
    model = _switched(initial.config if initial is not None else ModelConfig.preset(preset), switches)
    if initial is not None:
        try:
            initial = extended(initial, model)
        except ValueError as error:
            raise BadInput(f"{start_from}: {error}") from None
    loop = LoopConfig(steps=steps, batch=batch, lr=lr, warmup=warmup, schedule=schedule, decay=decay, seed=seed)
    loop = replace(loop, save_every=save_every, validate_every=validate_every)
    config = BaseConfig(model=model, loop=loop, augment=augment)
    scenes = scene_config(model)
    samples = Mixture([open_samples(folder, scenes) for folder in data], shares or None)
    held_out = open_samples(validation, scenes) if validation is not None else None
    if len(samples) < batch:
        raise BadInput(f"{data[0]} holds {len(samples)} samples, fewer than one batch of {batch}")
    drives = _spread(closed_loop, closed_loop_scenarios)
    folders = " ".join(map(str, data))
    settings = {**asdict(config), "data": folders, "samples": len(samples), "start_from": str(start_from or "")}
    if shares:
        settings["shares"] = samples.shares.tolist()
    folder = RunFolder.create(out, "train base", settings, seed, {"threads": threads})
    path = run(config, folder, samples, held_out, drives, initial, stop_after)
    if is_main_process():
        print(path)
    return 0


def train_align(
    base: str,
    data: Path,
    out: Path,
    validation: Path | None = None,
    closed_loop: str | None = None,
    closed_loop_scenarios: int = 28,
    steps: int = 2_000,
    batch: int = 128,
    lr: float = 2e-5,
    strength: float = 0.004,
    min_time: float = 0.0,
    max_time: float = 1.0,
    focus: Path | None = None,
    focus_share: float = 0.5,
    compress: bool = False,
    no_rules: bool = False,
    no_normalisation: bool = False,
    seed: int = 3407,
    save_every: int = 100,
    validate_every: int = 500,
    threads: int = 2,
    processes: int = 1,
    stop_after: int | None = None,
) -> int:
    """Align a planner with the driving rules through LoRA adapters; the defaults are the paper's.

    Adapters are written to OUT/adapter in PEFT's own format, the scales of the rules to OUT/scales.json. The paper's
    variants: --no-rules trains the adapters on the diffusion loss alone, --no-normalisation skips the scales.

    Example:
        radp train align --base diffusion-planner-mini --data runs/samples --out runs/radp

    Args:
        base: Packaged model, model folder or published .pth to align.
        data: Samples made by `radp data samples`.
        out: Run folder; the same command resumes it.
        validation: Samples for the validation loss, of other road networks.
        closed_loop: Split or store whose scenarios are driven while training.
        closed_loop_scenarios: How many of these, spread evenly.
        steps: Optimiser steps in all.
        batch: Samples of a step, over all processes.
        lr: Learning rate.
        strength: Weight of the rules beside the diffusion loss (lambda in the paper).
        min_time: Rules act on draws with a diffusion time from this; 0 is all, as in the paper.
        max_time: Rules act on draws with a diffusion time up to this; 1 is all, as in the paper.
        focus: List made by `radp train focus`: samples on which the base planner would touch somebody.
        focus_share: Share of each batch that comes from that list.
        compress: Take log(1 + J / scale) of each rule, with scales of at most 10, instead of J / scale.
        no_rules: Train the adapters without rules.
        no_normalisation: Do not divide the costs by their running scales.
        seed: Decides everything random.
        save_every: Steps between checkpoints.
        validate_every: Steps between validations.
        threads: Torch threads of each process.
        processes: Share each batch among this many; on a CPU, two of one thread are faster than one of two.
        stop_after: Stop at this step as if interrupted.
    """
    if processes > 1:
        return _shared(train_align, processes, dict(locals()))
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

    torch.set_num_threads(threads)
    model = load_planner_model(model_path(base))
    loop = replace(paper_loop(), steps=steps, batch=batch, lr=lr, seed=seed)
    loop = replace(loop, save_every=save_every, validate_every=validate_every)
    config = AlignConfig(
        loop=loop,
        strength=strength,
        rules=not no_rules,
        normalise=not no_normalisation,
        min_time=min_time,
        max_time=max_time,
        focus_share=focus_share if focus is not None else 0.0,
        compress=compress,
    )
    scenes = scene_config(model.config)
    samples, rule_samples = open_samples(data, scenes), open_samples(data, RULE_SCENES)
    held_out = open_samples(validation, scenes) if validation is not None else None
    chosen = Focus.load(focus).rows_in(samples) if focus is not None else []
    settings = {**asdict(config), "base": base, "data": str(data), "samples": len(samples), "focus": len(chosen)}
    folder = RunFolder.create(out, "train align", settings, seed, {"threads": threads})
    drives = _spread(closed_loop, closed_loop_scenarios)
    path = run(config, folder, model, samples, rule_samples, held_out, drives, stop_after, chosen)
    if is_main_process():
        print(path)
    return 0


def train_focus(
    planner: str, data: Path, out: Path, samples: int = 20_000, within: float = 5.0, seed: int = 0, threads: int = 2
) -> int:
    """List the samples on which a planner would touch somebody soon and the logged way does not.

    Example:
        radp train focus --planner diffusion-planner-mini --data runs/samples --out runs/focus.json

    Args:
        planner: Packaged model or planner folder.
        data: Samples of the training split, made by `radp data samples`.
        out: JSON file, for `radp train align --focus`.
        samples: How many to look at, drawn without repetition.
        within: Seconds of the plan in which contact counts.
        seed: Decides samples and noise.
        threads: Torch threads.
    """
    import torch

    from radp.attribution.online import RULE_SCENES
    from radp.planners.learned import load_learned
    from radp.training.data import open_samples
    from radp.training.focus import find_focus

    torch.set_num_threads(threads)
    model = load_learned(planner)
    source, rule_source = open_samples(data, model.scenes), open_samples(data, RULE_SCENES)
    found = find_focus(model, source, rule_source, samples, seed, within)
    found.save(out)
    print(f"{out}: {len(found.rows)} of {found.looked_at} samples")
    return 0


def train_head(
    cache: Path,
    out: Path,
    validation: Path | None = None,
    epochs: int = 50,
    batch: int = 512,
    lr: float = 1e-4,
    heads: int = 6,
    seed: int = 3407,
    threads: int = 2,
) -> int:
    """Train the attribution head on a cache of teacher pressures; the defaults are the paper's.

    Example:
        radp train head --cache runs/cache-train --validation runs/cache-val --out runs/head

    Args:
        cache: Made by `radp cache`.
        out: Run folder; the same command resumes it.
        validation: A cache of other samples, of the same planner.
        epochs: Passes over the cache.
        batch: Samples of a step.
        lr: Learning rate.
        heads: Attention heads.
        seed: Decides everything random.
        threads: Torch threads.
    """
    import torch

    from radp.attribution.cache import Cache
    from radp.runs.folder import RunFolder
    from radp.training.head import HeadTraining
    from radp.training.head import train_head as run

    torch.set_num_threads(threads)
    config = HeadTraining(epochs=epochs, batch=batch, lr=lr, seed=seed)
    train, held_out = Cache(cache), Cache(validation) if validation is not None else None
    if held_out is not None and held_out.about["fingerprint"] != train.about["fingerprint"]:
        raise BadInput(f"{validation} was made with another planner, other rules or another calibration than {cache}")
    settings = {**asdict(config), "heads": heads, "cache": train.about}
    folder = RunFolder.create(out, "train head", settings, seed, {"threads": threads})
    print(run(config, folder, train, held_out, heads))
    return 0
