"""The teacher beside a planner with a head: both report on the same plans, in the same order of rules."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from radp.attribution import Calibration, attribute
from radp.attribution.online import ExplainedPlanner, own_pressures, own_rule_set, with_expert
from radp.model.head import AttributionHead, HeadConfig
from radp.planners import load_planner
from radp.planners.diffusion import DiffusionPlanner
from radp.planners.rule_guidance import rule_guidance
from radp.rules import default_rules, rule_set
from radp.scenario import ObjectType
from radp.scene.builder import RULE_SCENES, RULES_ALONE, build_scenes, scenes_from_log
from radp.sim.plan import Plan
from radp.sim.replay import observe_logs
from radp.sim.simulate import simulate
from tests.planners.test_learned import SMALL, awake, short_scenario

NAMES = tuple(rule.name for rule in default_rules())
SCALES = Calibration(NAMES, (0.5, 0.1, 0.2, 0.3, 2.0, 0.05), samples=10)


def planner_with_head(rules: tuple[str, ...] = NAMES) -> DiffusionPlanner:
    torch.manual_seed(4)
    return DiffusionPlanner(awake(SMALL), "own", head=AttributionHead(HeadConfig(SMALL.hidden, rules, 6, 16)).eval())


def test_a_drive_holds_both_pressures_of_the_same_frames():
    scenario, planner = short_scenario(), planner_with_head()
    (taught,) = simulate(ExplainedPlanner(planner, SCALES), [scenario], "nonreactive", keep_plans=True)
    (alone,) = simulate(planner, [scenario], "nonreactive", keep_plans=True)
    assert taught.failure is None and taught.rules == alone.rules == NAMES
    np.testing.assert_array_equal(taught.plans, alone.plans)
    np.testing.assert_array_equal(taught.pressures, alone.pressures)
    assert alone.exact_pressures is None and taught.exact_pressures.shape == taught.pressures.shape == (11, 6)
    assert np.abs(taught.exact_pressures - taught.pressures).max() > 0.01


def test_the_teacher_sees_the_plan_and_the_forecasts_of_that_frame():
    planner = planner_with_head()
    now = observe_logs([short_scenario(1), short_scenario(2)], 3)
    plan = ExplainedPlanner(planner, SCALES).plan(now)
    mine = planner.plan(now)
    assert torch.equal(plan.trajectory, mine.trajectory) and torch.equal(plan.pressure, mine.pressure)
    why = attribute(mine.trajectory, build_scenes(now, RULE_SCENES), mine.predictions, SCALES)
    torch.testing.assert_close(plan.exact_pressure, why.pressure.float())
    torch.testing.assert_close(plan.rule_cost, why.cost.float())


def test_a_moment_is_built_once_for_planner_and_teacher(monkeypatch):
    built = []

    def counted(now, config):
        built.append(config)
        return build_scenes(now, config)

    for module in ("radp.attribution.online", "radp.planners.diffusion"):
        monkeypatch.setattr(f"{module}.build_scenes", counted)
    now, planner = observe_logs([short_scenario(1), short_scenario(2)], 3), planner_with_head()
    guided = DiffusionPlanner(awake(SMALL), guidance=rule_guidance())
    for one, seen in ((planner, planner.scenes), (guided, guided.scenes), (load_planner("constant_velocity"), None)):
        built.clear()
        plan = ExplainedPlanner(one, SCALES).plan(now)
        assert built == [RULES_ALONE if seen is None else replace(seen, rules=True)]
        assert torch.equal(plan.trajectory, one.plan(now).trajectory)  # the rules' view changes no plan
        assert plan.share_tracks.shape == plan.agent_share.shape


def test_shares_and_predictions_name_their_objects():
    now, planner = observe_logs([short_scenario(1), short_scenario(2)], 3), planner_with_head()
    plan = ExplainedPlanner(planner, SCALES).plan(now)
    gap = np.hypot(*(now.agents[:, -1, :, :2] - now.ego[:, -1, None, :2]).transpose(2, 0, 1))
    for b in range(2):
        there = now.agent_valid[b, -1] & (now.agent_type[b] <= ObjectType.BICYCLE)  # few: nobody is left out
        nearest = np.argsort(np.where(there, gap[b], np.inf))[: there.sum()]
        tracks = plan.share_tracks[b].numpy()
        np.testing.assert_array_equal(tracks[:32][tracks[:32] >= 0], nearest)
        np.testing.assert_array_equal(plan.predicted_tracks[b], nearest[: SMALL.neighbours])
        assert not plan.agent_share[b, tracks < 0].any()
    (drive,) = simulate(ExplainedPlanner(planner, SCALES), [short_scenario()], "reactive", keep_plans=True)
    assert drive.share_tracks.shape == drive.agent_shares.shape and drive.share_tracks.dtype == np.int32
    assert drive.predicted_tracks.shape == drive.predictions.shape[:2]


def test_a_head_with_its_own_rules_keeps_their_names():
    some = ("goal", "collision")
    plan = ExplainedPlanner(planner_with_head(some), SCALES).plan(observe_logs([short_scenario()], 3))
    mine = planner_with_head(some).plan(observe_logs([short_scenario()], 3))
    assert plan.rules == NAMES
    torch.testing.assert_close(plan.pressure[:, [5, 0]], mine.pressure)
    assert plan.pressure[:, 1:5].isnan().all()


def test_unnamed_pressures_are_taken_in_order_or_refused():
    plan = Plan(torch.zeros(2, 80, 4), pressure=torch.rand(2, 6))
    assert torch.equal(own_pressures(plan, NAMES), plan.pressure)
    with pytest.raises(ValueError, match="has 2 pressures, but names 6 rules"):
        own_pressures(replace(plan, pressure=torch.rand(2, 2)), NAMES)
    assert own_pressures(replace(plan, pressure=None), NAMES) is None


def test_the_teacher_judges_by_the_set_of_its_levels_or_of_the_head():
    planner = planner_with_head()
    now = observe_logs([short_scenario(1)], 3)
    levels = replace(SCALES, rule_set="v2")
    plan = ExplainedPlanner(planner, levels).plan(now)
    why = attribute(plan.trajectory, build_scenes(now, RULE_SCENES), plan.predictions, levels, rule_set("v2"))
    torch.testing.assert_close(plan.exact_pressure, why.pressure.float())
    torch.testing.assert_close(plan.seam_share, why.seam_share.float())
    planner.head = AttributionHead(replace(planner.head.config, rule_set="v2")).eval()
    assert own_rule_set(planner) == ExplainedPlanner(planner).rule_set == "v2"
    assert own_rule_set(load_planner("idm")) == ExplainedPlanner(planner, SCALES).rule_set == "paper"
    with pytest.raises(ValueError, match="levels of the rule set 'v2' do not fit 'paper'"):
        ExplainedPlanner(planner, levels, "paper")


def test_the_experts_progress_is_the_target_of_a_study():
    """Where the log ends before the plan does, the expert's progress is less than what is reachable."""
    scenario, planner = short_scenario(), planner_with_head()
    taught = {expert: ExplainedPlanner(planner, SCALES, expert_target=expert) for expert in (False, True)}
    costs = {}
    for expert, one in taught.items():
        (drive,) = simulate(one, [scenario], "nonreactive", keep_plans=True)
        costs[expert] = drive.rule_costs
        assert drive.seam_shares.shape == (11, 6)
    np.testing.assert_array_equal(costs[True][:, :5], costs[False][:, :5])
    assert (costs[True][:, 5] != costs[False][:, 5]).all()
    one = taught[True]
    one.start([scenario])
    now = observe_logs([scenario], 2)
    scene = with_expert(build_scenes(now, RULES_ALONE), now, {scenario.token: scenario})
    left = len(scenario.ego) - scenario.start - 3
    assert bool(scene.ego_agent_future[0, :left].any(-1).all()) and not bool(scene.ego_agent_future[0, left:].any())
    expected = scenes_from_log(scenario, [scenario.start + 2], RULES_ALONE, short_future="zeros").ego_agent_future
    torch.testing.assert_close(scene.ego_agent_future, expected)
