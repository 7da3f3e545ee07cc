from __future__ import annotations

import numpy as np
import pytest

from radp.sources.sumo.hazards import concerns

EGO = np.zeros((1, 3))


def at(x: float, y: float, heading: float = 0.0) -> np.ndarray:
    return np.array([[x, y, heading, 0.0, 0.0]])


@pytest.mark.parametrize(
    ("kind", "actor", "expected"),
    [
        ("sudden_braking", at(20, 0), True),
        ("sudden_braking", at(-20, 0), False),  # behind
        ("sudden_braking", at(20, 7), False),  # two lanes away
        ("sudden_braking", at(20, 3, np.pi), False),  # oncoming
        ("close_cut_in", at(12, 3.3, 0.1), True),
        ("close_cut_in", at(35, 3.3), False),
        ("stalled_vehicle", at(55, 3.3), True),
        ("red_light_runner", at(15, 20, -np.pi / 2), True),
        ("red_light_runner", at(-15, 5), False),
        ("jaywalker", at(25, 4, np.pi / 2), True),
        ("jaywalker", at(25, 12, np.pi / 2), False),
    ],
)
def test_whom_a_hazard_concerns(kind: str, actor: np.ndarray, expected: bool) -> None:
    assert concerns(kind, actor, EGO).tolist() == [expected]


def test_concern_turns_with_the_ego() -> None:
    north = np.array([[100.0, 50.0, np.pi / 2]])
    assert concerns("stalled_vehicle", np.array([[100.0, 80.0, np.pi / 2, 0, 0]]), north).all()
    assert not concerns("stalled_vehicle", np.array([[130.0, 50.0, np.pi / 2, 0, 0]]), north).any()
