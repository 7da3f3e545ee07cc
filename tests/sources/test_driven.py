"""Driven logs: what was executed, by whom, from which moment on."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from radp.metrics.score import METRICS, evaluate
from radp.planners import load_planner
from radp.planners.takeover import Takeover
from radp.runs.errors import BadInput
from radp.scenario import Ego
from radp.scenario.splits import open_split
from radp.scenario.store import ScenarioStore, ScenarioWriter
from radp.scene.builder import scenes_from_log
from radp.scene.log_samples import write_log_samples
from radp.scene.scene import EgoColumn
from radp.scene.settings import SampleChoice
from radp.sim.driven_log import cut_drive, driven_log
from radp.sim.simulate import simulate
from radp.sources.driven import demonstrate, failure_samples, takeover_samples
from radp.sources.settings import Demonstrations
from radp.sources.synthetic import make_scenario
from tests.made_scenarios import cut_short

CHOICE = Demonstrations(scenarios="sumo14-val", planner="idm", after="constant_velocity")


@pytest.fixture(scope="module")
def scenarios():
    split = open_split("sumo14-val")
    return [split[i] for i in (0, 60, 130)]


@pytest.fixture(scope="module")
def drives(scenarios):
    return list(simulate(load_planner("idm"), scenarios, agents="reactive"))


def test_a_driven_log_is_the_drive_after_the_logs_own_past(scenarios, drives):
    for scenario, drive in zip(scenarios, drives):
        log = driven_log(drive)
        log.validate()
        assert log.start == scenario.start and len(log.time_us) == scenario.start + len(drive.time_us)
        np.testing.assert_array_equal(log.ego[log.start :], drive.ego)
        np.testing.assert_array_equal(log.ego[: log.start], scenario.ego[: scenario.start])
        np.testing.assert_array_equal(log.tracks.state[:, log.start :], drive.agents.state)
        known = scenario.tracks.ids.index(log.tracks.ids[0])
        np.testing.assert_array_equal(log.tracks.state[0, : log.start], scenario.tracks.state[known, : log.start])


def test_samples_of_a_driven_log_hold_what_was_executed(drives):
    """The ego's future is its executed drive, and a neighbour's future its executed motion; the plan has no seam."""
    drive = drives[0]
    log = driven_log(drive, first=15)
    scene = scenes_from_log(log, [log.start])
    pose, after = drive.ego[15], drive.ego[16:96]
    c, s = np.cos(pose[Ego.HEADING]), np.sin(pose[Ego.HEADING])
    gap = after[:, :2] - pose[:2]
    ahead = c * gap[:, 0] + s * gap[:, 1]
    np.testing.assert_allclose(scene.ego_agent_future[0, :, 0], ahead, atol=1e-3)
    first_speed = float(scene.ego_agent_future[0, 0, :2].norm()) / 0.1
    assert first_speed == pytest.approx(float(scene.ego_current_state[0, EgoColumn.VX]), abs=0.3)


def test_a_later_start_cuts_log_and_verdict(scenarios, drives):
    log = driven_log(drives[0], first=30)
    assert log.start == 20 and log.frames == len(drives[0].time_us) - 30
    np.testing.assert_array_equal(log.ego[log.start], drives[0].ego[30])
    whole, part = evaluate(drives[0]), evaluate(cut_drive(drives[0], 30))
    assert part.details is not None and whole.details is not None
    np.testing.assert_array_equal(part.details.speed, whole.details.speed[30:])
    with pytest.raises(ValueError, match="leaves no drive"):
        driven_log(drives[0], first=len(drives[0].time_us) - 1)


def test_the_second_driver_takes_over_at_its_moment(scenarios):
    """Up to the moment the drive is the first driver's, to the bit; after it the second one's plans are followed."""
    scenarios = [cut_short(scenario, 71) for scenario in scenarios]
    first, then = load_planner("constant_velocity"), load_planner("pdm_closed")
    steps = {scenario.token: 20 + 10 * i for i, scenario in enumerate(scenarios)}
    alone = list(simulate(first, scenarios))
    taken = list(simulate(Takeover(first, then, steps), scenarios))
    at_once = list(simulate(Takeover(first, then, dict.fromkeys(steps, 0)), scenarios))
    expert = list(simulate(then, scenarios))
    for a, b, c, d in zip(alone, taken, at_once, expert, strict=True):
        moment = steps[a.scenario.token]
        np.testing.assert_array_equal(b.ego[: moment + 1], a.ego[: moment + 1])
        assert np.abs(b.ego[moment + 1 :, :2] - a.ego[moment + 1 :, :2]).max() > 0.1
        np.testing.assert_allclose(c.ego, d.ego, atol=1e-9)


def test_moments_of_takeover_leave_eight_seconds_and_come_before_the_collision():
    assert takeover_samples("a", None, 150, Demonstrations(scenarios="x")) == [0]
    random = [takeover_samples(str(i), None, 150, CHOICE)[0] for i in range(200)]
    assert min(random) >= 10 and max(random) <= 69 and len(set(random)) > 30
    before = [takeover_samples(str(i), 60, 150, CHOICE)[0] for i in range(200)]
    assert min(before) >= 30 and max(before) <= 50
    assert takeover_samples("a", 149, 150, CHOICE) == []
    late = [takeover_samples(str(i), 120, 150, replace(CHOICE, future=40)) for i in range(200)]
    assert {sample for one in late for sample in one} == set(range(90, 110))
    assert takeover_samples("a", None, 150, replace(CHOICE, failed_only=True)) == []
    assert takeover_samples("a", None, 150, CHOICE) == takeover_samples("a", None, 150, CHOICE)


def test_failures_are_read_from_the_cards_of_a_run(tmp_path):
    rest = {"kind": "x", "score": 1.0, "metrics": {name: {"value": 1.0} for name in METRICS}}
    off_road = {"value": 0.0, "moments": [{"time": 8.3}]}
    cards = [
        {"token": "a", **rest, "collisions": [{"time": 6.2, "at_fault": True}, {"time": 3.0, "at_fault": False}]},
        {"token": "b", **rest, "collisions": []},
        {"token": "c", **rest, "metrics": rest["metrics"] | {"drivable_area_compliance": off_road}, "collisions": []},
    ]
    (tmp_path / "cards.jsonl").write_text("".join(json.dumps(card) + "\n" for card in cards))
    assert failure_samples(tmp_path) == {"a": 62, "c": 83}
    with pytest.raises(BadInput, match="not finished"):
        failure_samples(tmp_path / "nowhere")


def test_only_good_drives_are_kept_and_a_killed_run_goes_on(tmp_path, scenarios):
    with ScenarioWriter(tmp_path / "logs") as writer:
        for scenario in scenarios:
            writer.add(scenario)
    choice = Demonstrations(scenarios=str(tmp_path / "logs"), planner="idm", min_score=0.5)
    card = demonstrate(choice, tmp_path / "driven")
    store = ScenarioStore.open(tmp_path / "driven")
    good = [d.scenario.token for d in simulate(load_planner("idm"), scenarios) if evaluate(d).score >= 0.5]
    assert store.tokens() == good and card["scenarios"] == len(good)
    assert len(card["failed"]) == len(scenarios) - len(good)
    again = demonstrate(choice, tmp_path / "driven")
    assert again["scenarios"] == len(good)
    samples = write_log_samples(tmp_path / "samples", store, SampleChoice(other_egos=0))
    assert len(samples) and (samples.frame >= 20).all()
    strict = demonstrate(Demonstrations(**{**vars(choice), "min_score": 1.01}), tmp_path / "none")
    assert strict["scenarios"] == 0 and all("wanted 1.01" in why or "fails" in why for why in strict["failed"].values())


def test_own_drives_are_kept_whatever_became_of_them(scenarios, tmp_path):
    with ScenarioWriter(tmp_path / "store") as writer:
        for scenario in scenarios:
            writer.add(scenario)
    choice = Demonstrations(scenarios=str(tmp_path / "store"), planner="constant_velocity", min_score=0.0)
    refused = demonstrate(choice, tmp_path / "good")
    assert any("fails" in reason for reason in refused["failed"].values())  # it runs into somebody, or off the road
    kept = demonstrate(replace(choice, gates=False), tmp_path / "all")
    assert kept["scenarios"] == len(scenarios) > refused["scenarios"] and not kept["failed"]


@pytest.mark.slow
def test_a_planner_that_hangs_costs_one_demonstration(tmp_path, monkeypatch):
    """Both scenarios would be one piece; with a timeout each is driven in its own."""
    with ScenarioWriter(tmp_path / "store") as writer:
        for seed in range(2):
            writer.add(make_scenario(seed, 2, frames=40))
    monkeypatch.setenv("RADP_TEST_HANGS_ON", "synthetic_000001")
    planner = f"{Path(__file__).parents[1] / 'evaluation' / 'wandering_planner.py'}:WanderingPlanner"
    choice = Demonstrations(scenarios=str(tmp_path / "store"), planner=planner, min_score=0.0, agents="nonreactive")
    card = demonstrate(choice, tmp_path / "out", plan_timeout=5.0)
    said = {name: reason for name, reason in card["failed"].items() if "no answer" in reason}
    assert said == {"synthetic_000001+0": "the planner gave no answer within 5.0 s, and was stopped"}
    assert card["scenarios"] + len(card["failed"]) == 2
    with pytest.raises(BadInput, match=r"a plan timeout of 0\.0 s cannot be kept"):
        demonstrate(choice, tmp_path / "other", plan_timeout=0.0)
