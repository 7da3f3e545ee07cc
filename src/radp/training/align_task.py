"""The paper's alignment: LoRA adapters on a frozen planner learn the diffusion loss and the driving rules (Eq. 7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from radp.model.adapters import add_adapters, resume_adapters
from radp.model.loss import DiffusionLoss, diffusion_loss
from radp.model.network import DiffusionModel
from radp.model.paths import model_path
from radp.model.target import TargetSpace
from radp.rules import RuleContext
from radp.scenario import Scenario
from radp.scene.samples import Samples
from radp.scene.scene import Scene
from radp.training.augmentation import Draws, augment
from radp.training.base import BaseTask
from radp.training.loop import shuffled_rows, step_seed
from radp.training.rule_terms import RuleTerms
from radp.training.rule_weighting import draw_log_weights
from radp.training.settings import AlignConfig, BaseConfig


class AlignTask:
    """L_nbr + 2 L_ego + lambda * sum_i w_i J_i / s_i on the adapters of a frozen planner.

    Samples should hold what the rules look at (`Scene.rules`); else the rules look at what the model sees.
    """

    def __init__(
        self,
        config: AlignConfig,
        base: DiffusionModel,
        samples: Samples,
        validation: Samples | None = None,
        scenarios: Sequence[Scenario] = (),
        focus: Sequence[int] = (),
    ) -> None:
        self.config, self.samples = config, samples
        self.focus = np.asarray(focus, dtype=np.int64)
        self.base, self.model = base, trainable(base, config)  # what learns sits inside `base`
        self.terms = RuleTerms(config)
        self.rules, self.memory = self.terms.rules, self.terms.memory
        watch = BaseConfig(model=base.config, loop=config.loop, ego_weight=config.ego_weight)
        self.watch = BaseTask(watch, samples, validation, scenarios, base)

    def batch(self, step: int, rank: int, processes: int) -> Scene:
        rows = self.rows(step, rank, processes)
        generator = torch.Generator().manual_seed(step_seed(self.config.loop.seed + 1, step, rank))
        scene = augment(self.samples.read(rows), Draws.make(len(rows), generator), self.config.augment)
        return self.with_weights(scene, step, rank)

    def with_weights(self, scene: Scene, step: int, rank: int) -> Scene:
        """The scenes, each with weights of its own if the planner is to listen to them."""
        if not self.config.weighting.conditioned:
            return scene
        generator = torch.Generator().manual_seed(step_seed(self.config.loop.seed + 2, step, rank))
        weighting = self.config.weighting
        drawn = draw_log_weights(
            len(scene), len(self.rules), weighting.spread, generator, upwards=weighting.around_default
        )
        return replace(scene, rule_weights=drawn)

    def rows(self, step: int, rank: int, processes: int) -> np.ndarray:
        """(b,) samples of this process, in every process some of the focus."""
        loop = self.config.loop
        rows = shuffled_rows(len(self.samples), loop.batch, step, loop.seed)
        chosen = min(int(self.config.focus_share * loop.batch), len(self.focus))
        if chosen:
            rows = np.concatenate((rows[chosen:], self.focus[shuffled_rows(len(self.focus), chosen, step, loop.seed)]))
            rows = np.random.default_rng([loop.seed, step]).permutation(rows)  # each process gets both
        share = loop.batch // processes
        return rows[rank * share : (rank + 1) * share]

    def loss(self, model: nn.Module, batch: Scene, generator: torch.Generator) -> tuple[Tensor, dict[str, float]]:
        diffusion = diffusion_loss(self.base, batch, generator=generator)
        total = diffusion.total(self.config.ego_weight)
        parts = {"diffusion": total.item(), "ego": diffusion.ego.item(), "neighbour": diffusion.neighbour.item()}
        if not self.config.rules:
            return total, parts
        plan, contexts, counted = self._plans(diffusion, batch)
        if not bool(counted.any()):
            return total, parts
        judged = self.terms.judge(plan[counted], [context.rows(counted) for context in contexts])
        drawn = batch.rule_weights
        drawn = None if drawn is None else drawn.repeat_interleave(len(counted) // len(batch), 0)[counted]
        rule_loss = self.terms.total(judged, drawn, diffusion.output)
        parts |= self._shares(total, rule_loss, diffusion.output) | self.terms.records(judged)
        return total + rule_loss, parts | {"rules": rule_loss.item()}

    def _plans(self, diffusion: DiffusionLoss, batch: Scene) -> tuple[Tensor, list[RuleContext], Tensor]:
        """The predicted clean plans (B * K, H, 4) in metres, their contexts, and which draws count (B * K,)."""
        metres = TargetSpace(self.base.config, self.base.normaliser).to_metres(diffusion.estimate)
        plan = metres[:, 0, 1:]
        contexts = self.terms.contexts(batch, plan.shape[1], len(plan) // len(batch))
        counted = (self.config.min_time <= diffusion.time) & (diffusion.time <= self.config.max_time)
        return plan, contexts, counted

    def _shares(self, diffusion: Tensor, rules: Tensor, output: Tensor) -> dict[str, float]:
        """How strongly each part pulls at the network's answer: norms of the two gradients."""
        norms = [torch.autograd.grad(part, output, retain_graph=True)[0].norm().item() for part in (diffusion, rules)]
        return {
            "pull/diffusion": norms[0],
            "pull/rules": norms[1],
            "pull/share_of_rules": norms[1] / max(1e-12, sum(norms)),
        }

    def validate(self, model: nn.Module, step: int) -> dict[str, float]:
        return self.watch.validate(self.base, step)


def trainable(base: DiffusionModel, config: AlignConfig) -> nn.Module:
    """The model in which only the adapters, the decoder, encoder and decoder, or the input for weights learn."""
    if config.avoid.trained == "adapters":
        lora = config.lora
        model = (
            resume_adapters(base, model_path(config.start), lora.dropout) if config.start else add_adapters(base, lora)
        )
    else:
        model = base.requires_grad_(False)
        base.decoder.requires_grad_(config.avoid.trained in ("decoder", "model"))
        base.encoder.requires_grad_(config.avoid.trained == "model")
    if config.weighting.conditioned and base.decoder.weight_embedding is not None:
        base.decoder.weight_embedding.requires_grad_(True)
    return model
