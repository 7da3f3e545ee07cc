"""Drives and planners by the rulebook: what was broken, by hand, and who is better."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from radp.cli.main import main
from radp.evaluation.rulebook import (
    NAMES,
    JudgedDrives,
    compare_drives,
    compare_planners,
    comparison_text,
    drive_violations,
    rulebook_table,
    while_red,
)
from radp.rules import RuleContext, rules_named
from radp.runs.errors import BadInput
from radp.scenario import ObjectType, RoadMap
from radp.scenario.neutral_json import save_json
from radp.scene.scene import Scene
from radp.sim.rollout import Rollout, rollout_to_json
from tests.made_roads import box_lane, road
from tests.metrics.made_drives import boxes, drive_on
from tests.rules.hand_made import scene, straight_plan
from tests.rules.road_scenes import red_route

SAMPLES = 50


@pytest.fixture(scope="module")
def street() -> RoadMap:
    """One lane of 5 m along x, 300 m long, 10 m/s; the road is as wide as the lane."""
    lane = box_lane("a", (0.0, 300.0, -2.5, 2.5), limit=10.0)
    return road(lane, drivable=[(0.0, 300.0, -2.5, 2.5)])


def driven(street: RoadMap, speed: float, y: float = 0.0, person: float | None = None) -> Rollout:
    """Straight on at one speed; perhaps somebody stands at x = 60 m, so many metres beside the middle."""
    x = 30.0 + speed * 0.1 * np.arange(SAMPLES)
    poses = np.stack((x, np.full(SAMPLES, y), np.zeros(SAMPLES)), 1)
    rollout = drive_on(street, poses, expert=_expert(), speed=speed)
    scenario = replace(rollout.scenario, route=("block of a",))
    if person is None:
        return replace(rollout, scenario=scenario)
    somebody = (ObjectType.PEDESTRIAN, 0.6, 0.6, np.array([60.0, person, 0.0, 0.0, 0.0]))
    logged = replace(scenario, tracks=boxes(somebody, samples=SAMPLES + 1))
    return replace(rollout, scenario=logged, agents=boxes(somebody, samples=SAMPLES))


def _expert() -> np.ndarray:
    x = 30.0 + 1.0 * np.arange(SAMPLES + 1)
    return np.stack((x, np.zeros(SAMPLES + 1), np.zeros(SAMPLES + 1)), 1)


def test_violations_by_hand(street):
    calm = drive_violations(driven(street, 10.0))
    assert set(calm) == set(NAMES)
    assert {name: value for name, value in calm.items() if value > 0.01 and name != "goal"} == {}
    assert calm["goal"] < 1.1  # the expert's log is one sample longer
    fast = drive_violations(driven(street, 12.0))
    assert fast["speed"] == pytest.approx(2.0 * 0.1 * (SAMPLES - 1), rel=1e-3)  # 2 m/s too fast all the time
    slow = drive_violations(driven(street, 4.0))
    assert slow["goal"] == pytest.approx(6.0 * 0.1 * (SAMPLES - 1), rel=0.05)  # metres behind the expert
    assert slow["flow"] == pytest.approx(1.0 * 0.1 * (SAMPLES - 1), rel=0.05)  # 5 m/s would be fair
    beside = drive_violations(driven(street, 10.0, y=2.0))
    off = 2.0 + 2.297 / 2 - 2.5
    assert beside["drivable"] == pytest.approx((off - 0.3) * 0.1 * (SAMPLES - 1), rel=0.02)
    near = drive_violations(driven(street, 10.0, person=2.2))
    assert near["vulnerable"] > 0.3 and near["collision"] == 0.0
    hit = drive_violations(driven(street, 10.0, person=0.5))
    assert hit["collision"] > 0.1


def test_two_drives(street, tmp_path: Path, capsys):
    careful, bold = driven(street, 4.0, person=3.2), driven(street, 10.0, person=1.6)
    found = compare_drives(replace(careful, planner="careful"), replace(bold, planner="bold"))
    assert (found["outcome"], found["tier_name"]) == ("better", "safety") and "vulnerable" in found["gains"]
    assert "careful is better than bold, decided in tier 1 (safety): " in comparison_text(found)
    assert compare_drives(bold, bold)["outcome"] == "equal"
    failed = replace(bold, failure="it broke")
    assert compare_drives(failed, careful)["outcome"] == "worse" and drive_violations(failed) == {}
    with pytest.raises(BadInput, match="two scenarios"):
        compare_drives(careful, replace(bold, scenario=replace(bold.scenario, token="other")))
    for name, rollout in (("a", careful), ("b", bold)):
        save_json(rollout_to_json(rollout), tmp_path / f"{name}.json.gz")
    paths = [str(tmp_path / "a.json.gz"), str(tmp_path / "b.json.gz")]
    assert main(["score", *paths, "--rulebook", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["summary"]["better"] == 1 and said["drives"][0]["outcome"] == "better"
    assert main(["score", *paths, "--rulebook"]) == 0
    assert "better in 1" in capsys.readouterr().out
    assert main(["score", paths[0], "--rulebook"]) == 2
    assert "two paths" in capsys.readouterr().err


@pytest.mark.parametrize("turns_green", [False, True])
def test_a_light_that_turned_green_was_not_run(turns_green):
    """At 10 m/s towards a line 28 m ahead, which the front passes after 2.4 s; seen from 0, 1 and 2 s."""
    looks = []
    for k in range(3):
        route = red_route(*(() if turns_green and k == 2 else (1,)), start=-10.0 - 10.0 * k)
        looks.append(scene(route, speed=10.0))
    plan = straight_plan(10.0).expand(3, -1, -1)
    context = RuleContext.from_scene(Scene.cat(looks)).bind(plan)
    over = rules_named(["red_light"], "road")[0].violation(plan, context).clamp(min=0)
    kept = while_red(over, plan, context, (0, 10, 20))
    assert over[0].max() > 50.0 and torch.equal(kept[0] > 1.0, over[0] > 1.0) != turns_green
    assert torch.equal(kept, over) != turns_green


def rows(planner: str, **values: float) -> JudgedDrives:
    tokens = tuple(f"log{i}" for i in range(12))
    draw = np.random.default_rng(len(planner))
    return JudgedDrives(
        "split", "reactive", planner, tokens,
        {name: values.get(name, 0.0) * (1 + 0.1 * draw.random(12)) for name in NAMES},
    )  # fmt: skip


def test_pairs_of_planners():
    good, fast, odd = rows("good", goal=30.0), rows("fast", collision=1.0), rows("odd", speed=5.0, goal=30.0)
    pairs = compare_planners([good, fast, odd, replace(odd, split="another")])
    assert [(p.first.planner, p.second.planner, p.overall.outcome, p.overall.tier) for p in pairs] == [
        ("good", "fast", "better", 0),
        ("good", "odd", "better", 2),
        ("fast", "odd", "worse", 0),
    ]
    assert pairs[0].counts["better"] == 12 and pairs[0].to_json()["differences"]["collision"]["value"] < -0.9
    table = rulebook_table(pairs)
    assert "| good | fast | better than fast, decided in tier 1 (safety): collision | 12 / 0 / 0 / 0 |" in table


def test_differences_that_are_not_shown_do_not_decide():
    """One scenario of twelve with contact: no interval excludes zero, so the next tier that does decides."""
    a, b = rows("a", goal=40.0), rows("b")
    once = np.zeros(12)
    once[3] = 0.4
    a = replace(a, violations={**a.violations, "collision": once})
    (pair,) = compare_planners([a, b])
    assert (pair.overall.outcome, pair.overall.tier) == ("worse", 4)
    assert pair.counts == {"better": 0, "worse": 12, "incomparable": 0, "equal": 0, "failed": 0}
