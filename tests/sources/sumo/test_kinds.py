from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from radp.sources.sumo.kinds import CHANGE_LEAD, KINDS, EgoSeries, find_kinds, tags
from radp.sources.sumo.surroundings import Surroundings

N = 60


def quiet_drive(**changes: np.ndarray) -> EgoSeries:
    """5 m/s on lane 0, nobody around."""
    zeros, none = np.zeros(N), np.zeros(N, dtype=bool)
    around = Surroundings(np.full(N, np.inf), zeros, zeros, zeros, zeros, zeros, np.full(N, np.inf))
    drive = EgoSeries(np.full(N, 5.0), zeros, zeros, np.zeros(N, dtype=int), np.full(N, ""), none, none, none, around)
    return replace(drive, **changes)


def around(**changes: float) -> Surroundings:
    values = {"lead_gap": np.inf, "person_gap": np.inf} | changes
    names = ("lead_gap", "lead_lateral", "lead_speed", "lead_length", "near", "near_moving", "person_gap")
    return Surroundings(*(np.full(N, float(values.get(name, 0.0))) for name in names))


def entering(letter: str) -> dict[str, np.ndarray]:
    on_connector = np.arange(N) >= 30
    return {"lane": np.where(on_connector, 7, 0), "turn": np.where(on_connector, letter, "")}


TRUE = np.ones(N, dtype=bool)
CASES = {
    "starting_left_turn": quiet_drive(**entering("l")),
    "starting_right_turn": quiet_drive(**entering("r")),
    "starting_straight_traffic_light_intersection_traversal": quiet_drive(**entering("s"), signal=np.arange(N) >= 30),
    "stopping_with_lead": quiet_drive(speed=np.full(N, 1.0), accel=np.full(N, -1.0), around=around(lead_gap=4.0)),
    "high_lateral_acceleration": quiet_drive(lateral=np.full(N, -2.0)),
    "high_magnitude_speed": quiet_drive(speed=np.full(N, 10.0)),
    "low_magnitude_speed": quiet_drive(speed=np.full(N, 0.8)),
    "traversing_pickup_dropoff": quiet_drive(in_kerb_area=TRUE),
    "waiting_for_pedestrian_to_cross": quiet_drive(speed=np.full(N, 2.0), around=around(person_gap=6.0)),
    "behind_long_vehicle": quiet_drive(around=around(lead_gap=6.0, lead_length=10.0, lead_speed=2.0)),
    "stationary_in_traffic": quiet_drive(speed=np.zeros(N), around=around(near=8)),
    "near_multiple_vehicles": quiet_drive(around=around(near=6, near_moving=5)),
    "changing_lane": quiet_drive(beside=np.arange(N) == 40),
    "following_lane_with_lead": quiet_drive(around=around(lead_gap=7.0, lead_speed=5.0, lead_length=4.5)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_rule_finds_its_drive_and_no_other_does(kind: str) -> None:
    found = {name for name, mask in find_kinds(CASES[kind]).items() if mask.any()}
    assert found == {kind}


def test_a_quiet_drive_has_no_kind() -> None:
    assert not any(mask.any() for mask in find_kinds(quiet_drive()).values())


def test_when_turns_and_lane_changes_are_tagged() -> None:
    assert np.flatnonzero(find_kinds(CASES["starting_left_turn"])["starting_left_turn"]).tolist() == [30]
    assert np.flatnonzero(find_kinds(CASES["changing_lane"])["changing_lane"]).tolist() == [40 - CHANGE_LEAD]


def test_lateral_acceleration_of_a_turn_does_not_count() -> None:
    turning = quiet_drive(lateral=np.full(N, 2.0), turn=np.where(np.arange(N) < 20, "l", ""))
    mask = find_kinds(turning)["high_lateral_acceleration"]
    assert not mask[:34].any() and mask[35:].all()


def test_tags_take_one_frame_per_run() -> None:
    mask = np.array([0, 1, 1, 0, 0, 1, 1, 1, 0, 1], dtype=bool)
    assert tags(mask, True, np.random.default_rng(0)) == [1, 5, 9]
    drawn = tags(mask, False, np.random.default_rng(0))
    assert drawn[0] in (1, 2) and drawn[1] in (5, 6, 7) and drawn[2] == 9
