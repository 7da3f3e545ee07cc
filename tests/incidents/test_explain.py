"""Sentences about plans: what they name is what is there."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from radp.attribution import Calibration
from radp.cli.main import main
from radp.incidents.explain import at_moment, explain_plan, explain_planner, worst_moments
from radp.incidents.words import sentence
from radp.planners import load_planner
from radp.report.plan_file import read_plan
from radp.rules import default_rules
from radp.runs.errors import BadInput
from radp.runs.json_text import json_text
from radp.scenario import Ego, ObjectType, Scenario, Tracks
from radp.scenario.neutral_json import save_json, scenario_to_json
from radp.sim.plan import Plan
from radp.sim.replay import observe_logs
from tests.made_roads import lane, road
from tests.made_scenarios import log, tracks
from tests.sim.made_worlds import short_scenarios
from tests.small_scenarios import small_scenario

NAMES = tuple(rule.name for rule in default_rules())
SCALES = Calibration(NAMES, (0.5, 0.1, 0.2, 0.3, 2.0, 0.05), samples=10)


def into_the_car(scenario: Scenario, step: int = 3) -> np.ndarray:
    """(80, 3) x, y, heading in the ego frame: in 3 s to where the first object is then, and on."""
    x, y, heading = scenario.ego[scenario.start + step, :3]
    car = scenario.tracks.state[0, scenario.start + step]
    gap = car[:2] + 3.0 * car[3:5] - (x, y)
    aim = np.arctan2(gap[1], gap[0]) - heading
    way = np.linalg.norm(gap) / 3.0 * 0.1 * np.arange(1, 81)
    return np.stack((way * np.cos(aim), way * np.sin(aim), np.full(80, aim)), -1)


def alone_with_the_car() -> Scenario:
    scenario = small_scenario()
    every = {name: getattr(scenario.tracks, name)[:1] for name in ("ids", "type", "size", "state", "valid")}
    return replace(scenario, tracks=Tracks(**every))


def plan_of(poses: np.ndarray) -> Plan:
    trajectory = np.concatenate((poses[:, :2], np.cos(poses[:, 2:]), np.sin(poses[:, 2:])), -1)
    return Plan(torch.from_numpy(trajectory[None]))


def test_the_object_and_the_second_are_those_of_the_crash() -> None:
    scenario = alone_with_the_car()
    huge = tuple(1e6 if name != "collision" else 1e-3 for name in NAMES)  # so that collision is reported first
    explained, why = explain_plan(plan_of(into_the_car(scenario)), scenario, 3, Calibration(NAMES, huge, 1))
    (moment,) = explained.moments
    rule = moment["rules"][0]
    assert rule["rule"] == "collision" and rule["margin"] < 0 and rule["level"] > 1
    assert moment["object"] == {
        "track": "car",
        "object": "VEHICLE",
        "share": pytest.approx(float(why.agent_share.max()), abs=1e-4),
    }
    strongest = float(why.per_step[0, 0].argmax() + 1) / 10
    assert rule["peak"] == pytest.approx(strongest) and rule["begins"] <= rule["peak"]
    before = why.per_step[0, 0, : round(10 * rule["begins"]) - 1]
    assert not len(before) or before.max() < 0.5 * why.per_step[0, 0].max()
    assert moment["sentence"].startswith("At 0.3 s collision presses most, ")
    assert "because of vehicle car (" in moment["sentence"] and "beyond the bound" in moment["sentence"]


def test_level_is_the_gradient_over_its_usual_size_and_says_when_there_is_none() -> None:
    scenario = small_scenario()
    explained, why = explain_plan(plan_of(into_the_car(scenario)), scenario, calibration=SCALES)
    for rule, norm, kappa in zip(explained.moments[0]["rules"], why.gradient_norm[0], SCALES.kappa):
        assert rule["level"] == pytest.approx(float(norm) / (kappa + 1e-6), rel=1e-3, abs=1e-4)
        assert rule["pressure"] == pytest.approx(np.log1p(rule["level"]), abs=1e-3)
    bare, _ = explain_plan(plan_of(into_the_car(scenario)), scenario)
    assert all(rule["level"] is None and not rule["calibrated"] for rule in bare.moments[0]["rules"])
    assert "(not calibrated)" in bare.moments[0]["sentence"]


def test_sentences_of_calm_and_of_several_rules() -> None:
    def rule(name: str, level: float | None, begins: float | None = 1.0) -> dict:
        pressure = 0.0 if level is None else float(np.log1p(level))
        return {"rule": name, "level": level, "pressure": pressure, "begins": begins, "peak": begins, "margin": 0.5,
                "unit": "m"}  # fmt: skip

    moment = {"time": 1.0, "object": None, "rules": [rule("lane", 0.3), rule("goal", 0.2)]}
    assert sentence(moment).startswith("At 1.0 s nothing presses more than usual; most of all lane, 0.3 times")
    moment["rules"] = [rule("lane", 2.0), rule("goal", 3.0), rule("speed", 0.5)]
    assert sentence(moment).startswith("At 1.0 s goal presses most, 3.0 times its usual level, from 1.0 s")
    assert sentence(moment).endswith("0.50 m to spare. Also above usual: lane (2.0 times its usual level).")
    moment["rules"] = [{**rule("comfort", 2.0), "margin": -90.0, "unit": "m/s³", "worst": 0.1}]
    said = "90.00 m/s³ beyond the bound in the first step, where the plan does not begin as the car moves."
    assert sentence(moment).endswith(said)
    moment["rules"][0]["worst"] = 2.0
    assert sentence(moment).endswith("90.00 m/s³ beyond the bound.")
    moment["rules"] = [rule("lane", 0.0, None)]
    assert sentence(moment) == "At 1.0 s no rule presses on the plan."


def test_every_frame_or_the_worst_ones_of_a_drive() -> None:
    scenarios = short_scenarios(2)
    driver = load_planner("constant_velocity")
    every = explain_planner(driver, scenarios, SCALES, "nonreactive", worst=None, verify=False)
    worst = explain_planner(driver, scenarios, SCALES, "nonreactive", worst=1, verify=False)
    for scenario, all_of_it, chosen in zip(scenarios, every, worst):
        assert [moment["step"] for moment in all_of_it.moments] == list(range(scenario.frames - 1))
        taken = {s for one in all_of_it.incidents for s in range(one.frame - 30, one.end + 11)}
        free = [moment for moment in all_of_it.moments if moment["step"] not in taken]
        peaks = [max(rule["pressure"] for rule in moment["rules"]) for moment in free]
        assert chosen.moments == ([free[int(np.argmax(peaks))]] if free else [])
        (now,) = at_moment(all_of_it, 1.0).moments
        assert now == all_of_it.moments[10]


def braked_for_a_bicycle() -> tuple[Scenario, Plan]:
    """A car at 8 m/s on a straight road, and a plan that stops after 30 m, 1.9 m before a bicycle that stands there."""
    bicycle = {
        "id": "b",
        "type": ObjectType.BICYCLE,
        "size": (2.0, 1.0),
        "state": (50 + 30 + 4.049 + 1.9 + 1, 0, 0, 0, 0),
    }
    ego = np.zeros(len(Ego))
    ego[[Ego.X, Ego.VX]] = 50.0, 8.0
    scenario = log(road(lane("1", [(0, 0), (400, 0)], "block")), [bicycle], np.tile(ego, (101, 1)), route=("block",))
    until = np.minimum(0.1 * np.arange(1, 81), 7.5)
    return scenario, plan_of(np.stack((8.0 * until - 64.0 / 120.0 * until**2, np.zeros(80), np.zeros(80)), -1))


def test_a_plan_speaks_in_tiers() -> None:
    scenario, plan = braked_for_a_bicycle()
    explained, _ = explain_plan(plan, scenario, rules="road")
    (moment,) = explained.moments
    words = "the plan gives up 50.0 m of progress along the route to keep 1.9 m to bicycle b"
    assert moment["sentence"].endswith(f" Safety before progress: {words}.")
    trade = json.loads(json_text(explained.to_json()))["moments"][0]["trade"]
    assert (trade["gives_up"], trade["keeps"], trade["track"], trade["object"]) == (
        "goal",
        "vulnerable",
        "b",
        "BICYCLE",
    )
    assert (trade["given"], trade["margin"], trade["gap"]) == pytest.approx((50.0, 0.4, 1.9), abs=1e-2)
    tiers = {row["rule"]: row["tier"] for row in moment["rules"]}
    assert (tiers["vulnerable"], tiers["headway"], tiers["goal"]) == ("safety", "order", "progress")
    six, _ = explain_plan(plan, scenario)  # the six rules know no bicycles, but boxes
    assert six.moments[0]["trade"]["keeps"] == "collision" and "1.9 m to bicycle b" in six.moments[0]["sentence"]
    alone = replace(scenario, tracks=tracks([], 101))
    assert explain_plan(plan, alone, rules="road")[0].moments[0]["trade"] is None


def test_worst_moments_are_a_second_apart() -> None:
    from types import SimpleNamespace

    pressure = np.zeros((50, 2))
    pressure[[20, 21, 45], [0, 0, 1]] = 3.0, 2.9, 1.0
    assert worst_moments(SimpleNamespace(pressure=pressure), 2) == [20, 45]
    assert worst_moments(SimpleNamespace(pressure=pressure), 2, taken=range(15, 30)) == [0, 45]


@pytest.fixture
def scenario_file(tmp_path: Path) -> Path:
    path = tmp_path / "scenario.json.gz"
    save_json(scenario_to_json(small_scenario()), path)
    return path


def test_files_in_either_frame_give_one_plan(tmp_path: Path) -> None:
    scenario = small_scenario()
    now, poses = observe_logs([scenario], 2), into_the_car(scenario)[:40]
    x, y, heading = scenario.ego[scenario.start + 2, :3]
    c, s = np.cos(heading), np.sin(heading)
    world = np.stack(
        (x + c * poses[:, 0] - s * poses[:, 1], y + s * poses[:, 0] + c * poses[:, 1], poses[:, 2] + heading), -1
    )
    np.savez(tmp_path / "world.npz", trajectory=world)
    (tmp_path / "ego.csv").write_text("t, x, y, heading\n" + "\n".join(
        f"{0.1 * (i + 1)},{float(p[0])!r},{float(p[1])!r},{float(p[2])!r}" for i, p in enumerate(poses)))  # fmt: skip
    a, b = read_plan(tmp_path / "ego.csv", now), read_plan(tmp_path / "world.npz", now, world=True)
    torch.testing.assert_close(a.on_grid(), b.on_grid(), atol=1e-8, rtol=0)
    torch.testing.assert_close(a.on_grid()[0, :40, :2], torch.from_numpy(poses[:, :2]), atol=1e-9, rtol=0)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("x,y\n1,2\n", "has the columns x, y"),
        ("x,y,heading\n1,2,a\n", "not a readable"),
        ("x,y,heading\n1,2,0\n", "at least two rows"),
        ("t,x,y,heading\n0.2,1,2,0\n0.1,2,2,0\n", "increase"),
    ],
)
def test_bad_files_are_refused_in_a_sentence(text: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "plan.csv").write_text(text)
    with pytest.raises(BadInput, match=complaint):
        read_plan(tmp_path / "plan.csv", observe_logs([small_scenario()], 0))


def test_verb_explains_a_file_and_a_drive(
    scenario_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "plan.npz", trajectory=into_the_car(small_scenario()))
    one = ["explain", "--scenario", str(scenario_file), "--trajectory", str(tmp_path / "plan.npz")]
    assert main([*one, "--calibration", "none"]) == 0
    assert "not calibrated: the pressures of different rules cannot be compared" in capsys.readouterr().out
    (tmp_path / "scales").mkdir()
    SCALES.save(tmp_path / "scales")
    assert main([*one, "--json", "--calibration", str(tmp_path / "scales")]) == 2
    assert "has no usual levels of the rule set 'v2'" in capsys.readouterr().err
    replace(SCALES, rule_set="v2").save(tmp_path / "scales")
    assert main([*one, "--json", "--calibration", str(tmp_path / "scales")]) == 0
    explained = json.loads(capsys.readouterr().out)
    assert explained["calibrated"] and len(explained["scenarios"][0]["moments"]) == 1
    drive = ["explain", "--scenarios", str(scenario_file), "--planner", "constant_velocity", "--agents", "nonreactive"]
    assert main([*drive, "--no-verify", "--at", "0.2"]) == 0
    said = capsys.readouterr().out
    assert said.count("At 0.2 s") == 1 and said.count("At ") == 1 and "Usual levels: radp-mini." in said
    assert main([*drive, "--token", "nobody"]) == 2
    assert main([*drive, "--at", "99"]) == 2
    assert main([*drive, "--trajectory", "x.csv"]) == 2
    assert main([*one, "--at", "999"]) == 2
    assert main([*one, "--calibration", str(tmp_path)]) == 2
