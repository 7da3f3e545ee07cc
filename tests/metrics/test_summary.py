"""The summary: means, counts and bootstrap intervals against references."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from scipy.stats import bootstrap

from radp.metrics.score import METRICS
from radp.metrics.summary import bootstrap_interval, summarise, summary_text
from radp.version import __version__


def card(token: str, kind: str, score: float, value: float | None = 1.0, failure: str | None = None) -> dict[str, Any]:
    metrics = {name: {"value": value} for name in METRICS}
    return {"token": token, "kind": kind, "score": score, "failure": failure, "metrics": metrics}


CARDS = [card("a", "left", 1.0), card("b", "left", 0.5, 0.5), card("c", "right", 0.8, None),
         card("d", "right", 0.0, None, failure="planner raised ValueError")]  # fmt: skip


def test_means_counts_and_kinds() -> None:
    summary = summarise(CARDS, seed=3)
    assert summary["score"]["mean"] == pytest.approx(0.575)
    assert summary["scenarios"] == 4
    assert summary["failed"] == 1
    assert summary["seed"] == 3
    assert summary["version"] == __version__
    assert summary["failures"] == [{"token": "d", "reason": "planner raised ValueError"}]
    progress = summary["metrics"]["ego_progress_along_expert_route"]
    assert (progress["mean"], progress["count"]) == (0.75, 2)
    assert summary["kinds"]["left"]["score"]["mean"] == 0.75
    assert summary["kinds"]["right"]["metrics"]["ego_is_comfortable"] == {
        "mean": None, "low": None, "high": None, "count": 0,
    }  # fmt: skip
    assert summary["kinds"]["right"]["failed"] == 1
    json.loads(json.dumps(summary, allow_nan=False))
    assert "planner raised ValueError" in summary_text(summary)


def test_interval_equals_scipy_within_chance() -> None:
    values = np.random.default_rng(1).beta(4.0, 1.0, size=(200, 1))
    low, high = bootstrap_interval(values)
    expected = bootstrap(
        (values[:, 0],), np.mean, n_resamples=10_000, method="percentile", rng=np.random.default_rng(2)
    ).confidence_interval
    assert low[0] == pytest.approx(expected.low, abs=2e-3)
    assert high[0] == pytest.approx(expected.high, abs=2e-3)


def test_interval_is_repeatable_and_knows_missing_values() -> None:
    random = np.random.default_rng(5)
    values = random.random((50, 3))
    values[random.random((50, 3)) < 0.3] = np.nan
    values[:, 2] = np.nan
    first, second = bootstrap_interval(values), bootstrap_interval(values)
    np.testing.assert_array_equal(first, second)
    means = np.nanmean(values[:, :2], axis=0)
    assert (first[0][:2] < means).all()
    assert (first[1][:2] > means).all()
    assert np.isnan(first[0][2])
    assert not np.array_equal(bootstrap_interval(values, seed=1)[0], first[0], equal_nan=True)


def test_order_of_other_columns_does_not_matter() -> None:
    """All columns share the draws, so a column's interval does not depend on its neighbours."""
    values = np.random.default_rng(6).random((40, 2))
    both, alone = bootstrap_interval(values), bootstrap_interval(values[:, :1])
    np.testing.assert_allclose([both[0][0], both[1][0]], [alone[0][0], alone[1][0]], atol=1e-12)


def test_coverage_of_the_true_mean() -> None:
    """About 95 of 100 intervals hold the true mean (binomial: fewer than 85 has a chance below 1e-4)."""
    random = np.random.default_rng(7)
    held = 0
    for _ in range(100):
        low, high = bootstrap_interval(random.random((60, 1)), resamples=1000)
        held += low[0] <= 0.5 <= high[0]
    assert held >= 85


def test_one_drive_and_none() -> None:
    one = summarise(CARDS[:1])
    assert one["score"] == {"mean": 1.0, "low": 1.0, "high": 1.0, "count": 1}
    none = summarise([])
    assert none["scenarios"] == 0
    assert none["score"]["mean"] is None
    assert "0 drives" in summary_text(none)
