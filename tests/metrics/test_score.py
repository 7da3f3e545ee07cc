"""Aggregation, drives without values, failures, and many drives at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from radp.bench.metrics import made_rollout
from radp.metrics.metric import NO_VALUE, Metric
from radp.metrics.score import METRICS, WEIGHTS, aggregate, evaluate, evaluate_many
from radp.scenario import ObjectType
from tests.made_roads import patches
from tests.metrics.made_drives import boxes, drive_on, patchwork_rollout, wandering_rollout

PERFECT = dict.fromkeys(METRICS, Metric(1.0))


def test_weights() -> None:
    assert aggregate(PERFECT) == 1.0
    for name, weight in WEIGHTS.items():
        assert aggregate({**PERFECT, name: Metric(0.25)}) == pytest.approx(1.0 - 0.75 * weight / 16.0)
    assert aggregate({**PERFECT, "drivable_area_compliance": Metric(0.0)}) == 0.0
    halves = {"driving_direction_compliance": Metric(0.5), "no_ego_at_fault_collisions": Metric(0.5)}
    assert aggregate({**PERFECT, **halves}) == 0.25


def test_metrics_without_value_are_left_out() -> None:
    without = {**PERFECT, "speed_limit_compliance": NO_VALUE, "ego_is_comfortable": Metric(0.0)}
    assert aggregate(without) == pytest.approx(10.0 / 12.0)
    assert aggregate({**PERFECT, "drivable_area_compliance": NO_VALUE}) == 1.0
    assert aggregate(dict.fromkeys(METRICS, NO_VALUE)) == 1.0


def test_empty_map_leaves_collisions_ttc_and_comfort() -> None:
    score = evaluate(drive_on(patches([]), np.zeros((10, 3))))
    valid = {name for name, metric in score.metrics.items() if metric.valid}
    assert valid == {"no_ego_at_fault_collisions", "time_to_collision_within_bound", "ego_is_comfortable"}
    assert score.score == 1.0


def test_one_sample() -> None:
    score = evaluate(wandering_rollout(1, samples=1))
    assert not score.metrics["ego_is_comfortable"].valid
    assert 0.0 <= score.score <= 1.0


def test_failed_planner_scores_zero() -> None:
    score = evaluate(replace(made_rollout(0), failure="planner returned NaN at 1.2 s"))
    assert score.score == 0.0
    assert score.failure == "planner returned NaN at 1.2 s"
    assert not any(metric.valid for metric in score.metrics.values())
    assert score.ego_route == []
    assert score.series == {}


def test_many_equal_one_by_one_whatever_the_threads() -> None:
    rollouts = [*(wandering_rollout(seed) for seed in range(5)), *(patchwork_rollout(seed) for seed in range(5))]
    alone = [evaluate(rollout) for rollout in rollouts]
    for threads in (1, 2, 4):
        together = evaluate_many(rollouts, threads=threads)
        assert [s.score for s in together] == [s.score for s in alone]
        for a, b in zip(alone, together):
            assert a.metrics == b.metrics
            assert a.collisions == b.collisions
            for name, values in a.series.items():
                np.testing.assert_array_equal(values, b.series[name])
    assert evaluate_many([]) == []


def test_read_only_arrays_are_scored() -> None:
    rollout = made_rollout(3)
    frozen = rollout.ego.copy()
    frozen.setflags(write=False)
    assert evaluate(replace(rollout, ego=frozen)).score == evaluate(rollout).score


@pytest.mark.parametrize(
    ("unknown", "known"),
    [
        ("map", {"ego_is_comfortable", "no_ego_at_fault_collisions"}),
        ("speed limits, expert", set(METRICS) - {"ego_is_making_progress", "ego_progress_along_expert_route"}),
    ],
)
def test_what_the_log_did_not_say_has_no_value(unknown: str, known: set[str]) -> None:
    far = (ObjectType.VEHICLE, 4.0, 2.0, np.array([1e4, 1e4, 0.0, 0.0, 0.0]))
    rollout = replace(made_rollout(0), agents=boxes(far, samples=len(made_rollout(0).ego)))
    plain = evaluate(rollout)
    score = evaluate(replace(rollout, scenario=replace(rollout.scenario, tags={"unknown": unknown})))
    assert {name for name, metric in score.metrics.items() if metric.valid} == known & {
        name for name, metric in plain.metrics.items() if metric.valid
    }
    assert all(score.metrics[name] == plain.metrics[name] for name in known)
    assert np.isnan(score.score) == (unknown == "map")


def test_a_failed_drive_has_no_series() -> None:
    rollout = made_rollout(0)
    driven, failed = evaluate(rollout), evaluate(replace(rollout, failure="lost"))
    assert driven.ttc.shape == driven.in_one_or_connected_lanes.shape == (len(rollout.ego),)
    assert failed.ttc.shape == failed.in_one_or_connected_lanes.shape == (0,)
    assert failed.in_one_or_connected_lanes.dtype == bool and failed.collisions == ()
