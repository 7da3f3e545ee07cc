"""Alignment: adapters on a frozen planner, or its decoder, learn the driving rules."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from torch import nn

from radp.model.adapters import save_adapters
from radp.model.checkpoint import save_model
from radp.model.network import DiffusionModel
from radp.runs.errors import BadInput
from radp.runs.folder import RunFolder
from radp.scenario import Scenario
from radp.scene.samples import Samples
from radp.training.align_task import AlignTask
from radp.training.anchored import AnchoredTask
from radp.training.loop import fit, is_main_process
from radp.training.settings import AlignConfig


def trained_in_words(model: nn.Module) -> str:
    """What learns and what does not."""
    learns = [(name, p.numel()) for name, p in model.named_parameters() if p.requires_grad]
    layers = {name.split(".lora_")[0].removesuffix(".weight").removesuffix(".bias") for name, _ in learns}
    frozen = sum(p.numel() for p in model.parameters() if not p.requires_grad)
    count = sum(size for _, size in learns)
    kind = "linear" if any(".lora_" in name for name, _ in learns) else "decoder"
    return f"training {len(learns)} tensors ({count:,} values) on {len(layers)} {kind} layers; {frozen:,} values frozen"


def check_way(config: AlignConfig, steps: int | None = None) -> None:
    """BadInput for settings that contradict each other or, if its steps are known, the base."""
    avoid = config.avoid
    if avoid.hold == "logs" and avoid.way != "x0":
        raise BadInput(f"--way {avoid.way} needs --hold base: there is no log at the end of an own chain")
    if avoid.way == "ranked" and (config.weighting.conditioned or config.weighting.tiers):
        raise BadInput("--conditioned and --tiers weigh gradients of rules, --way ranked has none")
    if avoid.way == "pushed" and (not config.weighting.conditioned or config.weighting.around_default):
        raise BadInput("--way pushed needs --conditioned: weights, to both sides of the default, say how far to push")
    if avoid.way == "pushed" and config.weighting.tiers:
        raise BadInput("--tiers weighs gradients of rules, --way pushed has none")
    if avoid.copies and avoid.way != "ranked":
        raise BadInput("--copies needs --way ranked: a copy is learnt, it is not judged by gradients")
    if avoid.haste and not avoid.copies:
        raise BadInput("--haste needs --way ranked --copies: a faster copy of a plan is learnt")
    if avoid.trained == "weights" and not config.weighting.conditioned:
        raise BadInput("--trained weights needs --conditioned: else there is no input for weights")
    if config.weighting.around_default and not (config.weighting.conditioned and avoid.hold == "base"):
        raise BadInput(
            "--around-default needs --conditioned and --hold base: else nothing would say what the default is"
        )
    if config.start and avoid.trained != "adapters":
        raise BadInput(f"--start names adapters to go on from, and --trained {avoid.trained} has none")
    if avoid.encounters and (avoid.hold != "base" or avoid.contexts != "constant"):
        raise BadInput("--encounters needs --hold base and --contexts constant: nobody knows what would have happened")
    if not 0 <= avoid.slowed < 1 or (avoid.slowed and avoid.hold != "base"):
        raise BadInput("--slowed is a share of a batch below 1 and needs --hold base: no log began at another speed")
    if avoid.plans < 2:
        raise BadInput(f"plans is {avoid.plans}, expected at least 2 to choose from")
    if avoid.calls < 1 or (steps is not None and avoid.calls > steps):
        raise BadInput(f"calls is {avoid.calls}, expected {'at least 1' if steps is None else f'from 1 to {steps}'}")


def train_align(
    config: AlignConfig,
    folder: RunFolder,
    base: DiffusionModel,
    samples: Samples,
    validation: Samples | None = None,
    scenarios: Sequence[Scenario] = (),
    stop_after: int | None = None,
    focus: Sequence[int] = (),
    driven: Sequence[int] = (),
) -> Path:
    """Train, or go on, and write what learnt; returns that path.

    `driven` are those of `focus` that learn to go as their drives did. Adapters go to FOLDER/adapter in PEFT's own
    format, a whole decoder goes with its model to FOLDER/model.
    """
    if len(driven) and not config.avoid.copies:
        raise BadInput("a list made with --driven needs --way ranked --copies: a copy of a plan is learnt")
    if config.avoid.hold == "base":
        task: AlignTask = AnchoredTask(config, base, samples, validation, scenarios, focus, driven)
    else:
        task = AlignTask(config, base, samples, validation, scenarios, focus)
    print(trained_in_words(task.model), file=sys.stderr)
    model = fit(task, config.loop, folder, stop_after)
    adapters = config.avoid.trained == "adapters"
    target = folder.path / ("adapter" if adapters else "model")
    if not is_main_process():
        return target
    if adapters:
        save_adapters(model, target)
        if config.weighting.conditioned:  # adapters alone do not hold the input for weights
            whole = model.merge_and_unload()  # type: ignore[operator]  # a method of PEFT's
            target = save_model(whole, folder.path / "model", folder.config, folder.config["commit"])
    else:
        save_model(base, target, folder.config, folder.config["commit"])
    if config.rules:
        scales = {rule.name: float(task.memory.scale[i]) for i, rule in enumerate(task.rules)}
        folder.write_json("scales.json", scales)
    return target
