"""The score card in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from radp.evaluation.endpoints import ENDPOINTS
from radp.metrics.card import score_card
from radp.metrics.score import METRICS, evaluate
from radp.report.viewer.words import RISKS, SHORT, TITLES, card_rows, harmless_rows, kind_words, margin_words
from radp.sim.rollout import Rollout, logged_agents
from tests.small_scenarios import small_scenario


def test_every_metric_and_risk_has_words() -> None:
    assert tuple(TITLES) == tuple(SHORT) == METRICS
    assert list(RISKS) == [endpoint.name for endpoint in ENDPOINTS]


def test_kinds_are_words() -> None:
    assert kind_words("starting_left_turn") == "Starting left turn"
    assert kind_words("") == ""


@pytest.mark.parametrize(
    ("margin", "unit", "words"),
    [
        (0.5, "m", ", 0.50 m to spare"),
        (-0.25, "m/s", ", 0.25 m/s beyond the bound"),
        (None, "m", ""),
        (-3.0, "m/s delta v", ""),
        (0.3, "ratio", ", 30 % to spare"),
    ],
)
def test_margins(margin: float | None, unit: str, words: str) -> None:
    assert margin_words({"margin": margin, "unit": unit}) == words


def test_card_of_a_crash_names_the_car_and_the_moment() -> None:
    scenario = small_scenario()
    count = scenario.frames - 1
    ego = scenario.ego[scenario.start : scenario.start + count].copy()
    ego[3:, 0] += 15.0  # into the car ahead
    window = slice(scenario.start, scenario.start + count)
    rollout = Rollout(scenario, scenario.time_us[window], ego, logged_agents(scenario, count))
    card = score_card(evaluate(rollout))
    rows = {row["name"]: row for row in card_rows(card)}
    assert list(rows) == list(METRICS)
    crash = rows["no_ego_at_fault_collisions"]
    assert crash["gate"] and crash["value"] == 0.0 and crash["cost"] == 1.0
    assert "(vehicle car)" in crash["moments"][0]["text"]
    assert crash["moments"][0]["frame"] == 3
    forgiven = {**card, "collisions": [{**c, "at_fault": False} for c in card["collisions"]]}
    assert "not at fault" in harmless_rows(forgiven)[0]["text"]
    assert harmless_rows(card) == []


def test_card_of_a_failed_drive_has_no_values() -> None:
    scenario = small_scenario()
    first = slice(scenario.start, scenario.start + 1)
    rollout = Rollout(scenario, scenario.time_us[first], scenario.ego[first], logged_agents(scenario, 1))
    rows = card_rows(score_card(evaluate(replace(rollout, failure="lost"))))
    assert [row["value"] for row in rows] == [None] * len(METRICS)
    assert not any(row["moments"] for row in rows)
