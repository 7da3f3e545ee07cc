"""Dose and response before anything is driven: plans of the same states at several weights of one rule at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from radp.evaluation.dose import DEFAULT, Verdict, doses_of, rules_of, verdict_of
from radp.evaluation.settings import DoseResponse
from radp.evaluation.states import drives_of
from radp.model.sampler import noise_of_seeds
from radp.planners.learned import load_learned
from radp.rules import RuleContext, rule_costs
from radp.rules.motion import way_length
from radp.rules.sets import ROAD_V2, needs_road, rules_named
from radp.runs.progress import Progress
from radp.scene.scene import XY
from radp.statistics.bootstrap import means_of
from radp.statistics.estimate import Estimate
from radp.training.data import open_samples
from radp.training.loop import step_seed

BATCH = 64  # states
NOISE = 19


@dataclass(frozen=True)
class StateResponse:
    """One rule on N states at D weights, the lowest first."""

    rule: str
    doses: tuple[float, ...]
    values: np.ndarray  # (D, 3, N): its cost, metres moved and metres longer than at the default
    drives: np.ndarray  # (N,) the drive of each state
    verdict: Verdict

    def means(self, dose: int) -> list[Estimate]:
        """Change of the cost against the default, metres moved, metres longer; intervals over drives."""
        change = self.values[dose].copy()
        change[0] -= self.values[self.doses.index(DEFAULT), 0]
        return means_of(change, groups=self.drives)

    def to_json(self) -> dict[str, Any]:
        names = ("cost", "moved", "longer")
        rows = [
            {"weight": dose, "cost": float(self.values[i, 0].mean()),
             "change": {name: one.to_json() for name, one in zip(names, self.means(i))}}
            for i, dose in enumerate(self.doses)
        ]  # fmt: skip
        return {"rule": self.rule, "verdict": self.verdict.word, "ends": self.verdict.ends.to_json(), "doses": rows}


@torch.no_grad()
def state_response(wanted: DoseResponse, data: Path, count: int) -> list[StateResponse]:
    """Plan up to `count` states of the samples at every weight of every rule, all with the same noise.

    Costs are those of the set v2, among the others as they really moved, with the goal that can be reached.
    """
    names, doses = rules_of(wanted), doses_of(wanted)
    planner, rules = load_learned(wanted.planner), rules_named(names, ROAD_V2)
    samples = open_samples(data, replace(planner.scenes, rules=True, road=needs_road(rules)), future=1)
    places = np.sort(np.random.default_rng([wanted.seed, NOISE]).permutation(len(samples))[:count])
    parts = []
    with Progress("states planned", len(places)) as progress:
        for rows in np.split(places, range(BATCH, len(places), BATCH)):
            scene = samples.read(rows)
            context = RuleContext.from_scene(scene, logged=True, reachable=True)
            noise = noise_of_seeds([step_seed(wanted.seed + NOISE, int(row), 0) for row in rows], planner.model, 1)
            usual = planner.draw(scene, noise).trajectories[:, 0, 0]
            made = torch.zeros(len(names), len(doses), 3, len(rows), dtype=torch.float64)
            for i, (name, rule) in enumerate(zip(names, rules)):
                for k, dose in enumerate(doses):
                    heavier = planner.with_weights({name: dose})
                    plan = usual if dose == DEFAULT else heavier.draw(scene, noise).trajectories[:, 0, 0]
                    made[i, k, 0] = rule_costs(plan, context, [rule])[:, 0]
                    made[i, k, 1] = (plan - usual)[..., XY].norm(dim=-1).mean(-1)
                    made[i, k, 2] = way_length(plan) - way_length(usual)
            parts.append(made.numpy())
            progress.advance(len(rows))
    values, drives = np.concatenate(parts, -1), drives_of(samples, places)
    return [
        StateResponse(name, doses, values[i], drives, verdict_of(values[i, :, 0], doses, drives))
        for i, name in enumerate(names)
    ]
