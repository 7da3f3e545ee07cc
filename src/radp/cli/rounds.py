"""radp train rounds: learning in the loop, round by round."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import asdict
from pathlib import Path


def train_rounds(
    start: str,
    scenarios: str,
    data: tuple[Path, ...],
    out: Path,
    dev: str = "sumo14-dev",
    rounds: int = 3,
    expert: str = "pdm_careful",
    takeovers: int = 2,
    share: float = 0.3,
    steps: int = 6_000,
    batch: int = 16,
    lr: float = 5e-4,
    warmup: int = 300,
    decay: int = 1_500,
    seed: int = 3407,
    threads: int = 1,
    workers: int = 2,
) -> int:
    """Let a planner drive, let an expert take over before it collides, go on training on both; keep a round only if the
    planner does not collide more on the dev scenarios.

    Example:
        radp train rounds --start runs/base/model --scenarios runs/train --data runs/samples --out runs/rounds

    Args:
        start: Packaged model or model folder.
        scenarios: Training scenarios; each round drives another part of them.
        data: Samples to go on learning from beside the takeovers.
        out: Run folder; the same command resumes it.
        dev: Scenarios that decide whether a round is kept.
        rounds: How often.
        expert: Planner that takes over.
        takeovers: Takeovers of each scenario.
        share: Share of the takeovers in every batch; the other folders share the rest by their size.
        steps: Optimiser steps of each round.
        batch: Samples of a step.
        lr: Learning rate after warm-up, constant until it falls at the end.
        warmup: Steps of linear warm-up.
        decay: Last steps, in which the rate falls to zero.
        seed: Decides everything random.
        threads: Torch threads.
        workers: Processes for driving.
    """
    import torch

    from radp.evaluation.rounds import Rounds, remaining, run_rounds
    from radp.model.checkpoint import load_model
    from radp.model.paths import model_path
    from radp.planners.diffusion import scene_config
    from radp.runs.errors import BadInput
    from radp.runs.folder import RunFolder
    from radp.training.base import BaseConfig, train_base
    from radp.training.data import Mixture, open_samples
    from radp.training.loop import LoopConfig

    if not 0.0 < share < 1.0:
        raise BadInput(f"share is {share}, expected more than 0 and less than 1")
    torch.set_num_threads(threads)
    loop = LoopConfig(steps, batch, lr, warmup=warmup, schedule="constant", decay=decay, seed=seed)

    def train(model_name: str, taken_over: Sequence[Path], folder: Path) -> Path:
        model = load_model(model_path(model_name))
        config, scenes = BaseConfig(model.config, loop), scene_config(model.config)
        usual, new = ([open_samples(path, scenes) for path in paths] for paths in (data, taken_over))
        mixture = Mixture([*usual, *new], [*_by_size(usual, 1.0 - share), *_by_size(new, share)])
        settings = {**asdict(config), "data": [str(path) for path in (*data, *taken_over)], "start_from": model_name}
        run = RunFolder.create(folder, "train base", settings, seed, {"threads": threads})
        return train_base(config, run, mixture, start_from=model)

    settings = Rounds(start, scenarios, dev, rounds, expert, takeovers)
    done = run_rounds(settings, train, out, workers)
    for number, one in enumerate(done):
        verdict = "kept" if one.kept else "not kept"
        change = f"collision {100 * one.collision_before:.1f} -> {100 * one.collision_after:.1f}"
        print(f"round {number}: {change}, score {100 * one.score_before:.1f} -> {100 * one.score_after:.1f}, {verdict}")
    print(remaining(done, settings))
    return 0


def _by_size(sources: Sequence[Sized], total: float) -> list[float]:
    """Shares that add up to `total`, in the proportion of the sources' sizes."""
    counts = [len(source) for source in sources]
    return [total * count / sum(counts) for count in counts]
