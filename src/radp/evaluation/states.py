"""Avoidance or caution? What alignment did to the plans of held-out states, before anything is driven.

On focus states, where the base planner's plan meets somebody or leaves the road, plans should meet nobody; on ordinary
states they should stay where they are. A planner that is only more careful moves as much on the second kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from radp.evaluation.settings import StateWatch
from radp.model.sampler import noise_of_seeds
from radp.planners.diffusion import DiffusionPlanner
from radp.planners.learned import load_learned
from radp.rules import RuleContext
from radp.rules.contact import MARGIN, WITHIN, avoidable, first_contact, first_near_miss, first_off_road, time_to_stop
from radp.rules.motion import way_length
from radp.runs.errors import BadInput
from radp.runs.progress import Progress
from radp.scene.log_samples import LogSamples
from radp.scene.samples import Samples
from radp.scene.scene import XY
from radp.statistics.bootstrap import means_of
from radp.statistics.estimate import Estimate
from radp.training.data import open_samples
from radp.training.focus import Focus, find_focus
from radp.training.loop import step_seed
from radp.training.settings import FocusSearch

BATCH = 32  # states
MEASURES = ("overlap", "near", "near_miss", "off_road", "moved", "shorter")
NOISE = 17  # apart from the noise of the search: else all focus states would meet somebody by choice


@dataclass(frozen=True)
class StateRow:
    """One planner on one kind of states: the mean of each measure, and its difference to the base's."""

    planner: str
    kind: str  # focus or ordinary
    states: int
    drives: int
    means: dict[str, Estimate]
    differences: dict[str, Estimate]  # none of the base

    def to_json(self) -> dict[str, Any]:
        kept = {"planner": self.planner, "kind": self.kind, "states": self.states, "drives": self.drives}
        parts = {"means": self.means, "differences": self.differences}
        return kept | {name: {m: one.to_json() for m, one in part.items()} for name, part in parts.items()}


def watch_states(watch: StateWatch, data: Path | str, focus: Path | None = None) -> list[StateRow]:
    """All planners on the focus states and on ordinary states of the samples."""
    planners = [load_learned(name) for name in watch.planners]
    _check_alike(planners, watch.planners)
    samples = open_samples(data, replace(planners[0].scenes, rules=True), future=1)
    if focus is None:
        own = FocusSearch(
            within=WITHIN, margin=MARGIN, corners=True, own=True, contexts=watch.contexts, urgent=watch.urgent
        )
        chosen = find_focus(planners[0], samples, replace(own, samples=watch.states, seed=watch.seed))
    else:
        chosen = Focus.load(focus)
    rows = chosen.rows_in(samples)
    others = np.array(chosen.others(), dtype=np.int64)
    others = np.sort(np.random.default_rng([watch.seed, NOISE]).permutation(others)[: watch.ordinary])
    found = []
    for kind, places in (("focus", np.array(rows, dtype=np.int64)), ("ordinary", others)):
        if not len(places):
            raise BadInput(f"{data} holds no {kind} states of {watch.planners[0]}")
        values = state_values(planners, samples, places, watch)
        found += _rows(kind, values, _short(watch.planners), drives_of(samples, places))
    return found


@torch.no_grad()
def state_values(
    planners: Sequence[DiffusionPlanner], samples: Samples, places: np.ndarray, watch: StateWatch
) -> np.ndarray:
    """(planners, measures, states): means over the draws of each state; moved and shorter against the first planner."""
    parts = []
    with Progress("states planned", len(places)) as progress:
        for rows in np.split(places, range(BATCH, len(places), BATCH)):
            scene = samples.read(rows)
            context = avoidable(RuleContext.from_scene(scene, logged=watch.contexts == "executed"))
            context = context.repeat_interleave(watch.draws)
            seeds = [step_seed(watch.seed + NOISE, int(row), 0) for row in rows]
            noise = noise_of_seeds(seeds, planners[0].model, watch.draws)
            plans = [one.draw(scene, noise).trajectories[:, :, 0].flatten(0, 1) for one in planners]
            values = torch.stack([measures(plan, plans[0], context, watch.urgent) for plan in plans])
            parts.append(values.unflatten(-1, (len(rows), watch.draws)).mean(-1).numpy())
            progress.advance(len(rows))
    return np.concatenate(parts, -1).astype(np.float64)


def measures(plan: Tensor, base: Tensor, context: RuleContext, urgent: bool = False) -> Tensor:
    """Plans (C, H, 4) and those of the base -> (measures, C): overlap, within 0.3 m, a short time to collision, off
    the road, each within 4 s, or if only what is urgent counts, the first three within the time that it takes to stop;
    mean distance to the base's plan [m]; by how much the plan is shorter [m].
    """
    within = time_to_stop(context) if urgent else WITHIN
    return torch.stack(
        (
            (first_contact(plan, context) <= within).to(plan),
            (first_contact(plan, context, MARGIN) <= within).to(plan),
            (first_near_miss(plan, context) <= within).to(plan),
            (first_off_road(plan, context) <= WITHIN).to(plan),
            (plan - base)[..., XY].norm(dim=-1).mean(-1),
            way_length(base) - way_length(plan),
        )
    )


def _rows(kind: str, values: np.ndarray, names: Sequence[str], drives: np.ndarray) -> list[StateRow]:
    rows = []
    for i, name in enumerate(names):
        means = dict(zip(MEASURES, means_of(values[i], groups=drives)))
        differences = dict(zip(MEASURES, means_of(values[i] - values[0], groups=drives))) if i else {}
        rows.append(StateRow(name, kind, values.shape[-1], len(np.unique(drives)), means, differences))
    return rows


def drives_of(samples: Samples, places: np.ndarray) -> np.ndarray:
    """(n,) the drive of each state; of samples that do not say, each is its own."""
    return samples.log[places] if isinstance(samples, LogSamples) else places


def _short(names: Sequence[str]) -> list[str]:
    """The last part of each, or the whole where two have the same."""
    last = [Path(name).name for name in names]
    return [short if last.count(short) == 1 else name for short, name in zip(last, names)]


def _check_alike(planners: Sequence[DiffusionPlanner], names: Sequence[str]) -> None:
    """Planners of one size: they must read the same scenes and take the same noise."""
    if len(planners) < 2:
        raise BadInput("name the base planner and at least one other")
    for planner, name in zip(planners, names):
        same = (planner.model.config.predicted, planner.model.config.horizon, replace(planner.scenes, rules=True))
        first = planners[0]
        if same != (first.model.config.predicted, first.model.config.horizon, replace(first.scenes, rules=True)):
            raise BadInput(f"{name} has another size than {names[0]}, so that their plans cannot have the same noise")
