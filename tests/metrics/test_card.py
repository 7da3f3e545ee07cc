"""The score card: costs add up, and the moments name time, object and margin."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from radp.bench.metrics import made_rollout
from radp.metrics.card import card_text, score_card
from radp.metrics.score import METRICS, evaluate
from radp.scenario import ObjectType
from tests.made_roads import box_lane, patches
from tests.metrics.made_drives import boxes, drive_on, patchwork_rollout, wandering_rollout

ROAD = patches([box_lane("A", (-50, 200, -2, 2), limit=8.0)], drivable=((-50, 200, -2, 2),))


@pytest.mark.parametrize("seed", range(12))
def test_costs_add_up_to_what_is_missing(seed: int) -> None:
    for made in (wandering_rollout, patchwork_rollout, made_rollout):
        score = evaluate(made(seed))
        card = score_card(score)
        costs = [entry["cost"] for entry in card["metrics"].values()]
        assert sum(costs) == pytest.approx(1.0 - score.score, abs=1e-12)
        assert min(costs) >= 0.0
        for name, entry in card["metrics"].items():
            assert (entry["cost"] > 0.0) <= (entry["value"] < 1.0), name
            assert 0.0 <= entry["gain"] <= 1.0 - score.score + 1e-12
        json.loads(json.dumps(card, allow_nan=False))
        assert card_text(card).startswith(score.token)


def test_moments_of_a_collision() -> None:
    poses = np.stack([np.arange(40.0), np.zeros(40), np.zeros(40)], axis=1)
    tracks = boxes((ObjectType.VEHICLE, 4.0, 2.0, np.array([20.0, 0, 0, 0, 0])), samples=40)
    card = score_card(evaluate(drive_on(ROAD, poses, speed=10.0, tracks=tracks)))
    gate = card["metrics"]["no_ego_at_fault_collisions"]
    assert gate["cost"] == 1.0
    (moment,) = gate["moments"]
    assert (moment["frame"], moment["time"], moment["track"], moment["object"]) == (16, 1.6, "t0", "VEHICLE")
    assert moment["margin"] == pytest.approx(-5.0)
    ttc = card["metrics"]["time_to_collision_within_bound"]
    assert ttc["cost"] == 0.0  # the gate has taken everything
    assert ttc["gain"] == 0.0
    assert ttc["moments"][0]["track"] == "t0"
    assert ttc["moments"][0]["margin"] == pytest.approx(-0.95)
    speed = card["metrics"]["speed_limit_compliance"]["moments"][0]
    assert speed["margin"] == pytest.approx(-2.0)
    text = card_text(card)
    assert "1.6 s  stopped track collision at 10.00 m/s with VEHICLE t0" in text


def test_moments_off_the_road_and_backwards() -> None:
    away = np.stack([np.full(20, 10.0), np.linspace(0.0, 4.0, 20), np.zeros(20)], axis=1)
    moment = score_card(evaluate(drive_on(ROAD, away)))["metrics"]["drivable_area_compliance"]["moments"][0]
    assert moment["frame"] == 19
    assert moment["margin"] == pytest.approx(0.3 - (4.0 + 2.297 / 2 - 2.0))
    back = np.stack([50.0 - 0.3 * np.arange(20), np.zeros(20), np.zeros(20)], axis=1)
    card = score_card(evaluate(drive_on(ROAD, back)))
    moment = card["metrics"]["driving_direction_compliance"]["moments"][0]
    assert moment["margin"] == pytest.approx(2.0 - 3.3)
    assert moment["time"] == pytest.approx(1.1)


def test_a_clean_drive_names_the_narrowest_margins() -> None:
    poses = np.stack([0.5 * np.arange(40.0), np.zeros(40), np.zeros(40)], axis=1)
    card = score_card(evaluate(drive_on(ROAD, poses, speed=5.0)))
    assert card["score"] == pytest.approx(1.0)
    assert card["metrics"]["no_ego_at_fault_collisions"]["moments"] == []
    assert card["metrics"]["speed_limit_compliance"]["moments"][0]["margin"] == pytest.approx(3.0)
    assert len(card["metrics"]["ego_is_comfortable"]["moments"]) == 1


def test_failed_drive() -> None:
    card = score_card(evaluate(replace(made_rollout(0), failure="plan has NaN")))
    assert card["score"] == 0.0
    assert {entry["value"] for entry in card["metrics"].values()} == {None}
    assert "plan has NaN" in card_text(card)


def test_metrics_without_value_say_so() -> None:
    card = score_card(evaluate(drive_on(patches([]), np.zeros((10, 3)))))
    assert card["metrics"]["speed_limit_compliance"]["value"] is None
    assert card["metrics"]["speed_limit_compliance"]["moments"] == []
    assert "n/a" in card_text(card)
    assert set(card["metrics"]) == set(METRICS)
