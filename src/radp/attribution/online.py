"""The teacher beside a planner in closed loop: any planner's plans get their exact pressures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import torch

from radp.attribution.calibration import FILE, Calibration
from radp.attribution.teacher import attribute
from radp.scenario import Scenario
from radp.scene.builder import RULES_ALONE, SceneConfig, build_scenes
from radp.scene.scene import Scene
from radp.sim.observation import Observation
from radp.sim.plan import Plan
from radp.sim.planner import Planner, start_planner
from radp.zoo import MODELS, list_models


@runtime_checkable
class ScenePlanner(Protocol):
    """A planner that plans from scenes: the teacher then looks at the same moment, built once."""

    name: str
    scenes: SceneConfig

    def plan(self, now: Observation) -> Plan: ...

    def plan_scene(self, scene: Scene, seeds: np.ndarray) -> Plan:
        """Plans for B scenes built as `scenes` says, and the observation's seeds (B,)."""
        ...


def calibration_of(planner: Planner | None, name: str) -> Calibration | None:
    """The planner's own scales, or those beside the model of that name or path; None if there are neither."""
    own = getattr(planner, "calibration", None)
    if own is not None:
        return own
    name = name.partition("+guidance")[0]
    folder = MODELS / name if name in list_models() else Path(name)
    return Calibration.load(folder) if (folder / FILE).is_file() else None


def plan_and_scene(planner: Planner, observation: Observation) -> tuple[Plan, Scene]:
    """Plans for B worlds, and the scenes in which rules judge them: those that the planner saw, if it saw any."""
    if isinstance(planner, ScenePlanner):
        scene = build_scenes(observation, replace(planner.scenes, rules=True))
        return planner.plan_scene(scene, observation.seeds), scene
    return planner.plan(observation), build_scenes(observation, RULES_ALONE)


class ExplainedPlanner:
    """A planner whose plans carry the teacher's pressures too. Trajectories and own pressures stay as they are."""

    def __init__(self, planner: Planner, calibration: Calibration | None = None) -> None:
        self.planner, self.calibration = planner, calibration
        self.name = planner.name

    def start(self, scenarios: Sequence[Scenario]) -> None:
        start_planner(self.planner, scenarios)

    def plan(self, observation: Observation) -> Plan:
        plan, scene = plan_and_scene(self.planner, observation)
        why = attribute(plan, scene, calibration=self.calibration)
        return replace(
            plan,
            pressure=own_pressures(plan, why.rules),
            exact_pressure=why.pressure.float(),
            rule_cost=why.cost.float(),
            agent_share=why.agent_share.float(),
            share_tracks=why.tracks,
            rules=why.rules,
        )


def own_pressures(plan: Plan, rules: tuple[str, ...]) -> torch.Tensor | None:
    """(B, M) what the planner itself reports, in the order of `rules`; NaN for rules that it does not know."""
    if plan.pressure is None:
        return None
    names = plan.rules or rules
    if plan.pressure.shape[1] != len(names):
        raise ValueError(f"the plan has {plan.pressure.shape[1]} pressures, but names {len(names)} rules")
    reported = plan.pressure.new_full((len(plan.pressure), len(rules)), torch.nan)
    for i, rule in enumerate(rules):
        if rule in names:
            reported[:, i] = plan.pressure[:, names.index(rule)]
    return reported
