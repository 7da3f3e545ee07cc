"""Weights of rules as an input: the same planner, asked for more comfort or for more progress.

    python examples/weights.py

Without an argument the input is new and not trained, so that all weights give the same plan. `radp train align
--conditioned --out runs/weighted` trains it; `python examples/weights.py runs/weighted/model` then shows other plans.
"""

from __future__ import annotations

import sys

import radp

RULES = ("collision", "lane", "speed", "kinematics", "comfort", "goal")
WISHES: tuple[dict[str, float], ...] = ({}, {"comfort": 4.0}, {"goal": 4.0}, {"collision": 4.0, "goal": 0.5})


def main(model: str = "diffusion-planner-mini") -> list[radp.Plan]:
    """The costs of the six rules under several weights; returns the plans."""
    planner = radp.load_planner(model).with_weight_input(RULES)  # a planner that has the input stays as it is
    now, plans = radp.observe(radp.open_split("sumo14-val")[:1], step=20), []
    for weights in WISHES:
        plans.append(planner.plan(now, weights=weights))
        why = radp.attribute(plans[-1], now)
        said = ", ".join(f"{rule} {cost:.3f}" for rule, cost in zip(why.rules, why.cost[0].tolist()))
        print(f"{weights or 'default'}: {said}")
    return plans


if __name__ == "__main__":
    main(*sys.argv[1:2])
