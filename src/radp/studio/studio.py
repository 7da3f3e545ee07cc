"""The studio: questions about a moment of an edited scenario, and their answers, ready for JSON."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from radp.evaluation.endpoints import PAPER
from radp.planners.diffusion import DiffusionPlanner
from radp.report.demo import best_planner
from radp.report.viewer.drive import DriveReport, drawn_data, drive_data
from radp.report.viewer.explain import explain_drive
from radp.report.viewer.pack import pack
from radp.report.viewer.words import RISKS
from radp.runs.json_text import json_text
from radp.scenario import Scenario
from radp.scenario.neutral_json import scenario_to_json
from radp.sim.rollout import Rollout
from radp.sim.settings import AGENT_MODES
from radp.studio.drives import CountedPlanner, DriveJob, DriveJobs
from radp.studio.edits import apply_edits, from_step
from radp.studio.library import REACH, Library, Scenery
from radp.studio.request import RuleChoice, WhatIf
from radp.studio.workshop import Workshop
from radp.version import __version__

FAN_STEP = 4  # steps of a plan between the points that are drawn of a fan


class Studio:
    """Scenarios, planners and what is under way. It keeps no edits: each question brings its own."""

    def __init__(
        self, scenarios: str, planners: Sequence[str] = (), allow_missing: bool = False, rule_set: str = ""
    ) -> None:
        self.library = Library(scenarios, allow_missing)
        driven = () if self.library.run is None else (self.library.run.job.planner,)
        self.workshop = Workshop((*planners, *driven), rule_set)
        self.jobs = DriveJobs()
        self.title = scenarios
        self.first_planner = (*planners, *driven, best_planner())[0]

    def start(self) -> dict[str, Any]:
        """What the page needs first."""
        return {
            "version": __version__,
            "title": self.title,
            "scenarios": self.library.entries(),
            "planners": list(self.workshop.names),
            "planner": self.first_planner,
            "agents": list(AGENT_MODES),
        }

    def scenario(self, number: int) -> dict[str, Any]:
        return self.library.scenery(number).page()

    def rules(self, planner: str) -> dict[str, Any]:
        """The rules that judge a planner's plans, and whether they can pull at them."""
        found = self.workshop.planner(planner)
        return {
            "rules": self.workshop.weights(planner),
            "steerable": isinstance(found, DiffusionPlanner),
            "calibrated": self.workshop.usual(planner) is not None,
        }

    def edited(self, asked: WhatIf) -> tuple[Scenery, Scenario]:
        """The scenario as asked for, beginning at the moment."""
        scenery = self.library.scenery(asked.scenario)
        return scenery, from_step(apply_edits(scenery.scenario, asked.edits, scenery.origin), asked.step)

    def plan(self, asked: WhatIf) -> dict[str, Any]:
        """The moment with the plan from there."""
        begin = time.perf_counter()
        scenery, scenario = self.edited(asked)
        moment = self.workshop.plan(asked.planner, asked.rules, scenario, asked.seed)
        why = explain_drive(moment, self.workshop.usual(asked.planner))
        rules = () if why is None else why.rules
        return {
            "drive": drawn_data(moment, why, np.zeros(1, np.uint8), scenery.grid, REACH, rules),
            "rules": list(rules),
            "lights": pack(scenery.lights(scenario, 1)),
            "milliseconds": round(1000 * (time.perf_counter() - begin), 1),
        }

    def fan(self, asked: WhatIf) -> dict[str, Any]:
        """Plans that chance might have given as well: lines in step with each other."""
        scenery, scenario = self.edited(asked)
        plans = self.workshop.fan(asked.planner, asked.rules, scenario, asked.seed, asked.fan, asked.noise)
        thin = plans[:, FAN_STEP - 1 :: FAN_STEP]
        return {"plans": len(thin), "points": thin.shape[1], "xy": pack(scenery.grid.positions(thin))}

    def drive(self, asked: WhatIf) -> dict[str, Any]:
        """Begin to drive on from the moment: without the edits and, if there are any, with them."""
        scenery, changed = self.edited(asked)
        plain = from_step(scenery.scenario, asked.step)
        versions = [(plain, RuleChoice())]
        if asked.edits or asked.rules.steers:
            versions.append((replace(changed, token=plain.token), asked.rules))  # the token decides the noise
        for _, rules in versions:
            self.workshop.driver(asked.planner, rules)  # what cannot be driven is refused at once
        total = sum(scenario.frames - 1 for scenario, _ in versions)
        return {"job": self.jobs.begin(total, partial(self._drive, asked, scenery, versions)), "total": total}

    def _drive(
        self, asked: WhatIf, scenery: Scenery, versions: Sequence[tuple[Scenario, RuleChoice]], job: DriveJob
    ) -> dict[str, Any]:
        rollouts = []
        for scenario, rules in versions:
            explained = self.workshop.driver(asked.planner, rules, own=True)
            driver = CountedPlanner(explained, self.workshop.lock, job.step)
            rollouts.append(self.workshop.drive(driver, scenario, asked.agents, asked.seed))  # type: ignore[arg-type]
        return self._driven(asked, scenery, rollouts)

    def _driven(self, asked: WhatIf, scenery: Scenery, rollouts: Sequence[Rollout]) -> dict[str, Any]:
        usual = self.workshop.usual(asked.planner)
        reports = [DriveReport.of(rollout, explain_drive(rollout, usual)) for rollout in rollouts]
        names = dict.fromkeys(name for one in reports if one.explanation for name in one.explanation.rules)
        samples = max(len(rollout.ego) for rollout in rollouts)
        return {
            "samples": samples,
            "rules": list(names),
            "risks": [{"name": e.name, "rule": e.channel, "words": RISKS[e.name]} for e in PAPER],
            "drives": [drive_data(report, scenery.grid, REACH, list(names)) for report in reports],
            "lights": [pack(scenery.lights(rollout.scenario, samples)) for rollout in rollouts],
        }

    def save(self, asked: WhatIf) -> bytes:
        """The edited scenario, beginning at the moment, as neutral JSON."""
        _, scenario = self.edited(asked)
        tags = {**scenario.tags, "edited": f"{len(asked.edits)} edits of {scenario.token} at step {asked.step}"}
        named = replace(scenario, token=f"{scenario.token}-edited", tags=tags)
        named.validate()
        return json_text(scenario_to_json(named), indent=None, separators=(",", ":")).encode()

    def bring(self, data: dict[str, Any]) -> dict[str, Any]:
        """Take in a scenario in neutral JSON."""
        number = self.library.bring(data)
        return {"scenario": number, **self.library.entries()[number]}
