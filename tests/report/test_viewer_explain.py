"""Pressures after the drive are those that the teacher beside the planner reported during it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from radp.attribution.calibration import Calibration
from radp.attribution.online import ExplainedPlanner
from radp.metrics.score import evaluate
from radp.planners import load_planner
from radp.report.viewer.drive import risk_events
from radp.report.viewer.explain import explain_drive, tracks_of_drive
from radp.rules import default_rules
from radp.scenario import ObjectType
from radp.sim.rollout import Rollout
from radp.sim.settings import AGENT_MODES
from radp.sim.simulate import simulate
from radp.sources.synthetic import make_scenario
from tests.sim.made_worlds import RandomPlanner, short_scenarios

RULES = tuple(rule.name for rule in default_rules())
SCALES = Calibration(RULES, (0.5, 0.1, 0.2, 0.3, 2.0, 0.05), samples=10)


@pytest.fixture(scope="module", params=AGENT_MODES)
def rollout(request: pytest.FixtureRequest) -> Rollout:
    """Driven with a calibrated teacher; the log begins 7 frames before the drive."""
    planner = ExplainedPlanner(load_planner("constant_velocity"), SCALES)
    return next(simulate(planner, [make_scenario(4, 20, frames=40, history=7)], request.param, keep_plans=True))


def test_drive_keeps_what_the_teacher_reported(rollout: Rollout) -> None:
    assert rollout.exact_pressures is not None and rollout.agent_shares is not None
    assert rollout.pressures is None and rollout.rules == RULES
    assert rollout.exact_pressures.shape == (39, len(RULES))
    assert len(rollout.agent_shares) == 39
    assert rollout.exact_pressures.max() > 0.1
    assert (rollout.agent_shares.sum(1) > 0.99).any()


def test_explained_later_is_explained_the_same(rollout: Rollout) -> None:
    during = explain_drive(rollout)
    later = explain_drive(replace(rollout, exact_pressures=None, agent_shares=None), SCALES)
    assert during is not None and later is not None
    assert during.rules == later.rules == RULES
    np.testing.assert_array_equal(during.pressure, rollout.exact_pressures)
    np.testing.assert_allclose(later.pressure, during.pressure, atol=1e-4)  # another batch rounds differently
    np.testing.assert_allclose(later.share, during.share, atol=1e-4)
    uncalibrated = explain_drive(replace(rollout, exact_pressures=None, agent_shares=None))
    assert uncalibrated is not None
    assert np.abs(uncalibrated.pressure - during.pressure).max() > 0.01


def test_a_drive_that_does_not_name_its_objects_is_explained_the_same(rollout: Rollout) -> None:
    np.testing.assert_array_equal(tracks_of_drive(rollout, len(rollout.plans)), rollout.share_tracks)
    during, older = explain_drive(rollout), explain_drive(replace(rollout, share_tracks=None))
    assert during is not None and older is not None
    np.testing.assert_array_equal(during.share, older.share)


def test_shares_belong_to_tracks_that_are_seen(rollout: Rollout) -> None:
    during = explain_drive(rollout)
    assert during is not None
    assert during.share.shape == (39, len(rollout.agents))
    assert not during.share[~rollout.agents.valid.T].any()
    np.testing.assert_allclose(during.share.sum(1), rollout.agent_shares.sum(1), atol=1e-5)


def test_objects_of_scenes_are_tracks_nearest_first(rollout: Rollout) -> None:
    tracks = tracks_of_drive(rollout, 5)
    for s, row in enumerate(tracks):
        moving, standing = row[:32][row[:32] >= 0], row[32:][row[32:] >= 0]
        gap = np.hypot(*(rollout.agents.state[moving, s, :2] - rollout.ego[s, :2]).T)
        assert (np.diff(gap) >= 0).all()
        assert (rollout.agents.type[moving] <= ObjectType.BICYCLE).all()
        assert (rollout.agents.type[standing] > ObjectType.BICYCLE).all()
        assert len(moving) == (rollout.agents.valid[:, s] & (rollout.agents.type <= ObjectType.BICYCLE)).sum()


def test_nothing_is_reported_without_plans_or_about_unknown_rules() -> None:
    kept = next(simulate(RandomPlanner(), short_scenarios(1), "nonreactive", keep_plans=True))
    assert kept.pressures is not None and kept.pressures.shape[1] == 2
    assert explain_drive(kept) is None
    assert explain_drive(replace(kept, pressures=None, plans=None)) is None


def test_events_are_severities_above_their_threshold(rollout: Rollout) -> None:
    events = risk_events(rollout, evaluate(rollout))
    assert events.shape == (39,)
    fast = rollout.ego.copy()
    fast[10:20, 3] = 60.0
    speeding = replace(rollout, ego=fast)
    bit = 3  # speed
    happened = (risk_events(speeding, evaluate(speeding)) >> bit) & 1
    assert happened[10:20].all()
    assert happened.sum() == 10 + ((events >> bit) & 1)[np.r_[:10, 20:39]].sum()
