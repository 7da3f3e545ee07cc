"""Plans explained in sentences: which rule presses, how strongly, from when on, because of whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from radp.attribution.calibration import Calibration
from radp.attribution.online import ExplainedPlanner, plan_and_scene
from radp.attribution.reasons import Reasons, reasons_of
from radp.attribution.teacher import Attribution, attribute, on_rules_terms
from radp.report.viewer.explain import scenes_of_drive
from radp.report.viewer.words import kind_words, margin_words, object_words
from radp.rules import Rule, needs_road, registered_rules, rule_set
from radp.rules.sets import ROAD, V2
from radp.scenario import ObjectType, Scenario, Tracks
from radp.scenario.splits import Split
from radp.scene.builder import RULES_ALONE, build_scenes
from radp.scene.scene import Scene
from radp.sim.observation import Observation
from radp.sim.plan import Plan
from radp.sim.planner import Planner
from radp.sim.replay import observe_logs
from radp.sim.rollout import Rollout
from radp.sim.settings import Agents
from radp.sim.simulate import simulate

APART = 10  # samples between two moments that are both reported as the worst
OF_MOTION = ("kinematics", "comfort")  # rules of which seam and plan are reported apart
UNCALIBRATED = "not calibrated: the pressures of different rules cannot be compared"


@dataclass(frozen=True)
class Explained:
    """A scenario and its moments in the order of time, ready for JSON."""

    token: str
    kind: str
    moments: list[dict[str, Any]]
    failure: str | None = None


def explain_planner(
    planner: Planner,
    scenarios: Sequence[Scenario] | Split,
    calibration: Calibration | None = None,
    agents: Agents = "reactive",
    worst: int | None = None,
    seed: int = 0,
    rules: str = "",
) -> list[Explained]:
    """Drive with the teacher beside the planner; the `worst` moments of each drive, or all with None.

    `rules` is the rule set: that of the calibration, or v2, if not given.
    """
    listener, out = _Listener(planner, calibration, rules or _set_of(calibration)), []
    for rollout in simulate(listener, scenarios, agents, seed=seed):
        token = rollout.scenario.token
        steps = [s for s in range(len(rollout.time_us)) if (token, s) in listener.heard]
        if not steps:
            out.append(Explained(token, rollout.scenario.kind, [], rollout.failure))
            continue
        reasons = Reasons.join([listener.heard.pop((token, s)) for s in steps])
        chosen = range(len(steps)) if worst is None else worst_moments(reasons, worst)
        seconds = (rollout.time_us - rollout.time_us[0]) * 1e-6
        moments = [_moment(reasons, i, steps[i], float(seconds[steps[i]]), rollout.agents) for i in chosen]
        out.append(Explained(token, rollout.scenario.kind, moments, rollout.failure))
    return out


def explain_plan(
    plan: Plan, scenario: Scenario, step: int = 0, calibration: Calibration | None = None, rules: str = ""
) -> tuple[Explained, Attribution]:
    """One plan of anybody's, made `step` samples after the scenario's start, in the world as the log has it."""
    judges = rule_set(rules or _set_of(calibration))
    scene = build_scenes(observe_logs([scenario], step), replace(RULES_ALONE, road=needs_road(judges)))
    reasons, why = _reasons(plan, scene, calibration, judges)
    frame = scenario.start + step
    seconds = float(scenario.time_us[frame] - scenario.time_us[scenario.start]) * 1e-6
    moment = _moment(reasons, 0, step, seconds, scenario.tracks)
    return Explained(scenario.token, scenario.kind, [moment]), why


def explain_rollout(
    rollout: Rollout, calibration: Calibration | None = None, worst: int | None = 3, rules: str = ""
) -> Explained:
    """The plans that a drive kept, whoever made them, each in the moment it was made."""
    scenario = rollout.scenario
    if rollout.plans is None:
        return Explained(scenario.token, scenario.kind, [], "the drive keeps no plans")
    chosen_rules = rule_set(rules or _set_of(calibration))
    scene = scenes_of_drive(rollout, len(rollout.plans), needs_road(chosen_rules))
    reasons, _ = _reasons(Plan(torch.from_numpy(rollout.plans)), scene, calibration, chosen_rules)
    chosen = range(len(rollout.plans)) if worst is None else worst_moments(reasons, worst)
    seconds = (rollout.time_us - rollout.time_us[0]) * 1e-6
    moments = [_moment(reasons, i, i, float(seconds[i]), rollout.agents) for i in chosen]
    return Explained(scenario.token, scenario.kind, moments, rollout.failure)


def _set_of(calibration: Calibration | None) -> str:
    return V2 if calibration is None else calibration.rule_set


def worst_moments(reasons: Reasons, count: int) -> list[int]:
    """Samples with the highest pressure of any rule, at least a second apart, in the order of time."""
    chosen: list[int] = []
    for i in np.argsort(-reasons.pressure.max(1), kind="stable"):
        if len(chosen) < count and all(abs(int(i) - other) >= APART for other in chosen):
            chosen.append(int(i))
    return sorted(chosen)


class _Listener(ExplainedPlanner):
    """Drives as its planner does, and remembers why each plan was pressed: (token, step) -> Reasons of one plan."""

    def __init__(self, planner: Planner, calibration: Calibration | None, rules: str) -> None:
        super().__init__(planner, calibration, rules)
        self.heard: dict[tuple[str, int], Reasons] = {}

    def plan(self, observation: Observation) -> Plan:
        plan, scene = plan_and_scene(self.planner, observation, needs_road(self.rules))
        reasons, _ = _reasons(plan, scene, self.calibration, self.rules)
        for row, briefing in enumerate(observation.briefings):
            self.heard[briefing.token, observation.step] = reasons.of(row)
        return plan


def _reasons(
    plan: Plan, scene: Scene, calibration: Calibration | None, rules: Sequence[Rule]
) -> tuple[Reasons, Attribution]:
    trajectory, context = on_rules_terms(plan, scene)
    why = attribute(trajectory, context, None, calibration, rules)
    return reasons_of(why, trajectory, context, rules, calibration), why


def _moment(reasons: Reasons, i: int, step: int, seconds: float, tracks: Tracks) -> dict[str, Any]:
    """What is said about plan i, made at `step`, for machines, and the sentence for people."""
    track, thing = int(reasons.track[i]), None
    if track >= 0:
        kind = ObjectType(int(tracks.type[track])).name
        thing = {"track": tracks.ids[track], "object": kind, "share": round(float(reasons.share[i]), 4)}
    rules = [_rule(reasons, i, m) for m in range(len(reasons.rules))]
    moment = {"step": step, "time": round(seconds, 3), "object": thing, "rules": rules}
    return {**moment, "sentence": sentence(moment)}


def _rule(reasons: Reasons, i: int, m: int) -> dict[str, Any]:
    numbers = {name: getattr(reasons, name)[i, m] for name in ("pressure", "level", "begins", "peak", "margin", "seam")}
    clean = {name: None if np.isnan(value) else round(float(value), 4) for name, value in numbers.items()}
    return {"rule": reasons.rules[m], "calibrated": reasons.calibrated[m], **clean, "unit": reasons.units[m]}


def sentence(moment: dict[str, Any]) -> str:
    """One sentence about a moment."""
    ordered = sorted(moment["rules"], key=lambda rule: -rule["pressure"])
    top, at = ordered[0], f"At {moment['time']:.1f} s "
    if top["begins"] is None:
        return f"{at}no rule presses on the plan."
    calm = top["level"] is not None and top["level"] < 1
    opening = f"nothing presses more than usual; most of all {top['rule']}" if calm else f"{top['rule']} presses most"
    words = f"{at}{opening}, {_strength(top)}, from {top['begins']:.1f} s of the plan on (most at {top['peak']:.1f} s)"
    if top["rule"] in OF_MOTION and top.get("seam") is not None:
        words += f", {100 * top['seam']:.0f} % of it in how the plan begins (first 0.3 s)"
    if top["rule"] == "collision" and moment["object"] is not None:
        named = object_words(moment["object"]).strip(" ()")
        words += f", because of {named} ({100 * moment['object']['share']:.0f} % of it)"
    describes = {rule.name: rule.describes for rule in (*rule_set(ROAD), *registered_rules())}.get(
        top["rule"], top["rule"]
    )
    words += f": {describes}{margin_words(top)}" if top["margin"] is not None else ""
    others = [f"{rule['rule']} ({_strength(rule)})" for rule in ordered[1:] if (rule["level"] or 0) >= 1]
    return words + (f". Also above usual: {', '.join(others)}." if others else ".")


def _strength(rule: dict[str, Any]) -> str:
    if rule["level"] is None:
        return f"pressure {rule['pressure']:.2f} (not calibrated)"
    return f"{rule['level']:.1f} times its usual level"


def explained_text(explained: Sequence[Explained], calibrated: bool) -> str:
    """A heading and the sentences of each scenario."""
    lines = [] if calibrated else [UNCALIBRATED]
    for one in explained:
        lines.append(f"{kind_words(one.kind)} ({one.token})")
        lines += [f"  {moment['sentence']}" for moment in one.moments]
        lines += [f"  The planner failed: {one.failure}"] if one.failure else []
    return "\n".join(lines)
