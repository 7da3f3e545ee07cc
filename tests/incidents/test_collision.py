"""The collision that has to be explained: IDM turns left into a car that it gave way to too late."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest

import radp
from radp.attribution.afterwards import judge_drive
from radp.attribution.online import levels_of
from radp.incidents.avoid import braked
from radp.incidents.explain import incidents_of
from radp.metrics.score import evaluate
from radp.scenario import Ego
from radp.sim.drive_on import drive_on, is_repeated
from radp.sim.rollout import Rollout

TOKEN, CAR = "3847af748faf7403", "s0-t0.1"
PIECES = 9  # of sumo14-val, which has 14 kinds one after the other


@pytest.fixture(scope="module")
def rollout() -> Rollout:
    split = radp.open_split("sumo14-val")
    (driven,) = radp.simulate(radp.load_planner("idm"), [split[split.tokens().index(TOKEN)]], keep_plans=True)
    return driven


@pytest.fixture(scope="module")
def why(rollout: Rollout) -> radp.Explained:
    return radp.explain(rollout)


def test_the_car_the_moment_and_the_way_of_the_impact_are_named(rollout: Rollout, why: radp.Explained) -> None:
    crash = why.incidents[0]
    assert (crash.title, crash.track, crash.object, crash.time) == ("Collision at fault", CAR, "VEHICLE", 6.2)
    assert crash.cost == 1.0 and crash.rule == "collision"
    assert "the ego's front meets its right side" in crash.what
    place = rollout.agents.state[rollout.agents.ids.index(CAR), crash.frame, :2]
    assert crash.impact is not None and np.hypot(*(np.array(crash.impact) - place)) < 3.0
    assert CAR in crash.sentences[0] and "6.2 s" in crash.sentences[0]


def test_the_three_seconds_before_it_are_told(why: radp.Explained) -> None:
    course = why.incidents[0].course
    assert [beat.time for beat in course] == pytest.approx([3.2, 3.7, 4.2, 4.7, 5.2, 5.7, 6.2])
    gaps = [beat.gap for beat in course if beat.gap is not None]
    assert len(gaps) == 7 and gaps == sorted(gaps, reverse=True) and gaps[-1] <= 0 < gaps[-2]


def test_collision_presses_because_of_that_car_before_it_is_too_late(why: radp.Explained) -> None:
    crash = why.incidents[0]
    press = crash.presses[0]
    assert (press.rule, press.track) == ("collision", CAR)
    assert press.level is not None and press.level > 5
    assert crash.no_return is not None
    assert press.begins < crash.no_return < crash.time
    assert any(other.rule == "collision" and other.track != CAR for other in crash.presses)
    jumps = [other for other in crash.presses if other.rule in ("kinematics", "comfort")]
    assert jumps and all(other.jump is not None and other.jump > 1.0 for other in jumps)


def test_what_would_have_avoided_it_does_when_it_is_driven(rollout: Rollout, why: radp.Explained) -> None:
    """Independently of the search: drive it, and look at the score of the whole drive."""
    crash = why.incidents[0]
    brakes = [remedy for remedy in crash.remedies if remedy.kind == "brake"]
    latest = next(remedy for remedy in brakes if remedy.latest)
    assert latest.at == pytest.approx(crash.no_return - 0.1) or latest.at < crash.no_return
    until = len(rollout.ego) - 1
    for remedy, avoids in ((brakes[0], True), (latest, True), (replace(latest, at=latest.at + 0.3), False)):
        step = round(remedy.at / 0.1)
        path = braked(rollout.ego[step:, :3], rollout.ego[step, Ego.VX], remedy.amount)
        (other,) = drive_on(rollout, np.array([step]), [path], until)
        contacts = [c for c in evaluate(other).collisions if c.frame <= crash.frame + 30]
        assert avoids == (not any(c.track == CAR or c.at_fault for c in contacts))
        if avoids:
            slower = -np.diff(other.ego[step : step + 20, Ego.VX]).min() / 0.1
            assert slower <= remedy.amount + 0.5


def test_a_drive_is_repeated_up_to_where_it_is_left(rollout: Rollout) -> None:
    until = 60
    (same, other) = drive_on(rollout, np.array([until + 1, 30]), [rollout.ego[:1, :3]] * 2, until)
    np.testing.assert_array_equal(same.ego, rollout.ego[: until + 1])
    assert is_repeated(rollout, same)
    np.testing.assert_array_equal(other.ego[:31], rollout.ego[:31])
    assert not np.allclose(other.ego[40], rollout.ego[40])


def test_time_to_collision_is_an_incident_of_its_own(why: radp.Explained) -> None:
    metrics = [one.metric for one in why.incidents]
    assert metrics == ["no_ego_at_fault_collisions", "time_to_collision_within_bound"]
    assert why.incidents[1].track == CAR


def test_text_json_and_notebook_say_the_same(why: radp.Explained) -> None:
    data = why.to_json()
    assert data["incidents"][0]["track"] == CAR and data["incidents"][0] == asdict(why.incidents[0])
    for sentence in why.incidents[0].sentences:
        assert sentence in str(why)
    assert CAR in why._repr_html_()
    assert "Usual levels: radp-mini." in str(why)


@pytest.mark.slow
@pytest.mark.parametrize("piece", range(PIECES))
@pytest.mark.parametrize("planner", ["idm", "pdm_closed", "radp-mini"])
def test_every_struck_object_is_named(planner: str, piece: int) -> None:
    """Over all at-fault collisions of a planner on sumo14-val; every gate or metric below 1 is an incident.

    In pieces, each of every kind, so that a busy machine can do one at a time: `-k idm-3`, `-rP` prints the numbers.
    """
    drives = collisions = told = 0
    levels = levels_of(planner, "v2")
    split = radp.open_split(f"sumo14-val@every-{PIECES}+{piece}")
    for driven in radp.simulate(radp.load_planner(planner), split, keep_plans=True):
        assert driven.failure is None
        score = evaluate(driven)
        struck = [(c.frame, c.track) for c in score.collisions if c.at_fault]
        judged = judge_drive(driven, levels) if struck else None
        found = incidents_of(driven, score, judged, None)
        below = {name for name, metric in score.metrics.items() if metric.valid and metric.value < 0.9995}
        assert {one.metric for one in found} == below
        named = [one for one in found if one.metric == "no_ego_at_fault_collisions"]
        assert [(one.frame, one.track) for one in named] == struck
        told += sum(one.track in one.sentences[0] and one.impact is not None for one in named)
        collisions += len(struck)
        drives += 1
    print(f"{planner}, piece {piece}: {drives} drives, {collisions} at-fault collisions, {told} struck objects named")
    assert (drives, told) == (len(split), collisions)
