"""Smooth costs against exact verdicts: on made numbers by loop, and on real drives, where the table is printed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from radp.evaluation.verdicts import HEADER, agreement, agreements, costs_and_verdicts
from radp.planners import load_planner
from radp.rules import rule_set
from radp.scenario.splits import open_split
from radp.scene.builder import RULE_SCENES, RULES_ALONE, build_scenes
from radp.sim.observation import Observation
from radp.sim.plan import Plan
from radp.sim.replay import observe_logs
from radp.sim.simulate import simulate
from radp.zoo import list_splits

# Contact against clearance, and progress against progress and offset: what the verdict asks is not all that costs.
LEAST = {"collision": (0.85, 0.85), "goal": (0.85, 0.92)}


def test_order_and_agreement_by_loop():
    draw = np.random.default_rng(0)
    broken = draw.random(60) < 0.4
    cost = (draw.random(60) + 0.5 * broken).round(1)  # with ties
    pairs = [(a > b) + 0.5 * (a == b) for a in cost[broken] for b in cost[~broken]]
    best = max(float(((cost >= cut) == broken).mean()) for cut in [*cost, np.inf])
    found = agreement("x", cost, broken)
    assert found.order == pytest.approx(np.mean(pairs)) and found.best == pytest.approx(best)
    assert found.order == pytest.approx(roc_auc_score(broken, cost), abs=1e-12)
    assert found.broken == pytest.approx(broken.mean())
    assert np.isnan(agreement("x", cost, np.zeros(60, bool)).order)


class Judged:
    """Drives as its planner does; every tenth plan is judged by the rules."""

    def __init__(self, name: str) -> None:
        self.planner, self.name = load_planner(name), name
        self.pieces: list[tuple[np.ndarray, np.ndarray]] = []

    def start(self, scenarios) -> None:
        getattr(self.planner, "start", lambda _: None)(scenarios)

    def plan(self, observation: Observation) -> Plan:
        plan = self.planner.plan(observation)
        if observation.step % 10 == 0:
            scene = build_scenes(observation, RULE_SCENES)
            self.pieces.append(costs_and_verdicts(plan.on_grid().to(torch.float32), scene))
        return plan


@pytest.mark.slow
@pytest.mark.skipif("sumo14-val" not in list_splits(), reason="skipped: sumo14-val is not packaged")
def test_on_real_drives_what_is_broken_costs_more(capsys):
    split = open_split("sumo14-val")
    scenarios = [split[i] for i in np.linspace(0, len(split) - 1, 28).round().astype(int)]
    judged = [Judged(name) for name in ("idm", "constant_velocity")]
    for planner in judged:
        assert all(rollout.failure is None for rollout in simulate(planner, scenarios, batch=28))
    rows = agreements(piece for planner in judged for piece in planner.pieces)
    with capsys.disabled():
        print("\n" + "\n".join([HEADER, *(row.row() for row in rows)]))
    for row in rows:
        order, best = LEAST.get(row.rule, (0.99, 0.98))
        assert row.plans > 500
        assert np.isnan(row.order) or row.order > order, row
        assert row.best > best, row


@pytest.mark.slow
@pytest.mark.skipif("sumo14-val" not in list_splits(), reason="skipped: sumo14-val is not packaged")
def test_at_moments_of_logs_what_breaks_a_rule_of_the_road_costs_more(capsys):
    split, rules = open_split("sumo14-val"), rule_set("road")[6:]
    scenarios = [split[i] for i in np.linspace(0, len(split) - 1, 28).round().astype(int)]
    pieces = []
    for step in (10, 40, 70, 100):
        now = observe_logs(scenarios, step)
        scene = build_scenes(now, replace(RULES_ALONE, road=True))
        for name in ("idm", "constant_velocity"):
            plan = load_planner(name).plan(now).on_grid().to(torch.float32)
            pieces.append(costs_and_verdicts(plan, scene, rules))
    rows = agreements(pieces, rules)
    with capsys.disabled():
        print("\n" + "\n".join([HEADER, *(row.row() for row in rows)]))
    for row in rows:
        assert row.plans == 224
        assert np.isnan(row.order) or row.order > 0.8, row
