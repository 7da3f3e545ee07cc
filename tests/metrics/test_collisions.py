"""Collisions: type, fault and score on hand-made meetings."""

from __future__ import annotations

import numpy as np
import pytest

from radp.metrics.collisions import is_behind
from radp.metrics.score import ScenarioScore, evaluate
from radp.scenario import ObjectType
from tests.made_roads import box_lane, patches
from tests.metrics.made_drives import boxes, drive_on

WIDE = patches([box_lane("A", (-50, 200, -2, 2))])
TWO = patches([box_lane("A", (-50, 200, -2, 2)), box_lane("B", (-50, 200, 2, 6))])
CAR = (ObjectType.VEHICLE, 4.0, 2.0)


def ahead(samples: int = 40, y: float = 0.0, speed: float = 10.0) -> np.ndarray:
    """(S, 3) along +x."""
    x = np.arange(samples) * speed * 0.1
    return np.stack([x, np.full(samples, y), np.zeros(samples)], axis=1)


def moving(x: float, y: float, heading: float, speed: float, samples: int = 40) -> np.ndarray:
    t = np.arange(samples)[:, None] * 0.1
    v = speed * np.array([np.cos(heading), np.sin(heading)])
    return np.concatenate([[x, y] + t * v, np.full((samples, 1), heading), np.tile(v, (samples, 1))], axis=1)


def kinds(score: ScenarioScore) -> list[tuple[str, bool]]:
    return [(c.type.name, c.at_fault) for c in score.collisions]


def test_standing_car_is_hit_once_at_its_first_contact() -> None:
    tracks = boxes((*CAR, [20.0, 0.0, 0.0, 0.0, 0.0]), samples=40)
    score = evaluate(drive_on(WIDE, ahead(), speed=10.0, tracks=tracks))
    assert kinds(score) == [("STOPPED_TRACK", True)]
    (collision,) = score.collisions
    assert collision.frame == 16  # gap 20 - 2 - 2.588 = 15.412 m at 1 m per sample
    assert collision.track == "t0"
    assert collision.delta_v == pytest.approx(5.0)
    assert score.metrics["no_ego_at_fault_collisions"].value == 0.0
    assert score.score == 0.0


def test_touching_counts() -> None:
    touching = boxes((*CAR, [5.176 / 2 + 2.0, 0.0, 0.0, 0.0, 0.0]), samples=1)
    assert len(evaluate(drive_on(WIDE, ahead(1), speed=1.0, tracks=touching)).collisions) == 1
    apart = boxes((*CAR, [5.176 / 2 + 2.0 + 1e-6, 0.0, 0.0, 0.0, 0.0]), samples=1)
    assert len(evaluate(drive_on(WIDE, ahead(1), speed=1.0, tracks=apart)).collisions) == 0


def test_collision_at_the_first_sample() -> None:
    tracks = boxes((*CAR, [1.0, 0.0, 0.0, 0.0, 0.0]), samples=5)
    score = evaluate(drive_on(WIDE, ahead(5), speed=10.0, tracks=tracks))
    assert [c.frame for c in score.collisions] == [0]
    assert score.ttc[0] == 0.0
    assert np.isinf(score.ttc[1:]).all()  # an object that was hit counts no more


def test_standing_ego_is_never_at_fault() -> None:
    tracks = boxes((*CAR, moving(-30.0, 0.0, 0.0, 12.0)), samples=40)
    poses = np.zeros((40, 3))
    assert kinds(evaluate(drive_on(WIDE, poses, speed=0.05, tracks=tracks))) == [("STOPPED_EGO", False)]


def test_hit_from_behind_is_not_at_fault() -> None:
    tracks = boxes((*CAR, moving(-15.0, 0.0, 0.0, 18.0)), samples=40)
    assert kinds(evaluate(drive_on(WIDE, ahead(), speed=10.0, tracks=tracks))) == [("ACTIVE_REAR", False)]


