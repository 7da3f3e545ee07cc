"""Weights of rules as an input: the same planner, asked for more comfort or more progress.

    python examples/weights.py

Without an argument the input is new and not trained, so that all weights give the same plan. `radp train align
--conditioned` trains it; then `python examples/weights.py runs/weighted/model` shows plans that differ.
"""

from __future__ import annotations

import sys

import torch

import radp
from radp.model.paths import model_path
from radp.model.rule_weights import conditioned
from radp.planners.diffusion import DiffusionPlanner
from radp.planners.learned import load_planner_model
from radp.rules import RuleContext, default_rules, rule_costs
from radp.scene.builder import build_scenes

WISHES: tuple[dict[str, float], ...] = ({}, {"comfort": 4.0}, {"goal": 4.0}, {"collision": 4.0, "goal": 0.5})


def main(model: str = "diffusion-planner-mini") -> list[torch.Tensor]:
    """The costs of the six rules under several weights; returns the plans."""
    rules = [rule.name for rule in default_rules()]
    planner = DiffusionPlanner(conditioned(load_planner_model(model_path(model)), rules), model)
    now = radp.observe(radp.open_split("sumo14-val")[:1], step=20)
    scene, plans = build_scenes(now, planner.scenes), []
    for weights in WISHES:
        plan = planner.plan(now, weights=weights).trajectory
        costs = rule_costs(plan, RuleContext.from_scene(scene))[0].tolist()
        said = ", ".join(f"{name} {cost:.3f}" for name, cost in zip(rules, costs))
        print(f"{weights or 'default'}: {said}; {plan[0, -1, 0]:.1f} m ahead after 8 s")
        plans.append(plan)
    return plans


if __name__ == "__main__":
    main(*sys.argv[1:2])
