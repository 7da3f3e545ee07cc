"""Explain a drive: from what happened to why, and to what would have avoided it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from radp.attribution.afterwards import Judged, judge_drive
from radp.attribution.calibration import Calibration
from radp.attribution.online import LEVELS_OF, calibration_of
from radp.attribution.reasons import Reasons, reasons_of
from radp.attribution.teacher import Attribution, attribute, on_rules_terms
from radp.attribution.trade import trades_of
from radp.incidents.avoid import find_remedies
from radp.incidents.course import BEFORE, MOSTLY, beats, is_jump, presses
from radp.incidents.find import Event, events_of, touching
from radp.incidents.incident import OF_MOTION, Explained, Incident
from radp.incidents.trades import trades_at, trades_before, with_trade
from radp.incidents.words import TITLES, incident_sentences, sentence
from radp.metrics.drive import Drive, read_drive
from radp.metrics.score import ScenarioScore, evaluate
from radp.rules import needs_road, rule_set
from radp.rules.rulebook import tier_name, tier_of
from radp.rules.sets import V2
from radp.scenario import ObjectType, Scenario, Tracks
from radp.scenario.splits import Split
from radp.scene.builder import RULES_ALONE, build_scenes
from radp.sim.plan import STEP_SECONDS, Plan
from radp.sim.planner import Planner
from radp.sim.replay import observe_logs
from radp.sim.rollout import Rollout
from radp.sim.settings import Agents
from radp.sim.simulate import simulate

APART = 10  # samples between two moments that are both reported as the worst
AFTER = 10  # samples after an incident that still belong to it


def explain(
    rollout: Rollout,
    calibration: Calibration | str | None = LEVELS_OF,
    rules: str = "",
    worst: int | None = 3,
    verify: bool = True,
) -> Explained:
    """Every gate or metric that cost points, why it came so and what would have avoided it; then the moments of highest
    pressure without an incident (`worst` of them, None: every moment).

    `calibration`: usual levels, or the packaged model or folder that has them; None: not calibrated. `rules`: the rule
    set, that of the levels (v2 for a name) if not given. `verify=False` leaves out the search for what would have
    avoided it, which drives some hundred other drives for each incident.

    >>> split = radp.open_split("sumo14-val")[3:4]
    >>> (rollout,) = radp.simulate(radp.load_planner("idm"), split, keep_plans=True)
    >>> why = radp.explain(rollout, verify=False)
    >>> why.incidents[0].title, why.incidents[0].track, why.incidents[0].time
    ('Collision at fault', 's0-t0.1', 6.2)
    """
    levels = calibration if isinstance(calibration, str) else None
    if isinstance(calibration, str):
        calibration = calibration_of(None, calibration, rules or V2)
        levels = levels if calibration is not None else None
    elif calibration is not None:
        levels = str(calibration.about.get("planner", "given"))
    judged, score = judge_drive(rollout, calibration, rules), evaluate(rollout)
    return explain_judged(rollout, score, judged, levels, worst, verify)


def explain_judged(
    rollout: Rollout,
    score: ScenarioScore,
    judged: Judged | None,
    levels: str | None,
    worst: int | None = 3,
    verify: bool = True,
) -> Explained:
    """`explain` for a drive that was scored and judged already."""
    incidents = incidents_of(rollout, score, judged, 0.0 if verify else None)
    taken = {s for one in incidents for s in range(one.frame - BEFORE, one.end + AFTER + 1)}
    moments = [] if judged is None else _moments(rollout, judged, worst, taken)
    failure = rollout.failure or ("the drive keeps no plans" if judged is None and not incidents else None)
    scenario, value = rollout.scenario, None if np.isnan(score.score) else score.score
    set_name = "" if judged is None else judged.rule_set
    return Explained(
        scenario.token, scenario.kind, moments, failure, incidents, rollout.planner, value,
        levels if judged is not None else None, set_name,
    )  # fmt: skip


def incidents_of(
    rollout: Rollout, score: ScenarioScore, judged: Judged | None, verify: float | None = 0.0
) -> list[Incident]:
    """The dearest first; what would have avoided them is looked for where they cost at least `verify` (None: never)."""
    events = events_of(rollout, score)
    if not events:
        return []
    drive = read_drive(rollout)
    searched = [verify is not None and event.cost >= verify for event in events]
    return [_incident(rollout, score, drive, judged, event, search) for event, search in zip(events, searched)]


def _incident(
    rollout: Rollout, score: ScenarioScore, drive: Drive, judged: Judged | None, event: Event, verify: bool
) -> Incident:
    whom = event.agent >= 0
    time = round(float(rollout.time_us[event.frame] - rollout.time_us[0]) * 1e-6, 3)
    is_crash = event.metric == "no_ego_at_fault_collisions"
    incident = Incident(
        metric=event.metric,
        rule=event.rule,
        title=TITLES[event.metric],
        cost=event.cost,
        value=event.value,
        frame=event.frame,
        time=time,
        end=event.end,
        what=event.what,
        track=rollout.agents.ids[event.agent] if whom else None,
        object=ObjectType(int(rollout.agents.type[event.agent])).name if whom else None,
        impact=touching(drive, event.frame, event.agent) if is_crash else None,
        course=beats(rollout, drive, event),
        presses=presses(rollout, judged, event),
        trades=trades_before(rollout, judged, event),
    )
    if verify:
        found = find_remedies(rollout, score, judged, event)
        incident = replace(
            incident, no_return=found.no_return, remedies=found.remedies, tried=found.tried, note=found.note
        )
    else:
        incident = replace(incident, note="other drives that avoid it were not looked for")
    return replace(incident, sentences=incident_sentences(incident))


def explain_planner(
    planner: Planner,
    scenarios: Sequence[Scenario] | Split,
    calibration: Calibration | None = None,
    agents: Agents = "reactive",
    worst: int | None = 3,
    seed: int = 0,
    rules: str = "",
    verify: bool = True,
) -> list[Explained]:
    """Drive, and explain each drive."""
    return [
        explain(rollout, calibration, rules, worst, verify)
        for rollout in simulate(planner, scenarios, agents, seed=seed, keep_plans=True)
    ]


def explain_plan(
    plan: Plan, scenario: Scenario, step: int = 0, calibration: Calibration | None = None, rules: str = ""
) -> tuple[Explained, Attribution]:
    """One plan of anybody's, made `step` samples after the scenario's start, in the world as the log has it."""
    name = rules or (V2 if calibration is None else calibration.rule_set)
    chosen = rule_set(name)
    scene = build_scenes(observe_logs([scenario], step), replace(RULES_ALONE, road=needs_road(chosen)))
    trajectory, context = on_rules_terms(plan, scene)
    why = attribute(trajectory, context, None, calibration, chosen)
    reasons = reasons_of(why, trajectory, context, chosen, calibration)
    frame = scenario.start + step
    seconds = float(scenario.time_us[frame] - scenario.time_us[scenario.start]) * 1e-6
    first = float(trajectory[0, 0, :2].norm()) / STEP_SECONDS - float(context.speed_now[0])
    seam = [name in OF_MOTION and reasons.seam[0, m] > MOSTLY for m, name in enumerate(reasons.rules)]
    moment = _moment(reasons, 0, step, seconds, scenario.tracks, [round(first, 2) if s else None for s in seam])
    (trade,) = trades_of(trajectory, context, chosen)
    moment = with_trade(moment, trade, chosen, scenario.tracks)
    levels = None if calibration is None else str(calibration.about.get("planner", "given"))
    return Explained(scenario.token, scenario.kind, [moment], levels=levels, rule_set=name), why


def _moments(rollout: Rollout, judged: Judged, worst: int | None, taken: Collection[int]) -> list[dict[str, Any]]:
    reasons = judged.reasons
    chosen = range(len(judged.plans)) if worst is None else worst_moments(reasons, worst, taken)
    moments, trades = [moment_of(rollout, judged, i) for i in chosen], trades_at(judged, chosen)
    return [with_trade(one, trade, judged.rules, rollout.agents) for one, trade in zip(moments, trades)]


def at_moment(explained: Explained, seconds: float) -> Explained:
    """Of an explanation with every moment: the one at `seconds`, and the incidents that it belongs to."""
    near = [moment for moment in explained.moments if abs(moment["time"] - seconds) < STEP_SECONDS / 2 + 1e-6]
    during = [
        one
        for one in explained.incidents
        if one.time - BEFORE * STEP_SECONDS - 1e-6 <= seconds <= one.time + (one.end - one.frame + AFTER) * STEP_SECONDS
    ]
    return replace(explained, moments=near[:1], incidents=during)


def moment_of(rollout: Rollout, judged: Judged, i: int) -> dict[str, Any]:
    """What presses on the plan of sample i."""
    seconds = float(rollout.time_us[i] - rollout.time_us[0]) * 1e-6
    jumps = [is_jump(judged, i, m) for m in range(len(judged.reasons.rules))]
    return _moment(judged.reasons, i, i, seconds, rollout.agents, jumps)


def worst_moments(reasons: Reasons, count: int, taken: Collection[int] = ()) -> list[int]:
    """Samples with the highest pressure of any rule, at least a second apart, none of `taken`, in the order of time."""
    chosen: list[int] = []
    for i in np.argsort(-reasons.pressure.max(1), kind="stable"):
        if len(chosen) < count and int(i) not in taken and all(abs(int(i) - other) >= APART for other in chosen):
            chosen.append(int(i))
    return sorted(chosen)


def _moment(
    reasons: Reasons, i: int, step: int, seconds: float, tracks: Tracks, jumps: Sequence[float | None]
) -> dict[str, Any]:
    """What is said about plan i, made at `step`, for machines, and the sentence for people."""
    track, thing = int(reasons.track[i]), None
    if track >= 0:
        kind = ObjectType(int(tracks.type[track])).name
        thing = {"track": tracks.ids[track], "object": kind, "share": round(float(reasons.share[i]), 4)}
    rules = [{**_rule(reasons, i, m), "jump": jumps[m]} for m in range(len(reasons.rules))]
    moment = {"step": step, "time": round(seconds, 3), "object": thing, "rules": rules}
    return {**moment, "sentence": sentence(moment)}


NUMBERS = ("pressure", "level", "begins", "peak", "margin", "worst", "seam")  # of a rule in a moment


def _rule(reasons: Reasons, i: int, m: int) -> dict[str, Any]:
    numbers = {name: getattr(reasons, name)[i, m] for name in NUMBERS}
    clean = {name: None if np.isnan(value) else round(float(value), 4) for name, value in numbers.items()}
    name = reasons.rules[m]
    named = {"rule": name, "tier": tier_name(tier_of(name)), "calibrated": reasons.calibrated[m]}
    return {**named, **clean, "unit": reasons.units[m]}
