"""Alignment: LoRA adapters on a frozen planner learn the diffusion loss and the driving rules together (Eq. 7)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from radp.model.adapters import add_adapters, save_adapters
from radp.model.checkpoint import save_model
from radp.model.loss import DiffusionLoss, diffusion_loss
from radp.model.network import DiffusionModel
from radp.model.target import TargetSpace
from radp.rules import RuleContext, registered_rules, rule_costs
from radp.rules.scales import RuleScales
from radp.runs.folder import RunFolder
from radp.scenario import Scenario
from radp.scene.samples import Samples
from radp.scene.scene import Scene
from radp.training.augmentation import Draws, augment
from radp.training.base import BaseTask
from radp.training.loop import fit, is_main_process, shuffled_rows, step_seed
from radp.training.rule_weighting import RuleWeighting, draw_log_weights
from radp.training.settings import AlignConfig, BaseConfig

COMPRESSED_SCALES = (0.01, 10.0)


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
        self.base, self.model = base, add_adapters(base, config.lora)  # the adapters sit inside `base`
        self.rules = registered_rules()
        self.memory = RuleScales(len(self.rules))
        self.weighting = RuleWeighting(config.weighting, self.rules, self.memory)
        if base.decoder.weight_embedding is not None and config.weighting.conditioned:
            base.decoder.weight_embedding.requires_grad_(True)
        watch = BaseConfig(model=base.config, loop=config.loop, ego_weight=config.ego_weight)
        self.watch = BaseTask(watch, samples, validation, scenarios, base)

    def batch(self, step: int, rank: int, processes: int) -> Scene:
        loop = self.config.loop
        rows = shuffled_rows(len(self.samples), loop.batch, step, loop.seed)
        chosen = min(int(self.config.focus_share * loop.batch), len(self.focus))
        if chosen:
            rows = np.concatenate((rows[chosen:], self.focus[shuffled_rows(len(self.focus), chosen, step, loop.seed)]))
            rows = np.random.default_rng([loop.seed, step]).permutation(rows)  # each process gets both
        share = loop.batch // processes
        mine = rows[rank * share : (rank + 1) * share]
        draws = Draws.make(len(mine), torch.Generator().manual_seed(step_seed(loop.seed + 1, step, rank)))
        scene = augment(self.samples.read(mine), draws, self.config.augment)
        if not self.config.weighting.conditioned:
            return scene
        generator = torch.Generator().manual_seed(step_seed(loop.seed + 2, step, rank))
        drawn = draw_log_weights(len(mine), len(self.rules), self.config.weighting.spread, generator)
        return replace(scene, rule_weights=drawn)

    def loss(self, model: nn.Module, batch: Scene, generator: torch.Generator) -> tuple[Tensor, dict[str, float]]:
        diffusion = diffusion_loss(self.base, batch, generator=generator)
        total = diffusion.total(self.config.ego_weight)
        parts = {"diffusion": total.item(), "ego": diffusion.ego.item(), "neighbour": diffusion.neighbour.item()}
        if not self.config.rules:
            return total, parts
        costs, counted = self._costs(diffusion, batch)
        if not bool(counted.any()):
            return total, parts
        costs = costs[counted]
        self.memory.update(costs)
        normalised = self.memory(costs) if self.config.normalise else costs
        terms = self._compressed(costs) if self.config.compress else normalised
        drawn = batch.rule_weights
        drawn = None if drawn is None else drawn.repeat_interleave(len(counted) // len(batch), 0)[counted]
        rule_loss = self.config.strength * self.weighting(terms, costs, drawn, diffusion.output)
        parts |= self._shares(total, rule_loss, diffusion.output) | self.weighting.records()
        for i, rule in enumerate(self.rules):
            parts[f"cost/{rule.name}"] = costs[:, i].mean().item()
            parts[f"scale/{rule.name}"] = self.memory.scale[i].item()
            parts[f"normalised/{rule.name}"] = normalised[:, i].mean().item()
        return total + rule_loss, parts | {"rules": rule_loss.item()}

    def _costs(self, diffusion: DiffusionLoss, batch: Scene) -> tuple[Tensor, Tensor]:
        """Costs (B * K, M) of the predicted clean plans in metres, and which draws count (B * K,)."""
        metres = TargetSpace(self.base.config, self.base.normaliser).to_metres(diffusion.estimate)
        plan = metres[:, 0, 1:]
        context = RuleContext.from_scene(batch, logged=True, horizon=plan.shape[1])
        context = context.repeat_interleave(len(plan) // len(batch))
        counted = (self.config.min_time <= diffusion.time) & (diffusion.time <= self.config.max_time)
        return rule_costs(plan, context, self.rules), counted

    def _compressed(self, costs: Tensor) -> Tensor:
        """(C, M) -> (C, M). A violation z costs about (z / sigma)^2, so this is the Cauchy loss of robust fitting: its
        pull is strongest at a small violation and fades for one that nothing can mend.
        """
        scale = self.memory.scale.clamp(*COMPRESSED_SCALES) if self.config.normalise else 1.0
        return torch.log1p(costs / scale)

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


def trained_in_words(model: nn.Module) -> str:
    """What learns and what does not."""
    learns = [(name, p.numel()) for name, p in model.named_parameters() if p.requires_grad]
    layers = {name.split(".lora_")[0] for name, _ in learns}
    frozen = sum(p.numel() for p in model.parameters() if not p.requires_grad)
    count = sum(size for _, size in learns)
    return f"training {len(learns)} tensors ({count:,} values) on {len(layers)} linear layers; {frozen:,} values frozen"


def train_align(
    config: AlignConfig,
    folder: RunFolder,
    base: DiffusionModel,
    samples: Samples,
    validation: Samples | None = None,
    scenarios: Sequence[Scenario] = (),
    stop_after: int | None = None,
    focus: Sequence[int] = (),
) -> Path:
    """Train the adapters, or go on, and write them to FOLDER/adapter in PEFT's own format; returns that path."""
    task = AlignTask(config, base, samples, validation, scenarios, focus)
    print(trained_in_words(task.model), file=sys.stderr)
    model = fit(task, config.loop, folder, stop_after)
    target = folder.path / "adapter"
    if not is_main_process():
        return target
    save_adapters(model, target)
    if config.weighting.conditioned:  # adapters alone do not hold the input for weights
        target = save_model(model.merge_and_unload(), folder.path / "model", folder.config, folder.config["commit"])  # type: ignore[operator]
    if config.rules:
        scales = {rule.name: float(task.memory.scale[i]) for i, rule in enumerate(task.rules)}
        folder.write_json("scales.json", scales)
    return target
