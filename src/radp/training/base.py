"""Training a diffusion planner from scratch on logged drives."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from radp.metrics.score import METRICS, evaluate_many
from radp.model.checkpoint import save_model
from radp.model.loss import diffusion_loss
from radp.model.network import DiffusionModel, build_model
from radp.planners.diffusion import DiffusionPlanner
from radp.runs.folder import RunFolder
from radp.scenario import Scenario
from radp.scene.samples import Samples
from radp.scene.scene import Scene
from radp.sim.settings import Agents
from radp.sim.simulate import simulate
from radp.training.augmentation import Draws, augment
from radp.training.data import Mixture
from radp.training.loop import fit, is_main_process, step_seed
from radp.training.settings import BaseConfig

VALIDATION_SEED = 1


class BaseTask:
    """The diffusion loss on augmented samples; validation loss, and a closed-loop score on a few scenarios."""

    def __init__(
        self,
        config: BaseConfig,
        samples: Samples | Mixture,
        validation: Samples | None = None,
        scenarios: Sequence[Scenario] = (),
        model: DiffusionModel | None = None,
    ) -> None:
        self.samples = samples if isinstance(samples, Mixture) else Mixture([samples])
        self.config, self.validation, self.scenarios = config, validation, scenarios
        self.model = model or build_model(config.model, config.loop.seed)
        self.memory = None

    def batch(self, step: int, rank: int, processes: int) -> Scene:
        loop = self.config.loop
        rows = self.samples.rows(loop.batch, step, loop.seed)
        share = loop.batch // processes
        scene = self.samples.read(rows[rank * share : (rank + 1) * share])
        generator = torch.Generator().manual_seed(step_seed(loop.seed + 1, step, rank))
        return augment(scene, Draws.make(len(scene), generator), self.config.augment, self.config.way_back)

    def loss(self, model: DiffusionModel, batch: Scene, generator: torch.Generator) -> tuple[Tensor, dict[str, float]]:
        loss = diffusion_loss(model, batch, generator=generator)
        return loss.total(self.config.ego_weight), {"ego": loss.ego.item(), "neighbour": loss.neighbour.item()}

    def validate(self, model: DiffusionModel, step: int) -> dict[str, float]:
        values = self._validation_loss(model) if self.validation is not None else {}
        if self.scenarios:
            values |= closed_loop(DiffusionPlanner(model, "in training"), self.scenarios)
        return values

    @torch.no_grad()
    def _validation_loss(self, model: DiffusionModel) -> dict[str, float]:
        """The same samples with the same noise each time."""
        assert self.validation is not None
        count = min(self.config.validation_samples, len(self.validation))
        rows = np.random.default_rng(VALIDATION_SEED).permutation(len(self.validation))[:count]
        generator = torch.Generator().manual_seed(VALIDATION_SEED)
        sums = np.zeros(2)
        for first in range(0, count, self.config.validation_batch):
            part = rows[first : first + self.config.validation_batch]
            loss = diffusion_loss(model, self.validation.read(part), generator=generator)
            sums += len(part) * np.array([float(loss.ego), float(loss.neighbour)])
        ego, neighbour = (sums / max(1, count)).tolist()
        return {"ego": ego, "neighbour": neighbour}


def closed_loop(
    planner: DiffusionPlanner, scenarios: Sequence[Scenario], agents: Agents = "reactive"
) -> dict[str, float]:
    """Mean score and sub-scores (0 to 1) of a few drives."""
    scores = evaluate_many(list(simulate(planner, scenarios, agents=agents)))
    values = {"score": float(np.mean([s.score for s in scores]))}
    for name in METRICS:
        known = [s.metrics[name].value for s in scores if s.failure is None and s.metrics[name].valid]
        if known:
            values[name] = float(np.mean(known))
    return values


def train_base(
    config: BaseConfig,
    folder: RunFolder,
    samples: Samples | Mixture,
    validation: Samples | None = None,
    scenarios: Sequence[Scenario] = (),
    start_from: DiffusionModel | None = None,
    stop_after: int | None = None,
) -> Path:
    """Train, or go on training, and write the averaged weights to FOLDER/model; returns that path."""
    task = BaseTask(config, samples, validation, scenarios, start_from)
    model = fit(task, config.loop, folder, stop_after)
    target = folder.path / "model"
    if is_main_process():
        save_model(model, target, folder.config, folder.config["commit"])
    return target
