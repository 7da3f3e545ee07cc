"""radp train: base, align, head."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Literal

from radp.runs.errors import BadInput


def train_base(
    data: Path,
    out: Path,
    preset: Literal["mini", "nuplan"] = "mini",
    validation: Path | None = None,
    closed_loop: str | None = None,
    closed_loop_scenarios: int = 28,
    start_from: Path | None = None,
    steps: int = 50_000,
    batch: int = 32,
    lr: float = 1e-3,
    warmup: int = 100,
    schedule: Literal["cosine", "constant"] = "cosine",
    augment: float = 0.5,
    seed: int = 3407,
    save_every: int = 500,
    validate_every: int = 5_000,
    threads: int = 2,
    stop_after: int | None = None,
) -> int:
    """Train a diffusion planner from scratch, or go on where the same command was stopped.

    `data` is a folder of samples made by `radp data samples`, or a folder of the published .npz files. Checkpoints are
    written to OUT/state, the averaged weights to OUT/model at the end. Works under `accelerate launch` as well.

    Example:
        radp train base --data runs/samples --preset mini --steps 50000 --out runs/base

    Args:
        data: Samples to learn from.
        out: Run folder; the same command resumes it.
        preset: Model size: mini for two cores, nuplan as published.
        validation: Samples for the validation loss, of other road networks.
        closed_loop: Split or store whose first scenarios are driven while training.
        closed_loop_scenarios: How many of these, spread evenly.
        start_from: A model folder or .pth to go on from instead of random weights.
        steps: Optimiser steps in all.
        batch: Samples of a step, over all processes.
        lr: Learning rate after warm-up.
        warmup: Steps of linear warm-up.
        schedule: What the learning rate does after warm-up.
        augment: Share of the samples that start beside the logged pose.
        seed: Decides everything random.
        save_every: Steps between checkpoints.
        validate_every: Steps between validations.
        threads: Torch threads of each process.
        stop_after: Stop at this step as if interrupted, the schedule still reaching to `steps`.
    """
    import torch

    from radp.model.checkpoint import load_model
    from radp.model.config import ModelConfig
    from radp.planners.diffusion import scene_config
    from radp.runs.folder import RunFolder
    from radp.training.base import BaseConfig
    from radp.training.base import train_base as run
    from radp.training.data import open_samples
    from radp.training.loop import LoopConfig
    from radp.zoo import open_split

    torch.set_num_threads(threads)
    initial = load_model(start_from) if start_from is not None else None
    model = initial.config if initial is not None else ModelConfig.preset(preset)
    loop = LoopConfig(steps=steps, batch=batch, lr=lr, warmup=warmup, schedule=schedule, seed=seed)
    loop = replace(loop, save_every=save_every, validate_every=validate_every)
    config = BaseConfig(model=model, loop=loop, augment=augment)
    scenes = scene_config(model)
    samples = open_samples(data, scenes)
    held_out = open_samples(validation, scenes) if validation is not None else None
    if len(samples) < batch:
        raise BadInput(f"{data} holds {len(samples)} samples, fewer than one batch of {batch}")
    drives = []
    if closed_loop is not None:
        split = open_split(closed_loop)
        count = min(closed_loop_scenarios, len(split))
        drives = [split[i * len(split) // count] for i in range(count)]
    settings = {**asdict(config), "data": str(data), "samples": len(samples), "start_from": str(start_from or "")}
    folder = RunFolder.create(out, "train base", settings, seed, {"threads": threads})
    path = run(config, folder, samples, held_out, drives, initial, stop_after)
    print(path)
    return 0
