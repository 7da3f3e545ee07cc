"""Tables of planners: values by scenario, intervals, paired differences."""

from __future__ import annotations

import json

import numpy as np
import pytest

from radp.evaluation.closed_loop import CARDS
from radp.evaluation.intervals import macro_of, mean_of, paired_difference
from radp.evaluation.planners import COLUMNS, Row, compare, footnote, read_values, table
from radp.metrics.score import METRICS
from radp.scenario.store import ScenarioWriter
from radp.sources.synthetic import make_scenario


def row(planner: str, score: np.ndarray) -> Row:
    return Row("split", "reactive", planner, dict.fromkeys(COLUMNS, score))


def test_cards_are_paired_by_token_and_missing_values_stay_missing(tmp_path):
    cards = [
        {"token": "b", "score": 0.5, "metrics": {m: {"value": None} for m in METRICS}},
        {"token": "a", "score": 1.0, "metrics": {m: {"value": 1.0} for m in METRICS}},
    ]
    (tmp_path / CARDS).write_text("".join(json.dumps(card) + "\n" for card in cards))
    values = read_values(tmp_path)
    assert values["score"].tolist() == [1.0, 0.5]
    assert np.isnan(values[METRICS[0]][1])


def test_a_clear_difference_is_told_and_noise_is_called_noise():
    draw = np.random.default_rng(0)
    base = draw.random(200)
    better, same = np.clip(base + 0.1, 0, 2), base + draw.normal(0, 0.2, 200)
    text = table([row("base", base), row("better", better), row("same", same)], base="base")
    lines = text.splitlines()
    assert "+10.0 [+10.0, +10.0]" in lines[4] and "no difference shown" not in lines[4]
    assert "no difference shown" in lines[6]


def test_intervals_cover_the_mean_as_often_as_they_say():
    draw = np.random.default_rng(1)
    hits = [(e := mean_of(draw.normal(2.0, 1.0, 60), resamples=400)).low <= 2.0 <= e.high for _ in range(300)]
    assert 0.89 <= np.mean(hits) <= 0.99


def test_pairing_is_sharper_than_two_samples():
    draw = np.random.default_rng(2)
    base = draw.random(100)
    paired = paired_difference(base + 0.01, base)
    assert paired.excludes_zero and paired.value == pytest.approx(0.01)


def test_egos_of_one_log_are_drawn_together():
    draw = np.random.default_rng(3)
    by_log = np.repeat(draw.random(40), 10)  # ten egos that fare alike
    logs = np.repeat(np.arange(40), 10).astype(str)
    alone, together = mean_of(by_log), mean_of(by_log, groups=logs)
    assert together.value == alone.value and together.count == 400
    width = (together.high - together.low) / (alone.high - alone.low)
    assert width == pytest.approx(np.sqrt(10), rel=0.1)
    names = np.array([f"log{i:03d}" for i in range(400)])
    each = mean_of(by_log, groups=names)  # one ego each: nothing changes
    assert (each.low, each.high) == pytest.approx((alone.low, alone.high), abs=1e-12)


def test_macro_leaves_out_what_is_missing():
    values = np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan], [0.0, 0.0, 0.0]])
    estimate = macro_of(values)
    assert estimate.value == pytest.approx(1.0) and estimate.low <= 1.0 <= estimate.high
    assert np.isnan(mean_of(np.array([np.nan])).value)


def test_compare_drives_and_tells(tmp_path):
    with ScenarioWriter(tmp_path / "store") as writer:
        writer.add(make_scenario(0, agents=4, turn="straight"))
    rows = compare(["log_replay", "constant_velocity"], [str(tmp_path / "store")], ["nonreactive"], tmp_path / "out")
    assert [r.planner for r in rows] == ["log_replay", "constant_velocity"]
    assert rows[0].estimate("score").value > 0.5
    assert "| store | nonreactive | log_replay |" in table(rows)
    seconds = (make_scenario(0, agents=4, turn="straight").frames - 2) / 10  # the last frame is not driven
    assert footnote(rows) == f"store: 1 drives, each {seconds:.1f} s long."
