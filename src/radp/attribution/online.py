"""The teacher beside a planner in closed loop: any planner's plans get their exact pressures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from radp.attribution.calibration import FILE, Calibration
from radp.attribution.teacher import Attribution, attribute
from radp.rules import RuleContext
from radp.scenario import Scenario
from radp.scene.builder import SceneConfig, build_scenes
from radp.sim.observation import Observation
from radp.sim.plan import Plan
from radp.sim.planner import Planner, start_planner
from radp.zoo import MODELS, list_models

# All route lanes, so that the corridor spans lanes side by side; long ones cut, so that 20 points follow their bends.
RULE_SCENES = SceneConfig(route_order="lanes", ego_dynamics=True, lane_length=50.0)


def calibration_of(planner: Planner | None, name: str) -> Calibration | None:
    """The planner's own scales, or those beside the model of that name or path; None if there are neither."""
    own = getattr(planner, "calibration", None)
    if own is not None:
        return own
    name = name.partition("+guidance")[0]
    folder = MODELS / name if name in list_models() else Path(name)
    return Calibration.load(folder) if (folder / FILE).is_file() else None


def on_rules_terms(plan: Plan, observation: Observation) -> tuple[torch.Tensor, RuleContext]:
    """Trajectories (B, 80, 4) of plans for B worlds, and the context in which rules judge them."""
    trajectory = plan.on_grid().to(torch.float32)
    scene = build_scenes(observation, RULE_SCENES)
    return trajectory, RuleContext.from_scene(scene, plan.predictions, horizon=trajectory.shape[1])


class ExplainedPlanner:
    """A planner whose plans carry the teacher's pressures too. Trajectories and own pressures stay as they are."""

    def __init__(self, planner: Planner, calibration: Calibration | None = None) -> None:
        self.planner, self.calibration = planner, calibration
        self.name = planner.name

    def start(self, scenarios: Sequence[Scenario]) -> None:
        start_planner(self.planner, scenarios)

    def plan(self, observation: Observation) -> Plan:
        plan = self.planner.plan(observation)
        why = self.explain(plan, observation)
        return replace(
            plan,
            pressure=own_pressures(plan, why.rules),
            exact_pressure=why.pressure.float(),
            rule_cost=why.cost.float(),
            agent_share=why.agent_share.float(),
            rules=why.rules,
        )

    def explain(self, plan: Plan, observation: Observation) -> Attribution:
        """The whole attribution of a plan that this planner made from this observation."""
        return attribute(*on_rules_terms(plan, observation), calibration=self.calibration)


def own_pressures(plan: Plan, rules: tuple[str, ...]) -> torch.Tensor | None:
    """(B, M) what the planner itself told, in the order of `rules`; NaN for rules that it does not know."""
    if plan.pressure is None:
        return None
    names = plan.rules or rules
    if plan.pressure.shape[1] != len(names):
        raise ValueError(f"the plan tells {plan.pressure.shape[1]} pressures, but names {len(names)} rules")
    told = plan.pressure.new_full((len(plan.pressure), len(rules)), torch.nan)
    for i, rule in enumerate(rules):
        if rule in names:
            told[:, i] = plan.pressure[:, names.index(rule)]
    return told
