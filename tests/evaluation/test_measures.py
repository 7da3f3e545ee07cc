"""Measures of a moment: worked by hand, and by brute force (driving on in small steps)."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from shapely import affinity

from radp.evaluation.known import MEASURES, measures_of
from radp.evaluation.measures import (
    HORIZON,
    MAX_BRAKING,
    RESPONSE,
    RSS_BRAKING,
    RSS_LEADER,
    RSS_SPEEDING,
    MovingPairs,
    brake_threat_number,
    encroachment,
    least_distance,
    pairs_of,
    required_deceleration,
    rss_deficit,
    speed_excess,
    time_headway,
    time_to_brake,
    time_to_line,
)
from radp.evaluation.risk import all_severities
from radp.metrics.drive import LENGTH, WIDTH, read_drive
from radp.metrics.score import evaluate
from tests.evaluation.test_risk import logged_drive

FINE = 1e-3  # s


def pair(
    gap: float, speed: float, lead: float = 0.0, aside: float = 0.0, sideways: float = 0.0, acceleration: float = 0.0
) -> MovingPairs:
    """One object of 4 m x 2 m whose rear is `gap` ahead of the ego's front; across the path if it moves sideways."""
    along, across = (1.0, 2.0) if sideways else (2.0, 1.0)
    one = {name: np.array([[value]]) for name, value in {
        "ahead": gap + along + LENGTH / 2, "aside": aside, "along": along, "across": across, "velocity": lead,
        "sideways": sideways, "acceleration": acceleration,
    }.items()}  # fmt: skip
    return MovingPairs(**one, speed=np.array([speed]), size=np.array([[4.0, 2.0]]))


def closest(gap: float, speed: float, lead: float, braking: float, wait: float = 0.0, lead_accel: float = 0.0) -> float:
    """Least gap when the ego goes on for `wait` s and then brakes, until it is no faster than the leader or stands."""
    x, t, least = gap, 0.0, gap
    while (speed > lead or lead_accel < 0 < speed) and t < 60:
        speed -= braking * FINE if t >= wait else 0.0
        lead = max(0.0, lead + lead_accel * FINE)
        x, t = x + (lead - speed) * FINE, t + FINE
        least = min(least, x)
    return least


@pytest.mark.parametrize(("gap", "speed", "lead"), [(20.0, 10.0, 0.0), (8.0, 15.0, 10.0), (3.0, 6.0, 2.0)])
def test_braking_measures_by_driving_on(gap, speed, lead):
    pairs = pair(gap, speed, lead)
    needed = required_deceleration(pairs)[0]
    assert needed == pytest.approx((speed - lead) ** 2 / (2 * gap))
    assert closest(gap, speed, lead, 1.02 * needed) > 0 > closest(gap, speed, lead, 0.98 * needed)
    left = -time_to_brake(pairs)[0]
    assert closest(gap, speed, lead, MAX_BRAKING, left - 0.02) > 0 > closest(gap, speed, lead, MAX_BRAKING, left + 0.02)
    assert brake_threat_number(pairs)[0] == pytest.approx(needed / MAX_BRAKING)


@pytest.mark.parametrize(("gap", "accel"), [(5.0, -1.0), (30.0, -1.0), (10.0, -3.0)])  # the last two stop first
def test_a_leader_that_brakes_threatens_more(gap, accel):
    needed = brake_threat_number(pair(gap, 15.0, 12.0, acceleration=accel))[0] * MAX_BRAKING
    assert needed > required_deceleration(pair(gap, 15.0, 12.0))[0]
    assert closest(gap, 15.0, 12.0, 1.02 * needed, lead_accel=accel) > 0
    assert closest(gap, 15.0, 12.0, 0.98 * needed, lead_accel=accel) < 0


def test_the_safe_distance_is_just_enough_in_the_worst_case():
    speed, lead = 12.0, 8.0
    deficit = rss_deficit(pair(5.0, speed, lead))[0]
    ours, theirs, x, t = speed, lead, 5.0 + deficit, 0.0
    while ours > 0 or theirs > 0:
        ours = max(0.0, ours + (RSS_SPEEDING if t < RESPONSE else -RSS_BRAKING) * FINE)
        theirs = max(0.0, theirs - RSS_LEADER * FINE)
        x, t = x + (theirs - ours) * FINE, t + FINE
    assert x == pytest.approx(0.0, abs=0.02) and deficit > 10
    assert rss_deficit(pair(200.0, speed, lead))[0] == 0.0


