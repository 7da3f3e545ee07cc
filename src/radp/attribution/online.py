"""The teacher beside a planner in closed loop: any planner's plans get their exact pressures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import torch

from radp.attribution.calibration import Calibration, calibration_file
from radp.attribution.teacher import attribute, on_rules_terms
from radp.model.head import WEIGHTS, load_head
from radp.planners.registry import EXPORTED
from radp.rules import needs_road, rule_set
from radp.rules.sets import PAPER
from radp.scenario import Scenario
from radp.scene.builder import FUTURE, RULES_ALONE, SceneConfig, build_scenes, ego_future
from radp.scene.scene import Scene
from radp.sim.observation import Observation
from radp.sim.plan import Plan
from radp.sim.planner import Planner, start_planner
from radp.zoo import MODELS, list_models

LEVELS_OF = "radp-mini"  # whose usual levels count for planners that have none of their own


@runtime_checkable
class ScenePlanner(Protocol):
    """A planner that plans from scenes: the teacher then looks at the same moment, built once."""

    name: str
    scenes: SceneConfig

    def plan(self, now: Observation) -> Plan: ...

    def plan_scene(self, scene: Scene, seeds: np.ndarray) -> Plan:
        """Plans for B scenes built as `scenes` says, and the observation's seeds (B,)."""
        ...


def own_rule_set(planner: Planner | None) -> str:
    """The set that a planner's head was trained for; the paper's where it has no head."""
    head = getattr(planner, "head", None)
    return getattr(planner, "rule_set", PAPER) if head is None else head.config.rule_set


def calibration_of(planner: Planner | None, name: str, rules: str = "") -> Calibration | None:
    """Levels of a rule set: the planner's own, or those beside the model of that name or path; None if there are none.

    `rules`: the set of the planner's head, or of the head beside that model, if not given.
    """
    name = name.partition("+guidance")[0].removeprefix(EXPORTED)
    folder = MODELS / name if name in list_models() else Path(name)
    rules = rules or (_rule_set_beside(folder) if planner is None else own_rule_set(planner))
    own = getattr(planner, "calibration", None)
    if own is not None and own.rule_set == rules:
        return own
    return Calibration.load(folder, rules) if (folder / calibration_file(rules)).is_file() else None


def levels_of(name: str, rules: str) -> Calibration | None:
    """Usual levels of a rule set for a planner: those beside it, or, for planners that have none, radp-mini's."""
    return (calibration_of(None, name, rules) if name else None) or calibration_of(None, LEVELS_OF, rules)


def _rule_set_beside(folder: Path) -> str:
    return load_head(folder).config.rule_set if (folder / WEIGHTS).is_file() else PAPER


def plan_and_scene(planner: Planner, observation: Observation, road: bool = False) -> tuple[Plan, Scene]:
    """Plans for B worlds, and the scenes in which rules judge them: those that the planner saw, if it saw any.

    `road`: with what the rules of the road look at.
    """
    if isinstance(planner, ScenePlanner):
        scene = build_scenes(observation, replace(planner.scenes, rules=True, road=road))
        return planner.plan_scene(scene, observation.seeds), scene
    return planner.plan(observation), build_scenes(observation, replace(RULES_ALONE, road=road))


def with_expert(scene: Scene, now: Observation, scenarios: Mapping[str, Scenario]) -> Scene:
    """The scene with the logged expert's next 8 s as seen from where the ego is now; zeros after the log's end."""
    futures = torch.zeros(len(now), FUTURE, 3)
    for row, briefing in enumerate(now.briefings):
        scenario = scenarios[briefing.token]
        after = scenario.ego[scenario.start + now.step + 1 :]
        future = ego_future(np.concatenate((now.ego[row, -1:], after)), 0)
        futures[row, : len(future)] = torch.from_numpy(future).float()
    return replace(scene, ego_agent_future=futures)


class ExplainedPlanner:
    """A planner whose plans carry the teacher's pressures too. Trajectories and own pressures stay as they are.

    `rules` is a rule set: that of the calibration, or the planner's own, if not given. With `expert_target`, the goal
    asks for the progress of the logged expert: privileged, for studies; the planner does not see it.
    """

    def __init__(
        self,
        planner: Planner,
        calibration: Calibration | None = None,
        rules: str = "",
        expert_target: bool = False,
    ) -> None:
        self.planner, self.calibration, self.expert_target = planner, calibration, expert_target
        self.rule_set = rules or (own_rule_set(planner) if calibration is None else calibration.rule_set)
        if calibration is not None and calibration.rule_set != self.rule_set:
            raise ValueError(f"levels of the rule set {calibration.rule_set!r} do not fit {self.rule_set!r}")
        self.rules = rule_set(self.rule_set)
        self.name = planner.name
        self._scenarios: dict[str, Scenario] = {}

    def start(self, scenarios: Sequence[Scenario]) -> None:
        self._scenarios = {scenario.token: scenario for scenario in scenarios} if self.expert_target else {}
        start_planner(self.planner, scenarios)

    def plan(self, observation: Observation) -> Plan:
        plan, scene = plan_and_scene(self.planner, observation, needs_road(self.rules))
        if self.expert_target:
            scene = with_expert(scene, observation, self._scenarios)
        judged = on_rules_terms(plan, scene, expert_target=self.expert_target)
        why = attribute(*judged, None, self.calibration, self.rules)
        return replace(
            plan,
            pressure=own_pressures(plan, why.rules),
            exact_pressure=why.pressure.float(),
            rule_cost=why.cost.float(),
            agent_share=why.agent_share.float(),
            seam_share=why.seam_share.float(),
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
