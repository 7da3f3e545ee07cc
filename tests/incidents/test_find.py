"""Events of hand-made drives: what is found is what was done."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from radp.incidents.explain import incidents_of
from radp.incidents.find import events_of, side_of
from radp.metrics.score import evaluate
from radp.scenario import Ego
from radp.sim.rollout import Rollout, logged_agents
from radp.sources.synthetic import make_scenario


@pytest.fixture(scope="module")
def drive() -> Rollout:
    """The expert's own drive, straight on."""
    scenario = make_scenario(1, 0, turn="straight", frames=61)
    window = slice(scenario.start, scenario.start + 60)
    return Rollout(scenario, scenario.time_us[window], scenario.ego[window].copy(), logged_agents(scenario, 60))


def changed(drive: Rollout, ego: np.ndarray) -> list[tuple[str, int, int]]:
    other = replace(drive, ego=ego)
    return [(event.metric, event.frame, event.end) for event in events_of(other, evaluate(other))]


def test_a_clean_drive_lacks_only_the_log_s_last_sample(drive: Rollout) -> None:
    assert {metric for metric, _, _ in changed(drive, drive.ego)} <= {"ego_progress_along_expert_route"}


def test_speeding_begins_and_ends_where_it_does(drive: Rollout) -> None:
    ego = drive.ego.copy()
    ego[20:30, Ego.VX] = 40.0
    found = {metric: (first, last) for metric, first, last in changed(drive, ego)}
    assert found["speed_limit_compliance"] == (20, 29)


def test_off_the_road_from_the_first_sample_outside(drive: Rollout) -> None:
    ego = drive.ego.copy()
    left = np.array([-np.sin(ego[0, 2]), np.cos(ego[0, 2])])
    ego[40:, :2] += 60.0 * left
    found = {metric: (first, last) for metric, first, last in changed(drive, ego)}
    assert found["drivable_area_compliance"] == (40, 59)


def test_standing_loses_progress_where_it_stands(drive: Rollout) -> None:
    ego = drive.ego.copy()
    ego[20:] = ego[20]
    ego[20:, Ego.VX :] = 0.0
    found = {metric: (first, last) for metric, first, last in changed(drive, ego)}
    first, last = found["ego_progress_along_expert_route"]
    assert first >= 19 and last == first + 30
    (one, *_) = incidents_of(replace(drive, ego=ego), evaluate(replace(drive, ego=ego)), None, None)
    assert one.cost > 0 and "where the expert made" in one.what
    assert one.sentences[-1] == "Not tried: other drives that avoid it were not looked for."


@pytest.mark.parametrize(
    ("place", "side"),
    [((2.0, 0.1), "front"), ((-2.1, 0.2), "rear"), ((0.3, 0.9), "left side"), ((1.0, -0.8), "right side")],
)
def test_sides_of_a_box(place: tuple[float, float], side: str) -> None:
    assert side_of(place, (0.0, 0.0, 0.0), np.array([4.4, 1.9])) == side
    turned = (10.0 - place[1], 5.0 + place[0])
    assert side_of(turned, (10.0, 5.0, np.pi / 2), np.array([4.4, 1.9])) == side
