"""The summary: means, counts and intervals."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from radp.metrics.score import METRICS
from radp.metrics.summary import summarise, summary_text
from radp.statistics.bootstrap import mean_of
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
        "mean": None, "low": None, "high": None, "smallest_difference": None, "count": 0,
    }  # fmt: skip
    assert summary["kinds"]["right"]["failed"] == 1
    json.loads(json.dumps(summary, allow_nan=False))
    assert "planner raised ValueError" in summary_text(summary)


def test_intervals_are_those_of_every_table() -> None:
    draw = np.random.default_rng(1)
    cards = [card(f"{i:03d}", "left", value) for i, value in enumerate(draw.random(60))]
    expected = mean_of(np.array([c["score"] for c in cards]))
    for order in (cards, cards[::-1]):  # whatever order drives come in
        summary = summarise(order)
        assert (summary["score"]["low"], summary["score"]["high"]) == pytest.approx((expected.low, expected.high))
        assert summary["score"]["smallest_difference"] == pytest.approx(expected.smallest_difference)
        assert summary["bootstrap"]["over"] == "scenarios"
    assert "95% intervals over scenarios" in summary_text(summary)
    assert f"  d {100 * expected.smallest_difference:5.2f}\n" in summary_text(summary)


def test_egos_of_one_log_are_drawn_together() -> None:
    draw = np.random.default_rng(2)
    cards = [card(f"{i // 10}:{i}", "left", value) for i, value in enumerate(np.repeat(draw.random(30), 10))]
    summary = summarise(cards)
    expected = mean_of(np.array([c["score"] for c in cards]), groups=[c["token"].split(":")[0] for c in cards])
    alone = mean_of(np.array([c["score"] for c in cards]))
    width = summary["score"]["high"] - summary["score"]["low"]
    assert summary["bootstrap"]["over"] == "logs" and "intervals over logs" in summary_text(summary)
    assert width == pytest.approx(expected.high - expected.low, rel=0.1) and width > 2 * (alone.high - alone.low)


def test_one_drive_and_none() -> None:
    one = summarise(CARDS[:1])
    assert one["score"] == {"mean": 1.0, "low": 1.0, "high": 1.0, "smallest_difference": None, "count": 1}
    none = summarise([])
    assert none["scenarios"] == 0
    assert none["score"]["mean"] is None
    assert "0 drives" in summary_text(none)
