"""Weights of rules as an input: the same planner, asked for more comfort or for more progress.

    python examples/weights.py

radp-mini-weights listens to weights; all 1 is the default. Another planner that was trained with
`radp train align --conditioned` can be named as an argument.
"""

from __future__ import annotations

import sys

import radp

WISHES: tuple[dict[str, float], ...] = ({}, {"comfort": 4.0}, {"goal": 4.0}, {"collision": 4.0, "goal": 0.5})


def main(model: str = "radp-mini-weights") -> list[radp.Plan]:
    """The costs of the six rules under several weights; returns the plans."""
    planner = radp.load_planner(model)
    now, plans = radp.observe(radp.open_split("sumo14-val")[:1], step=20), []
    for weights in WISHES:
        plans.append(planner.plan(now, weights=weights))
        why = radp.attribute(plans[-1], now)
        said = ", ".join(f"{rule} {cost:.3f}" for rule, cost in zip(why.rules, why.cost[0].tolist()))
        print(f"{weights or 'default'}: {said}")
    return plans


if __name__ == "__main__":
    main(*sys.argv[1:2])
