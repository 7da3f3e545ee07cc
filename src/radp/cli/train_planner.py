"""radp train planner: train one of the published planners here."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from radp.runs.errors import BadInput
from radp.training.settings import LoopConfig

if TYPE_CHECKING:
    from radp.scene.log_samples import LogSamples


def mini_loop() -> LoopConfig:
    """Settings for two cores; the published ones differ by planner (docs/planners.md)."""
    return LoopConfig(steps=20_000, batch=32, lr=1e-3, weight_decay=1e-4, warmup=500, validate_every=2_000)


@dataclass(frozen=True, kw_only=True)
class TrainPlanner:
    """Train a planner that others published, from scratch, or go on where the same command was stopped.

    `data` is a folder of log samples made by `radp data samples`. The averaged weights are written to OUT/model, which
    `radp simulate --planner OUT/model` drives with.

    Example:
        radp train planner --kind plantf --data runs/samples --out runs/plantf
        radp train planner --kind pdm-open --data runs/samples --steps 5000 --batch 64 --out runs/pdm-open
    """

    kind: Literal["plantf", "pdm-open", "urban-driver", "pluto", "gameformer"]
    """Which planner."""
    data: Path
    """Log samples to learn from."""
    out: Path
    """Run folder; the same command resumes it."""
    preset: Literal["mini", "published"] = "mini"
    """Size: mini for two cores, or as published."""
    augment: bool = True
    """Whether samples are augmented as the authors do."""
    beside: float = 0.0
    """Share of the samples whose ego starts beside the logged pose; for planners without such an augmentation."""
    validation: Path | None = None
    """Log samples for the validation loss, of other road networks."""
    loop: LoopConfig = field(default_factory=mini_loop)
    threads: int = 2
    """Torch threads."""
    stop_after: int | None = None
    """Stop at this step as if interrupted, the schedule still reaching to the last one."""

    def __call__(self) -> int:
        import torch

        from radp.runs.folder import RunFolder
        from radp.training.loop import is_main_process
        from radp.training.zoo import ZooConfig, train_zoo

        torch.set_num_threads(self.threads)
        samples = _open(self.data)
        held_out = None if self.validation is None else _open(self.validation)
        config = ZooConfig(kind=self.kind, preset=self.preset, loop=self.loop, augment=self.augment, beside=self.beside)
        if len(samples) < config.loop.batch:
            raise BadInput(f"{self.data} holds {len(samples)} samples, fewer than one batch of {config.loop.batch}")
        facts = {"data": str(self.data), "samples": len(samples)}
        execution = {"threads": self.threads}
        folder = RunFolder.create(self.out, "train planner", config, config.loop.seed, execution, facts)
        path = train_zoo(config, folder, samples, held_out, self.stop_after)
        if is_main_process():
            print(path)
        return 0


def _open(path: Path) -> LogSamples:
    from radp.scene.builder import PUBLISHED
    from radp.scene.log_samples import LogSamples
    from radp.training.data import open_samples

    samples = open_samples(path, PUBLISHED)
    if not isinstance(samples, LogSamples):
        raise BadInput(
            f"{path} holds finished scenes; these planners need log samples, as radp data samples makes them"
        )
    return samples
