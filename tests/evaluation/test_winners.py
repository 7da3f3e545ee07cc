"""Who wins a scenario that the base fails: by score cards, and where two drives part."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from radp.evaluation.winners import TTC, Winner, failure_sample, first_apart, winners
from radp.metrics.score import METRICS
from radp.planners import load_planner
from radp.scenario.scenario import Ego
from radp.sim.settings import DriveOptions
from radp.sim.simulate import drive_batch
from radp.sources.synthetic import make_scenario

COLLISION = "no_ego_at_fault_collisions"


def card(token: str, score: float | None, at: float | None = None, failing: str = TTC, failure: str | None = None):
    """A score card whose metric `failing` fails at `at` seconds."""
    metrics = {name: {"value": 1.0, "moments": []} for name in METRICS}
    if at is not None:
        metrics[failing] = {"value": 0.0, "moments": [{"time": at + 1.0}, {"time": at}]}
    hits = [{"time": at, "at_fault": True}] if failing == COLLISION and at is not None else []
    return {"token": token, "score": score, "failure": failure, "metrics": metrics, "collisions": hits}


def test_the_first_moment_of_a_failure_counts_and_drives_without_one_have_none():
    assert failure_sample(card("a", 0.5, at=7.3)) == 73
    assert failure_sample(card("a", 0.0, at=4.0, failing=COLLISION)) == 40
    assert failure_sample(card("a", 1.0)) is None
    assert failure_sample(card("a", None)) is None
    assert failure_sample(card("a", 0.0, failure="planner died")) is None
    assert failure_sample(card("a", 0.8, at=3.0, failing="ego_is_comfortable")) is None


def test_the_best_clean_drive_wins_and_only_where_the_base_fails():
    base = [card("a", 0.0, 5.0, COLLISION), card("b", 1.0), card("c", 0.6, 9.0), card("d", 0.0, 2.0, COLLISION)]
    first = [card("a", 0.8), card("b", 1.0), card("c", 0.65)]  # c: hardly better; d: not driven
    second = [card("a", 0.95), card("c", 0.9, at=3.0), card("d", 0.5, at=6.0)]  # c, d: not clean
    assert winners(base, [first, second]) == [Winner("a", 1, 50)]
    assert winners(base, [first]) == [Winner("a", 0, 50)]
    assert winners(base, [first, [card("a", 0.8)]]) == [Winner("a", 0, 50)]  # ties: who is named first


def test_drives_part_where_they_are_30_cm_apart():
    (drive,) = drive_batch(load_planner("log_replay"), [make_scenario(0, agents=2, frames=31)], DriveOptions())
    moved = drive.ego.copy()
    moved[12:, Ego.X] += np.linspace(0.2, 2.0, len(moved) - 12)
    assert first_apart(replace(drive, ego=moved), drive) == 13
    assert first_apart(drive, drive) == len(drive.ego) - 1
