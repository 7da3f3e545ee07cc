"""Planners at work in the studio: the plan of one moment with its reasons, a fan of samples, a drive."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from threading import RLock

import numpy as np
import torch

from radp.attribution.calibration import Calibration
from radp.attribution.online import ExplainedPlanner, ScenePlanner, calibration_of
from radp.planners import list_planners, load_planner
from radp.planners.diffusion import DiffusionPlanner
from radp.planners.rule_guidance import rule_guidance
from radp.report.viewer.drive import to_world
from radp.runs.errors import BadInput, one_line
from radp.scenario import Scenario
from radp.scene.builder import build_scenes
from radp.sim.planner import Planner, is_random
from radp.sim.replay import observe_logs
from radp.sim.rollout import Rollout
from radp.sim.settings import Agents, DriveOptions
from radp.sim.simulate import drive_batch, first_sample
from radp.studio.request import RuleChoice
from radp.zoo import list_models


class Workshop:
    """Planners by name, loaded on first use; one of them computes at a time. Names that were not offered are refused:
    the page cannot have files of this machine run.

    `rule_set`: the rules that judge and pull; those of the planner's levels or head if not given.
    """

    def __init__(self, planners: Sequence[str] = (), rule_set: str = "") -> None:
        self.rule_set = rule_set
        self.names = tuple(dict.fromkeys((*planners, *list_planners())))
        self.lock = RLock()
        self._planners: dict[str, Planner] = {}
        self._usual: dict[str, Calibration | None] = {}

    def planner(self, name: str) -> Planner:
        """One of the offered planners."""
        if name not in self.names:
            raise BadInput(f"planner is {one_line(name, 60)!r}, expected one of {', '.join(self.names)}")
        with self.lock:
            if name not in self._planners:
                self._planners[name] = load_planner(name)
            return self._planners[name]

    def usual(self, name: str) -> Calibration | None:
        """The planner's own usual levels, else those of a packaged model."""
        if name not in self._usual:
            own = calibration_of(self.planner(name), name, self.rule_set)
            others = (calibration_of(None, model, self.rule_set) for model in list_models())
            self._usual[name] = own or next((found for found in others if found is not None), None)
        return self._usual[name]

    def driver(self, name: str, rules: RuleChoice, own: bool = False) -> ExplainedPlanner:
        """The planner, pulled by the rules if they are to, with the teacher beside it.

        `own`: it is about to drive, and must not lose what it keeps of its scenario to other questions.
        """
        planner = self.planner(name)
        if own and hasattr(planner, "start"):
            planner = load_planner(name)
        explained = ExplainedPlanner(planner, self.usual(name), self.rule_set)
        known = {rule.name for rule in explained.rules}
        if strange := sorted((set(rules.off) | set(rules.weights)) - known):
            raise BadInput(f"no rule {one_line(strange[0], 40)!r}; expected one of {', '.join(known)}")
        chosen = tuple(rule for rule in explained.rules if rule.name not in rules.off)
        if not chosen:
            raise BadInput("all rules are switched off; leave one")
        if rules.steers and isinstance(planner, DiffusionPlanner):
            guidance = rule_guidance(chosen, rules.strength, rules.weights)
            pulled = copy(planner)
            pulled.guidance = guidance
            explained.planner = pulled
        explained.rules = chosen
        return explained

    def weights(self, name: str) -> list[dict[str, str | float]]:
        """The rules by which a planner is judged, with their own weights."""
        explained = ExplainedPlanner(self.planner(name), self.usual(name), self.rule_set)
        return [{"name": r.name, "describes": r.describes, "weight": float(r.weight)} for r in explained.rules]

    def plan(self, name: str, rules: RuleChoice, scenario: Scenario, seed: int) -> Rollout:
        """The first sample of a drive, with the plan from there, what it expects of others, and what presses on it."""
        with self.lock:
            options = DriveOptions("nonreactive", seed, keep_plans=True)
            moment = first_sample(self.driver(name, rules), scenario, options)
        if moment.failure is not None:
            raise BadInput(f"{name} cannot plan here: {moment.failure}")
        return moment

    def fan(
        self, name: str, rules: RuleChoice, scenario: Scenario, seed: int, count: int, noise: float = 1.0
    ) -> np.ndarray:
        """(K, H, 2) points in the world of as many plans as chance gives; none of planners without chance.

        `noise`: of a diffusion planner, in parts of its own.
        """
        planner = self.driver(name, rules).planner
        if not count or not is_random(planner) or not isinstance(planner, ScenePlanner):
            return np.zeros((0, 0, 2))
        if isinstance(planner, DiffusionPlanner):
            planner = copy(planner)
            planner.temperature *= noise
        seeds = np.random.default_rng(seed).integers(0, 2**63, count).astype(np.uint64)
        with self.lock, torch.no_grad():
            scene = build_scenes(observe_logs([scenario]), planner.scenes)
            plans = planner.plan_scene(scene.repeat_interleave(count), seeds).on_grid()
        ego = np.repeat(scenario.ego[scenario.start][None], count, 0)
        return to_world(ego, plans[..., :2].numpy())

    def drive(self, planner: Planner, scenario: Scenario, agents: Agents, seed: int) -> Rollout:
        """The whole drive from the scenario's start."""
        return drive_batch(planner, [scenario], DriveOptions(agents, seed, keep_plans=True))[0]
