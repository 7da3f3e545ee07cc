"""The rule of examples/own_rule.py goes through all uses of a rule: loss, guidance, pressure, report, viewer."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from radp.attribution import Calibration, attribute
from radp.attribution.online import ExplainedPlanner
from radp.evaluation.closed_loop import run_simulation
from radp.evaluation.settings import Simulation
from radp.incidents import explain_planner
from radp.planners import load_planner
from radp.planners.rule_guidance import RuleGuidance
from radp.report.viewer import write_site
from radp.rules import Rule, RuleContext, default_rules, registered_rules, rule_costs
from radp.rules.rule import unregister_rule
from radp.scenario.neutral_json import save_json, scenario_to_json
from radp.scene.log_samples import LogSamples, write_log_samples
from radp.scene.settings import SampleChoice
from radp.training.align import AlignTask
from radp.training.settings import AlignConfig
from tests.planners.test_learned import SMALL, awake, short_scenario
from tests.rules.hand_made import scene, straight_plan, straight_route

FILE = Path(__file__).parents[2] / "examples" / "own_rule.py"
SIX = tuple(rule.name for rule in default_rules())


@pytest.fixture
def headway() -> Iterator[Rule]:
    spec = importlib.util.spec_from_file_location("own_rule", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module.HEADWAY
    unregister_rule("headway")


def behind(gap: float) -> tuple[torch.Tensor, RuleContext]:
    """10 m/s behind a car of 4.5 m that drives as fast, `gap` metres bumper to bumper."""
    x = gap + (5.176 + 4.5) / 2 + 1.461
    context = RuleContext.from_scene(scene(straight_route(pieces=6), agents=[(x, 0.0, 0.0, 10.0, 4.5)]))
    return straight_plan(10.0), context


def test_cost_verdict_and_silence(headway: Rule) -> None:
    close, far = behind(10.0), behind(40.0)
    expected = (np.log1p(np.exp(10 * 1.0 / 0.5)) / 10) ** 2  # one second is missing at every step
    assert float(headway.cost(*close)) == pytest.approx(expected, rel=1e-4)
    assert float(headway.cost(*far)) < 1e-6
    assert headway.violated(*close) and not headway.violated(*far)
    assert float(headway.cost(straight_plan(), RuleContext.from_scene(scene(straight_route())))) == 0.0


def test_it_is_a_pressure_with_the_others_and_calibrated_by_name(headway: Rule) -> None:
    plan, context = behind(10.0)
    six = Calibration(SIX, (0.5, 0.1, 0.2, 0.3, 2.0, 0.05), samples=10)
    why = attribute(plan, context, calibration=six)
    assert why.rules == (*SIX, "headway") and not why.calibrated
    assert why.pressure[0, 6] == pytest.approx(float(torch.log1p(why.gradient_norm[0, 6])), rel=1e-4)
    assert attribute(plan, context, None, six, default_rules()).calibrated
    seven = Calibration((*SIX, "headway"), (*six.kappa, 0.01), samples=10)
    assert attribute(plan, context, calibration=seven).calibrated
    assert why.direction[0, 6, -1, 0] < 0  # it would have the plan end earlier


def test_it_guides_the_sampling(headway: Rule) -> None:
    plan, _ = behind(10.0)
    given = scene(straight_route(pieces=6), agents=[(10.0 + 6.3, 0.0, 0.0, 10.0, 4.5)])
    states = torch.zeros(1, 2, 81, 4, dtype=torch.float64)
    states[:, 0, 1:], states[:, 0, 0, 2], states[:, 1, :, 2] = plan, 1.0, 1.0
    states[0, 1, :, 0] = 16.3 + torch.arange(81)
    push = RuleGuidance(given, (headway,), strength=1.0)(states, 0.05)
    assert push[0, 1].abs().max() == 0 and push[0, 0, 0].abs().max() == 0
    assert push[0, 0, 1:, 0].sum() < 0
    twice = RuleGuidance(given, (headway,), strength=1.0, weights={"headway": 2 * headway.weight})(states, 0.05)
    assert torch.allclose(twice, 2 * push)
    moved = states.clone()
    moved[:, 0] += 0.01 * push[:, 0] / push[:, 0].norm()
    context = RuleContext.from_scene(given, states[:, 1:, 1:])
    cost = [float(rule_costs(s[:, 0, 1:], context, (headway,))) for s in (states, moved)]
    assert cost[1] < cost[0]


def test_it_is_a_term_of_the_alignment_loss(headway: Rule, tmp_path: Path) -> None:
    pytest.importorskip("peft")
    from radp.planners.diffusion import scene_config
    from radp.sources.synthetic import make_scenario

    write_log_samples(tmp_path / "logs", [make_scenario(5, agents=8)], SampleChoice(other_egos=0))
    samples = LogSamples.open(tmp_path / "logs", scene_config(SMALL, rules=True))
    task = AlignTask(AlignConfig(), awake(SMALL), samples)
    assert task.rules == registered_rules() and len(task.memory.scale) == 7
    _, parts = task.loss(task.model, samples.read([0, 1]), torch.Generator().manual_seed(0))
    assert {"cost/headway", "scale/headway", "normalised/headway"} <= parts.keys()


def test_it_is_a_row_of_the_report_and_a_curve_of_the_viewer(headway: Rule, tmp_path: Path) -> None:
    scenario = replace(short_scenario(), token="own")
    (explained,) = explain_planner(
        load_planner("constant_velocity"), [scenario], agents="nonreactive", worst=None, verify=False
    )
    assert explained.moments[0]["rules"][6]["rule"] == "headway" and explained.moments[0]["rules"][6]["unit"] == "s"
    save_json(scenario_to_json(scenario), tmp_path / "s.json.gz")
    job = Simulation(
        planner="constant_velocity", scenarios=str(tmp_path / "s.json.gz"), agents="nonreactive", attribution="teacher"
    )
    run = run_simulation(job, tmp_path / "run")
    site = write_site([run], tmp_path / "pages")
    (rollout,) = run.rollouts()
    assert rollout.rules == (*SIX, "headway")
    shown = site.rows[0]["drives"][0]["pressures"]  # the six by the rules and levels of v2, the own one as it is
    assert len(shown) == 7 and shown[6] == pytest.approx(rollout.exact_pressures[:, 6].max(), abs=1e-4)
    for page in (site.index, site.pages["own"]):
        assert json.dumps(headway.describes) in page.read_text()


def test_a_planner_with_a_head_of_six_tells_six(headway: Rule) -> None:
    from radp.sim.replay import observe_logs
    from tests.attribution.test_online import planner_with_head

    plan = ExplainedPlanner(planner_with_head(SIX)).plan(observe_logs([short_scenario()], 3))
    assert plan.rules == (*SIX, "headway") and plan.exact_pressure.isfinite().all()
    assert plan.pressure[:, :6].isfinite().all() and plan.pressure[:, 6].isnan().all()
