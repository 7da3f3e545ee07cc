"""Paths that are tried, and the words for pressures and remedies."""

from __future__ import annotations

import numpy as np
import pytest

from radp.incidents.avoid import braked, on_way
from radp.incidents.incident import Beat, Incident, Press, Remedy
from radp.incidents.words import incident_sentences, jump_words, level_words, remedy_words

STRAIGHT = np.stack((np.linspace(0, 50, 51), np.zeros(51), np.zeros(51)), -1)


def test_braking_takes_the_distance_that_physics_says() -> None:
    path = braked(STRAIGHT, 10.0, 4.0)
    assert len(path) == 81
    assert path[-1, 0] == pytest.approx(10.0**2 / (2 * 4.0))
    assert path[10, 0] == pytest.approx(10.0 - 2.0)  # after 1 s
    slower = braked(STRAIGHT, 10.0, 4.0, floor=6.0)
    assert np.diff(slower[20:40, 0]) == pytest.approx(np.full(19, 0.6))


def test_a_way_goes_straight_on_after_its_end() -> None:
    bend = np.array([[0.0, 0.0, 0.0], [10.0, 0.0, np.pi / 2], [10.0, 10.0, np.pi / 2]])
    assert on_way(bend, np.array([15.0, 23.0])) == pytest.approx(np.array([[10, 5, np.pi / 2], [10, 13, np.pi / 2]]))
    standing = np.repeat(STRAIGHT[:1], 5, 0)
    assert on_way(standing, np.array([0.0, 2.0]))[:, 0] == pytest.approx([0.0, 2.0])


def test_large_ratios_are_capped_in_words() -> None:
    assert level_words(2.34) == "2.3 times its usual level"
    assert level_words(5657.4) == "more than 20 times its usual level"
    assert level_words(None, 1.5) == "pressure 1.50 (not calibrated)"
    assert jump_words(-1.26) == " (a jump: the plan's first step is 1.3 m/s slower than the car)"
    assert jump_words(None) == ""


@pytest.mark.parametrize(
    ("remedy", "words"),
    [
        (Remedy("brake", 4.2, 1.0), "braking with 1 m/s2 from 4.2 s on"),
        (Remedy("brake", 4.8, 8.0, latest=True), "braking with 8 m/s2 at 4.8 s at the latest"),
        (Remedy("hold", 3.7, 0.0), "keeping to the plan of 3.7 s"),
        (
            Remedy("shift", 3.0, 0.5, -0.8, 0.3),
            "shifting the plan of 3.0 s by 0.8 m back and 0.3 m to the left (up to 0.5 m/s2)",
        ),
        (Remedy("push", 2.0, 1.0, gained=4.26), "1 m/s2 more from 2.0 s on, which wins 4.3 m"),
        (Remedy("smooth", 1.0, 0.6), "the same way from 1.0 s on with speeds smoothed over 0.6 s"),
    ],
)
def test_remedies(remedy: Remedy, words: str) -> None:
    assert remedy_words(remedy) == words


def test_an_incident_says_what_pressed_and_what_was_tried() -> None:
    press = Press("lane", 2.0, 3.0, 2.5, 1.1, 2.0)
    incident = Incident(
        "no_ego_at_fault_collisions", "collision", "Collision at fault", 0.5, 0.5, 40, 4.0, 40, "a bump", track="7",
        object="PEDESTRIAN", presses=(press,), tried=12,
    )  # fmt: skip
    head, pressed, tried = incident_sentences(incident)
    assert head == "Collision at fault at 4.0 s with pedestrian 7: a bump; costs 50.0 points."
    assert pressed.startswith(
        "Collision did not press more than usual in the 3 s before. Pressing: lane from 2.0 to 3.0 s"
    )
    assert tried == "None of 12 other drives in the 5 s before avoids it."


@pytest.mark.parametrize(
    ("other", "speed", "words"),
    [("VEHICLE", 2.0, "drives 2.0"), ("PEDESTRIAN", 1.0, "walks 1.0"), ("VEHICLE", 0.0, "stands")],
)
def test_what_the_other_does_before(other: str, speed: float, words: str) -> None:
    course = (Beat(1.0, 5.0, 0.0, 3.0, speed), Beat(4.0, 4.0, 0.0, 0.0, speed))
    crash = Incident("m", "collision", "Collision", 1.0, 0.0, 40, 4.0, 40, "contact", "a", other, course=course)
    assert f"3.0 m from it (it {words}" in " ".join(incident_sentences(crash))
