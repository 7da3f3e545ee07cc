"""Rules at run time instead of in training: of eight own plans, drive the one that the rules like best.

    python scripts/best_of_eight.py
    radp simulate --planner scripts/best_of_eight.py:BestOfEight --scenarios sumo14-val --out runs/best-of-eight

This is what alignment should make unnecessary: it costs eight plans and six rules in every cycle.
"""

from __future__ import annotations

import numpy as np
import torch

import radp
from radp import Observation, Plan
from radp.model.sampler import noise_of_seeds, sample_plans
from radp.planners.diffusion import reference_for
from radp.rules import RuleContext, rule_costs, rule_set
from radp.rules.contact import MARGIN, WITHIN, avoidable, first_contact
from radp.scene.builder import build_scenes

USUAL = 10.0  # a cost of this size counts as log 2


class BestOfEight:
    """Plans that come near nobody within 4 s go first, then the smallest sum of w log(1 + J / 10) decides.

    The others move straight on at their speed, as far as the rules know.
    """

    def __init__(self, base: str = "diffusion-planner-mini", plans: int = 8) -> None:
        self.planner, self.plans = radp.load_planner(base), plans
        self.name = f"{base}-best-of-{plans}"
        self.rules = rule_set("avoid")
        self.weights = torch.tensor([rule.weight for rule in self.rules])

    @torch.no_grad()
    def plan(self, observation: Observation) -> Plan:
        model = self.planner.model
        scene = build_scenes(observation, self.planner.scenes)
        noise = noise_of_seeds([int(seed) >> 1 for seed in observation.seeds], model, self.plans)
        drawn = sample_plans(model, scene, noise=noise).trajectories[:, :, 0]  # (B, K, H, 4)
        best = self.best(drawn, avoidable(RuleContext.from_scene(scene, logged=False)))
        chosen = drawn[torch.arange(len(drawn)), best]
        return Plan(chosen, reference=reference_for(chosen, scene, model.config.reference_s))

    def best(self, drawn: torch.Tensor, context: RuleContext) -> torch.Tensor:
        """(B, K, H, 4) -> (B,)."""
        plans, each = drawn.flatten(0, 1), context.repeat_interleave(drawn.shape[1])
        cost = (torch.log1p(rule_costs(plans, each, self.rules) / USUAL) * self.weights).sum(-1)
        meets = first_contact(plans, each, MARGIN) <= WITHIN
        return (cost + 1e6 * meets).view(drawn.shape[:2]).argmin(1)


if __name__ == "__main__":
    worlds = radp.open_split("sumo14-val@every-40")
    for planner in (BestOfEight(), radp.load_planner("diffusion-planner-mini")):
        scores = [result.score for result in radp.score(radp.simulate(planner, worlds, agents="reactive"))]
        print(f"{planner.name:36s} {100 * np.mean(scores):5.1f}")
