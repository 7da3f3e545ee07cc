"""Training the published planners on log samples with the project's one loop, with their own losses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from radp.planners.zoo.augmentation import beside, drop_vehicles, perturb_plantf, perturb_pluto
from radp.planners.zoo.batch import Batch, Sample, collate
from radp.planners.zoo.checkpoint import save_folder
from radp.planners.zoo.gameformer import GameFormerConfig, gameformer_loss
from radp.planners.zoo.kinds import KINDS
from radp.planners.zoo.pdm_features import pdm_target
from radp.planners.zoo.pdm_open import PDMConfig, l1_loss
from radp.planners.zoo.plantf import PlanTFConfig, plantf_loss
from radp.planners.zoo.pluto import PlutoConfig
from radp.planners.zoo.pluto_loss import pluto_loss
from radp.planners.zoo.urban_driver import UrbanDriverConfig, weighted_loss
from radp.planners.zoo.view import view_of_moment
from radp.runs.folder import RunFolder
from radp.scene.log_samples import LogSamples
from radp.training.loop import fit, is_main_process, shuffled_rows, step_seed
from radp.training.settings import LoopConfig

PlannerKind = Literal["plantf", "pdm-open", "urban-driver", "pluto", "gameformer"]
Preset = Literal["mini", "published"]
VALIDATION_SEED = 1

MINI: dict[str, Any] = {
    "plantf": PlanTFConfig(dim=64, heads=4, depth=2, history=16, categories=True),
    "pdm-open": PDMConfig(hidden=256),
    "urban-driver": UrbanDriverConfig(dim=64, heads=4, hidden=256, positions=20),
    "pluto": PlutoConfig(dim=64, depth=2, decoder_depth=2, history=16),
    "gameformer": GameFormerConfig(dim=64, heads=4, layers=2, levels=1, dropout=0.0),
}


@dataclass(frozen=True, kw_only=True)
class ZooConfig:
    """What is trained, and how."""

    kind: PlannerKind
    preset: Preset = "mini"
    loop: LoopConfig = field(default_factory=LoopConfig)
    augment: bool = True
    beside: float = 0.0  # share of samples that start beside the logged pose, for kinds without such an augmentation
    validation_samples: int = 256

    def network(self) -> nn.Module:
        """A network with random weights, the same for the same seed."""
        kind = KINDS[self.kind]
        torch.manual_seed(self.loop.seed)
        return kind.network(kind.published if self.preset == "published" else MINI[self.kind])


def parts_of(kind: str, output: Any, batch: Batch) -> Batch:
    """The loss of a kind as `loss` and its parts."""
    if kind == "plantf":
        return plantf_loss(output, batch)
    if kind == "pluto":
        return pluto_loss(output, batch)
    if kind == "gameformer":
        return gameformer_loss(output, batch)
    loss = weighted_loss if kind == "urban-driver" else l1_loss
    return {"loss": loss(output, batch["target"])}


AUGMENTATIONS: dict[str, Callable[[Sample, np.random.Generator], Sample]] = {
    "plantf": perturb_plantf,
    "pluto": perturb_pluto,
    "urban-driver": drop_vehicles,
}


class ZooTask:
    """The loss of a published planner on samples of logs, augmented as its authors do."""

    def __init__(self, config: ZooConfig, samples: LogSamples, validation: LogSamples | None = None) -> None:
        self.config, self.samples, self.validation = config, samples, validation
        self.model = config.network()
        norms = [module for module in self.model.modules() if isinstance(module, nn.BatchNorm1d)]
        self.memory = nn.ModuleList(norms)  # their running statistics are no weights, but go with them

    def sample(self, samples: LogSamples, index: int, random: np.random.Generator | None) -> Sample:
        """Features and target of one sample; `random` augments it."""
        kind, view = self.config.kind, view_of_moment(samples.moment(index))
        if random is not None and self.config.beside and random.random() < self.config.beside:
            view = beside(view, random)
        sample = KINDS[kind].sample(view)
        if kind in ("pdm-open", "urban-driver"):
            sample["target"] = pdm_target(view)
        if kind == "pluto" and not len(sample["reference_line/position"]):
            sample = _with_a_line(sample)
        change = AUGMENTATIONS.get(kind)
        return sample if change is None or random is None or not self.config.augment else change(sample, random)

    def batch(self, step: int, rank: int, processes: int) -> Batch:
        loop = self.config.loop
        rows, share = shuffled_rows(len(self.samples), loop.batch, step, loop.seed), loop.batch // processes
        random = np.random.default_rng(step_seed(loop.seed + 1, step, rank))
        return collate([self.sample(self.samples, int(row), random) for row in rows[rank * share : (rank + 1) * share]])

    def loss(self, model: nn.Module, batch: Batch, generator: torch.Generator) -> tuple[Tensor, dict[str, float]]:
        parts = parts_of(self.config.kind, model(batch), batch)
        total = parts.pop("loss")
        return total, {name: float(value.detach()) for name, value in parts.items()}

    @torch.no_grad()
    def validate(self, model: nn.Module, step: int) -> dict[str, float]:
        """The loss on the same held-out samples each time."""
        if self.validation is None:
            return {}
        count = min(self.config.validation_samples, len(self.validation))
        rows = np.random.default_rng(VALIDATION_SEED).permutation(len(self.validation))[:count]
        total = 0.0
        for first in range(0, count, self.config.loop.batch):
            part = rows[first : first + self.config.loop.batch]
            batch = collate([self.sample(self.validation, int(row), None) for row in part])
            total += len(part) * float(parts_of(self.config.kind, model(batch), batch)["loss"])
        return {"loss": total / max(1, count)}


def _with_a_line(sample: Sample) -> Sample:
    """A sample without reference lines gets one that is not valid, so that a batch of such ones has a shape."""
    empty = {
        name: np.zeros((1, *value.shape[1:]), dtype=value.dtype)
        for name, value in sample.items()
        if name.startswith("reference_line/")
    }
    return sample | empty


def train_zoo(
    config: ZooConfig,
    folder: RunFolder,
    samples: LogSamples,
    validation: LogSamples | None = None,
    stop_after: int | None = None,
) -> Path:
    """Train, or go on training, and write the averaged weights to FOLDER/model; returns that path."""
    model = fit(ZooTask(config, samples, validation), config.loop, folder, stop_after)
    target = folder.path / "model"
    if is_main_process():
        save_folder(config.kind, model, target, folder.config)
    return target
