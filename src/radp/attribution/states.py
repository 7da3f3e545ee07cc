"""What a frozen planner has computed when its plan is ready, and what the teacher says about that plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from radp.attribution.calibration import Calibration
from radp.attribution.teacher import Attribution, attribute
from radp.model.geometry import plan_geometry
from radp.model.head import HeadInputs, head_inputs
from radp.model.network import DiffusionModel
from radp.model.sampler import PlanSample, noise_of_seeds, sample_plans
from radp.rules import Rule, RuleContext, rule_set, rules_named
from radp.runs.progress import Progress
from radp.scene.samples import Samples
from radp.scene.scene import Scene


def explain_samples(
    model: DiffusionModel,
    scene: Scene,
    calibration: Calibration | None,
    seeds: Sequence[int],
    rules: Sequence[Rule] | None = None,
) -> tuple[PlanSample, HeadInputs, Attribution]:
    """Plan B scenes with the noise of their seeds, and ask the teacher about the plans.

    `rules`: those of the calibration, if not given.
    """
    drawn = sample_plans(model, scene, noise=noise_of_seeds(seeds, model))
    joint = drawn.trajectories[:, 0]
    context = RuleContext.from_scene(scene, joint[:, 1:], horizon=joint.shape[2])
    if rules is None and calibration is not None:
        rules = rules_named(calibration.rules, calibration.rule_set)
    return drawn, head_inputs(drawn, scene), attribute(joint[:, 0], context, None, calibration, rules)


def compute_states(
    model: DiffusionModel, scene: Scene, calibration: Calibration, seeds: Sequence[int], geometry: Sequence[str] = ()
) -> dict[str, np.ndarray]:
    """Plan B scenes and ask the teacher; arrays (B, ...) as they stand in the cache, kinds of `geometry` among them."""
    drawn, state, why = explain_samples(model, scene, calibration, seeds)
    joint = drawn.trajectories[:, 0]
    return {
        "tokens": drawn.tokens[:, 0].numpy().astype(np.float16),
        "scene": state.scene.numpy().astype(np.float16),
        "padded": state.padded.numpy(),
        "features": state.features.numpy().astype(np.float32),
        "plan": joint[:, 0].numpy().astype(np.float32),
        "pressure": why.pressure.numpy().astype(np.float32),
        "cost": why.cost.numpy().astype(np.float32),
        **{f"geometry_{kind}": plan_geometry(kind, joint[:, 0], scene, joint[:, 1:]).numpy() for kind in geometry},
    }


def fit_calibration(
    model: DiffusionModel,
    samples: Samples,
    rows: np.ndarray,
    batch: int,
    seed: int,
    rules: str,
    about: dict[str, Any],
) -> Calibration:
    """kappa of a rule set from the planner's own plans for the samples `rows` of the training split."""
    gradients, judges = [], rule_set(rules)
    with Progress("samples planned", len(rows)) as progress:
        for first in range(0, len(rows), batch):
            chosen = rows[first : first + batch]
            seeds = sample_seeds(seed, first, len(chosen))
            _, _, why = explain_samples(model, samples.read(chosen), None, seeds, judges)
            gradients.append(why.gradient_norm.numpy())
            progress.advance(len(chosen))
    return Calibration.fit(gradients, why.rules, about, rules)


def sample_seeds(seed: int, position: int, count: int) -> list[int]:
    """Seeds of the planner's noise for `count` samples from `position` on."""
    return [int(s) >> 1 for s in np.random.SeedSequence([seed, position]).generate_state(count, np.uint64)]
