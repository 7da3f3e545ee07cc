"""Rules at run time instead of in training: the plan of the base, braked or hastened where it would meet somebody soon.

    python scripts/best_copy.py
    radp simulate --planner scripts/best_copy.py:BestCopy --scenarios sumo14-val --out runs/best-copy

The others go straight on, as far as the rules know. This is the policy that `radp train align --way ranked --copies
--contexts constant --urgent` learns, and what alignment should make unnecessary: it tries 40 copies in every cycle.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

import radp
from radp import Observation, Plan
from radp.planners.diffusion import reference_for
from radp.rules import RuleContext
from radp.rules.contact import avoidable
from radp.scene.builder import build_scenes
from radp.training.copies import copies_of, least_change


class BestCopy:
    """The own plan, or the copy that mends with the least change what comes within the time that it takes to stop."""

    def __init__(self, base: str = "diffusion-planner-mini", urgent: bool = True) -> None:
        self.planner, self.urgent = radp.load_planner(base), urgent
        self.name = f"{base}-best-copy"
        self.scenes = replace(self.planner.scenes, rules=True)

    @torch.no_grad()
    def plan(self, observation: Observation) -> Plan:
        scene = build_scenes(observation, self.scenes)
        plan = self.planner.plan_scene(scene, observation.seeds)
        driven = self.mended(plan.trajectory, avoidable(RuleContext.from_scene(scene)))
        look = self.planner.model.config.reference_s
        return replace(plan, trajectory=driven, reference=reference_for(driven, scene, look))

    def mended(self, own: torch.Tensor, context: RuleContext) -> torch.Tensor:
        """Plans (B, H, 4) -> the same, or copies."""
        copies = copies_of(own)
        choice = least_change(own, copies, [context], self.urgent)
        best = copies[torch.arange(len(own)), choice.clamp(min=0)]
        return torch.where((choice >= 0)[:, None, None], best, own)


if __name__ == "__main__":
    worlds = radp.open_split("sumo14-val@every-40")
    for planner in (BestCopy(), radp.load_planner("diffusion-planner-mini")):
        scores = [result.score for result in radp.score(radp.simulate(planner, worlds, agents="reactive"))]
        print(f"{planner.name:36s} {100 * np.mean(scores):5.1f}")
