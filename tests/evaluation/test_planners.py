"""Tables of planners: values by scenario, intervals, paired differences."""

from __future__ import annotations

import json

import numpy as np

from radp.evaluation.closed_loop import CARDS
from radp.evaluation.planners import COLUMNS, Row, compare, footnote, table
from radp.metrics.score import METRICS
from radp.scenario.store import ScenarioWriter
from radp.sources.synthetic import make_scenario


def row(planner: str, score: np.ndarray) -> Row:
    return Row("split", "reactive", planner, dict.fromkeys(COLUMNS, score))


def test_cards_are_paired_by_token_and_missing_values_stay_missing(tmp_path):
    cards = [
        {"token": "b", "score": 0.5, "seconds": None, "metrics": {m: {"value": None} for m in METRICS}},
        {"token": "a:3", "score": 1.0, "seconds": 9.0, "metrics": {m: {"value": 1.0} for m in METRICS}},
    ]
    (tmp_path / CARDS).write_text("".join(json.dumps(card) + "\n" for card in cards))
    found = Row.read(tmp_path, "split", "reactive", "planner")
    values = found.values
    assert found.logs.tolist() == ["a", "b"] and values["score"].tolist() == [1.0, 0.5]
    assert np.isnan(values[METRICS[0]][1])


def test_a_clear_difference_is_told_and_noise_is_called_noise():
    draw = np.random.default_rng(0)
    base = draw.random(200)
    better, same = np.clip(base + 0.1, 0, 2), base + draw.normal(0, 0.2, 200)
    text = table([row("base", base), row("better", better), row("same", same)], base="base")
    lines = text.splitlines()
    assert "+10.0 [+10.0, +10.0]" in lines[4] and "no difference shown" not in lines[4]
    assert "no difference shown" in lines[6]


def test_compare_drives_and_tells(tmp_path):
    with ScenarioWriter(tmp_path / "store") as writer:
        writer.add(make_scenario(0, agents=4, turn="straight"))
    rows = compare(["log_replay", "constant_velocity"], [str(tmp_path / "store")], ["nonreactive"], tmp_path / "out")
    assert [r.planner for r in rows] == ["log_replay", "constant_velocity"]
    assert rows[0].estimate("score").value > 0.5
    assert "| store | nonreactive | log_replay |" in table(rows)
    seconds = (make_scenario(0, agents=4, turn="straight").frames - 2) / 10  # the last frame is not driven
    assert footnote(rows) == f"store: 1 drives, each {seconds:.1f} s long."