def test_moving_lead_is_hit_by_the_front() -> None:
    tracks = boxes((*CAR, moving(20.0, 0.0, 0.0, 2.0)), samples=40)
    score = evaluate(drive_on(WIDE, ahead(), speed=10.0, tracks=tracks))
    assert kinds(score) == [("ACTIVE_FRONT", True)]
    assert score.collisions[0].delta_v == pytest.approx(4.0)


@pytest.mark.parametrize(("y", "fault"), [(0.0, False), (1.5, True)])
def test_lateral_collision_is_at_fault_between_lanes_only(y: float, fault: bool) -> None:
    tracks = boxes((*CAR, moving(1.0, y + 5.0, -np.pi / 2, 1.0)), samples=40)
    tracks.state[0, :, 0] += np.arange(40)  # keeps beside the ego while it closes in
    score = evaluate(drive_on(TWO, ahead(y=y), speed=10.0, tracks=tracks))
    assert kinds(score) == [("ACTIVE_LATERAL", fault)]
    assert score.metrics["no_ego_at_fault_collisions"].value == float(not fault)


@pytest.mark.parametrize(
    ("objects", "value"),
    [
        ([ObjectType.TRAFFIC_CONE], 0.5),
        ([ObjectType.BARRIER, ObjectType.CZONE_SIGN], 0.0),
        ([ObjectType.GENERIC_OBJECT], 0.5),
        ([ObjectType.PEDESTRIAN], 0.0),
        ([ObjectType.BICYCLE], 0.0),
        ([ObjectType.VEHICLE], 0.0),
    ],
)
def test_score_by_kind_of_object(objects: list[ObjectType], value: float) -> None:
    rows = [(kind, 1.0, 1.0, np.array([10.0 + 5.0 * i, 0.0, 0.0, 0.0, 0.0])) for i, kind in enumerate(objects)]
    score = evaluate(drive_on(WIDE, ahead(), speed=10.0, tracks=boxes(*rows, samples=40)))
    assert len(score.collisions) == len(objects)
    assert score.metrics["no_ego_at_fault_collisions"].value == value


def test_velocity_of_static_types_is_ignored() -> None:
    tracks = boxes((ObjectType.BARRIER, 1.0, 1.0, np.array([10.0, 0.0, 0.0, 5.0, 0.0])), samples=40)
    score = evaluate(drive_on(WIDE, ahead(), speed=10.0, tracks=tracks))
    assert kinds(score) == [("STOPPED_TRACK", True)]
    assert score.collisions[0].delta_v == pytest.approx(5.0)


def test_delta_v_of_a_meeting_at_an_angle() -> None:
    tracks = boxes((*CAR, moving(2.0, 1.0, 1.0, 8.0)), samples=40)
    score = evaluate(drive_on(WIDE, ahead(), speed=5.0, tracks=tracks))
    assert score.collisions[0].frame == 0
    assert score.collisions[0].delta_v == pytest.approx(0.5 * np.sqrt(25 + 64 - 80 * np.cos(1.0)), abs=1e-6)


@pytest.mark.parametrize("heading", [0.0, 2.0])
@pytest.mark.parametrize(("degrees", "expected"), [(0, False), (140, False), (149, False), (151, True), (180, True)])
def test_behind_is_beyond_150_degrees_to_either_side(heading: float, degrees: float, expected: bool) -> None:
    for side in (-1, 1):
        way = heading + side * np.radians(degrees)
        found = is_behind(3 * np.cos(way), 3 * np.sin(way), np.cos(heading), np.sin(heading))
        assert bool(found) is expected


@pytest.mark.parametrize("heading", [0.5 * np.pi, -0.75 * np.pi])
def test_hit_from_behind_whatever_the_heading(heading: float) -> None:
    direction = np.array([np.cos(heading), np.sin(heading)])
    poses = np.concatenate([np.arange(40)[:, None] * direction, np.full((40, 1), heading)], axis=1)
    tracks = boxes((*CAR, moving(*(-15.0 * direction), heading, 18.0)), samples=40)
    assert kinds(evaluate(drive_on(WIDE, poses, speed=10.0, tracks=tracks))) == [("ACTIVE_REAR", False)]