def test_headway_and_who_leads():
    assert time_headway(pair(20.0, 10.0, 10.0))[0] == pytest.approx(0.5)
    beside = pair(20.0, 10.0, aside=WIDTH / 2 + 1.0 + 0.01)
    assert time_headway(beside)[0] == required_deceleration(beside)[0] == rss_deficit(beside)[0] == 0.0
    assert time_to_brake(beside)[0] == -HORIZON
    behind = pair(-LENGTH - 8.0, 10.0)
    assert time_headway(behind)[0] == 0.0
    faster = pair(20.0, 10.0, 12.0)
    assert required_deceleration(faster)[0] == 0.0 and time_to_brake(faster)[0] == -HORIZON


@pytest.mark.parametrize("aside", [-30.0, -22.0, -12.0, -5.0])
def test_encroachment_by_driving_on(aside):
    """The object comes from the right at 5 m/s, the ego drives at 8 m/s; who is in the shared place when?"""
    pairs = pair(20.0, 8.0, 0.0, aside, 5.0)
    ahead = pairs.ahead[0, 0]
    time = np.arange(0, 12, FINE)
    ego_in = np.abs(8.0 * time - ahead) < LENGTH / 2 + 1.0  # the object is 2 m wide
    other_in = np.abs(aside + 5.0 * time) < 2.0 + WIDTH / 2
    a, b = (time[inside][[0, -1]] for inside in (ego_in, other_in))
    expected = max(0.0, a[0] - b[1], b[0] - a[1])
    assert -encroachment(pairs)[0] == pytest.approx(expected, abs=0.01)


def test_paths_that_do_not_cross_have_no_encroachment():
    for one in (pair(20.0, 8.0, 5.0), pair(20.0, 8.0, 0.0, 10.0, 5.0), pair(20.0, 0.0, 0.0, -10.0, 5.0)):
        assert encroachment(one)[0] == -HORIZON  # parallel, past the line already, ego stands


@pytest.mark.parametrize(("aside", "sideways", "lead"), [(-12.0, 3.0, 0.0), (6.0, 0.0, 2.0), (0.0, 0.0, 9.0)])
def test_the_least_distance_is_that_of_boxes(aside, sideways, lead):
    pairs = pair(15.0, 6.0, lead, aside, sideways)
    ego = shapely.box(-LENGTH / 2, -WIDTH / 2, LENGTH / 2, WIDTH / 2)
    along, across = pairs.along[0, 0], pairs.across[0, 0]
    other = affinity.translate(shapely.box(-along, -across, along, across), pairs.ahead[0, 0], aside)
    times = np.arange(0, HORIZON + 0.01, 0.25)
    found = [ego.distance(affinity.translate(other, (lead - 6.0) * t, sideways * t)) for t in times]
    assert -least_distance(pairs)[0] == pytest.approx(min(found), abs=1e-9)


def test_time_to_line_by_hand():
    margin = np.array([1.0] * 6 + [0.9, 0.8, 0.7, 0.6, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, -0.1])
    found = -time_to_line(margin)
    assert (found[:6] == HORIZON).all()
    assert found[10] == pytest.approx(0.5)  # 0.5 m left, 0.5 m lost in 0.5 s
    assert found[16] == HORIZON and found[17] == 0.0


def test_speed_excess_knows_when_there_is_no_limit():
    np.testing.assert_array_equal(speed_excess(np.array([10.0, 10.0]), np.array([8.0, 0.0])), [2.0, -30.0])


def test_pairs_are_seen_from_the_ego():
    drive = read_drive(logged_drive())
    pairs, t = pairs_of(drive), 30
    heading = drive.ego[t, 2]
    turn = np.array([[np.cos(heading), np.sin(heading)], [-np.sin(heading), np.cos(heading)]])
    there = np.flatnonzero(drive.agent_valid[:, t])
    assert len(there)
    for a in there:
        expected = turn @ (drive.agent_state[a, t, :2] - drive.center[t])
        np.testing.assert_allclose([pairs.ahead[a, t], pairs.aside[a, t]], expected, atol=1e-6)
        expected = turn @ drive.agent_state[a, t, 3:5]
        np.testing.assert_allclose([pairs.velocity[a, t], pairs.sideways[a, t]], expected, atol=1e-9)
    assert np.isnan(pairs.ahead[~drive.agent_valid]).all()


def test_every_measure_of_a_drive_is_finite_and_named():
    drive = logged_drive()
    score = evaluate(drive)
    found = measures_of(drive, score, all_severities(drive, score))
    assert set(found) == set(MEASURES)
    assert all(values.shape == (len(drive.ego),) and np.isfinite(values).all() for values in found.values())
