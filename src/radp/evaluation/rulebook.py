"""Drives and planners by the rulebook: how much of each rule was broken, and who keeps the higher tiers better."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import torch

from radp.evaluation.closed_loop import Run
from radp.evaluation.planners import names_of, run_folder
from radp.evaluation.settings import Comparison, Simulation
from radp.geometry.frames import pose_frame
from radp.metrics.score import evaluate
from radp.rules import RuleContext, rule_set
from radp.rules.body import FRONT
from radp.rules.motion import with_origin
from radp.rules.rulebook import TIERS, TOLERANCES, Preference, prefer
from radp.rules.sets import ROAD
from radp.rules.stopping import KEPT
from radp.runs.errors import BadInput
from radp.runs.progress import Progress
from radp.scenario.parts import log_of
from radp.scene.builder import FUTURE, RULES_ALONE, scenes_from_log
from radp.sim.driven_log import driven_log
from radp.sim.plan import STEP_SECONDS
from radp.sim.rollout import Rollout
from radp.statistics.bootstrap import mean_of
from radp.statistics.estimate import Estimate

STRIDE = 10  # samples between the moments from which a drive is looked at
SAME_LINE = 3.0  # m by which two looks may place the same stop line apart
VIEW = replace(RULES_ALONE, road=True)
NAMES = tuple(name for names in TIERS for name in names)


@torch.no_grad()
def drive_violations(rollout: Rollout) -> dict[str, float]:
    """How much a drive breaks each rule: the violation above zero, summed over time (unit of the rule times s).

    The drive is looked at from every second on, 8 s ahead, with everybody where they really went; at each moment the
    largest violation of any such look counts. `goal` is the progress that lacks to the expert's, in metres. A drive
    that failed has no values.
    """
    if rollout.failure is not None or len(rollout.time_us) < 3:
        return {}
    log, samples = driven_log(rollout), len(rollout.time_us)
    starts = list(range(0, samples - 1, STRIDE))
    scene = scenes_from_log(log, [log.start + s for s in starts], VIEW, short_future="zeros")
    assert scene.ego_agent_future is not None
    steps = torch.arange(1, FUTURE + 1)
    there = torch.tensor(starts)[:, None] + steps < samples  # (B, H)
    plan = _held(pose_frame(scene.ego_agent_future), there)
    context = RuleContext.from_scene(scene, logged=True, horizon=FUTURE).bind(plan, corners=True)
    moment = torch.tensor(starts)[:, None] + steps - 1
    found = {}
    for rule in rule_set(ROAD):
        if rule.name not in NAMES or rule.name == "goal":
            continue
        over = rule.violation(plan, context).masked_fill(~there, -torch.inf).clamp(min=0).double()
        if rule.name == "red_light":
            over = while_red(over, plan, context, starts)
        worst = torch.zeros(samples - 1, dtype=torch.float64)
        worst.scatter_reduce_(0, moment[there], over[there], "amax")
        found[rule.name] = float(worst.sum()) * STEP_SECONDS
    details = evaluate(rollout).details
    if details is not None:
        found["goal"] = max(0.0, details.progress.expert_total - details.progress.ego_total)
    return found


def while_red(over: torch.Tensor, plan: torch.Tensor, context: RuleContext, starts: Sequence[int]) -> torch.Tensor:
    """Violations (B, H) of red lights, seen from the samples `starts` (B,) -> without lines that were passed later than
    they turned: a look says only what the light is as it begins."""
    line = context.route.red_line(FRONT)
    driven = torch.diff(with_origin(plan)[..., :2], dim=1).norm(dim=-1).cumsum(1)
    over = over.clone()
    for i, start in enumerate(starts):
        passed = (over[i] > KEPT).nonzero()
        if not len(passed):
            continue
        step = int(passed[0])
        last = max(j for j, other in enumerate(starts) if other <= start + step)  # the last look before the line
        if not float(line[last]) - FRONT <= float(driven[last, start + step - starts[last]]) + SAME_LINE:
            over[i, step:] = 0.0
    return over


def _held(plan: torch.Tensor, there: torch.Tensor) -> torch.Tensor:
    """(B, H, 4) with the last known pose after the end of the drive."""
    last = there.sum(1).clamp(min=1) - 1
    end = plan[torch.arange(len(plan)), last].unsqueeze(1)
    return torch.where(there.unsqueeze(-1), plan, end)


def compare_drives(first: Rollout, second: Rollout) -> dict[str, Any]:
    """Two drives of the same scenario by the rulebook, JSON-ready: who keeps the higher tiers better, and what decides.

    >>> split, planner = radp.open_split("sumo14-val")[:1], radp.load_planner("log_replay")
    >>> (drive,) = radp.simulate(planner, split, agents="nonreactive")
    >>> radp.compare_drives(drive, drive)["sentence"]
    'log_replay is equal to log_replay'
    """
    if first.scenario.token != second.scenario.token:
        raise BadInput(
            f"drives of {first.scenario.token!r} and {second.scenario.token!r} cannot be compared: two scenarios"
        )
    one, other = drive_violations(first), drive_violations(second)
    preference = _failed(first, second) or prefer({name: one[name] - other[name] for name in one if name in other})
    found = preference.to_json()
    sentence = f"{first.planner} is {outcome_words(found, second.planner)}"
    return {"token": first.scenario.token, "planners": [first.planner, second.planner], "sentence": sentence,
            "violations": [one, other], **found}  # fmt: skip


def _failed(first: Rollout, second: Rollout) -> Preference | None:
    """A drive that failed is worse than one that did not."""
    failed = first.failure is not None, second.failure is not None
    if failed == (False, False):
        return None
    return Preference("equal") if all(failed) else Preference("worse" if failed[0] else "better", 0)


def comparison_text(found: Mapping[str, Any]) -> str:
    """The two drives by tiers, and who is better."""
    lines = [f"{found['token']}: {found['sentence']}"]
    one, other = found["violations"]
    for number, names in enumerate(TIERS):
        cells = [f"{name} {one[name]:.2f} / {other[name]:.2f}" for name in names if name in one and name in other]
        if cells:
            lines.append(f"  {number + 1}. {', '.join(cells)}")
    return "\n".join(lines)


def outcome_words(found: Mapping[str, Any], other: str) -> str:
    """For people: "better than idm, decided in tier 1 (safety): vulnerable"."""
    words = {"better": "better than", "worse": "worse than", "incomparable": "incomparable with", "equal": "equal to"}
    said = f"{words[found['outcome']]} {other}"
    if found["tier"] is None:
        return said
    rules = ", ".join([*found["gains"], *(f"not {name}" for name in found["losses"])])
    return f"{said}, decided in tier {found['tier'] + 1} ({found['tier_name']}){f': {rules}' if rules else ''}"


@dataclass(frozen=True)
class JudgedDrives:
    """One planner on one split in one mode: violations (N,) by rule, NaN where the drive failed; by token."""

    split: str
    agents: str
    planner: str
    tokens: tuple[str, ...]
    violations: dict[str, np.ndarray]

    @classmethod
    def of(cls, rollouts: Iterable[Rollout], split: str, agents: str, planner: str, count: int) -> JudgedDrives:
        rows = []
        with Progress("drives judged", count) as progress:
            for rollout in rollouts:
                rows.append((rollout.scenario.token, drive_violations(rollout)))
                progress.advance()
        rows.sort(key=lambda row: row[0])
        values = {name: np.array([row.get(name, np.nan) for _, row in rows]) for name in NAMES}
        return cls(split, agents, planner, tuple(token for token, _ in rows), values)

    @classmethod
    def read(cls, job: Simulation, out: Path) -> JudgedDrives:
        """The drives of one row of a table of planners."""
        run = Run.open(run_folder(job, out))
        return cls.of(run.rollouts(), *names_of(job), len(run.split))


@dataclass(frozen=True)
class PairOfPlanners:
    """Two planners on the same scenarios."""

    first: JudgedDrives
    second: JudgedDrives
    differences: dict[str, Estimate]  # first minus second, by rule, with 95% intervals over logs
    overall: Preference  # from means: a rule counts if its interval excludes zero and its mean the tolerance
    counts: dict[str, int]  # outcomes by scenario

    def to_json(self) -> dict[str, Any]:
        return {
            "split": self.first.split, "agents": self.first.agents, "first": self.first.planner,
            "second": self.second.planner, **self.overall.to_json(), "scenarios": self.counts,
            "differences": {name: estimate.to_json() for name, estimate in self.differences.items()},
        }  # fmt: skip


def judge_planners(wanted: Comparison, out: Path) -> list[PairOfPlanners]:
    """Each pair of planners of a table that was driven, by the drives of its first seed."""
    jobs = [
        Simulation(planner=planner, scenarios=split, agents=agents, limit=wanted.limit, seed=wanted.seed)
        for split, agents, planner in product(wanted.splits, wanted.agents, wanted.planners)
    ]
    return compare_planners([JudgedDrives.read(job, out) for job in jobs])


def compare_planners(judged: Sequence[JudgedDrives]) -> list[PairOfPlanners]:
    """Each pair of planners that drove the same split in the same mode."""
    return [
        _pair(a, b)
        for a, b in combinations(judged, 2)
        if (a.split, a.agents, a.tokens) == (b.split, b.agents, b.tokens)
    ]


def _pair(a: JudgedDrives, b: JudgedDrives) -> PairOfPlanners:
    logs = np.array([log_of(token) for token in a.tokens])
    less = {name: a.violations[name] - b.violations[name] for name in NAMES}
    known = {name: value for name, value in less.items() if np.isfinite(value).any()}
    estimates = {name: mean_of(value, groups=logs) for name, value in known.items()}
    shown = {name: one.value for name, one in estimates.items() if one.excludes_zero}
    counts = {"better": 0, "worse": 0, "incomparable": 0, "equal": 0, "failed": 0}
    for i in range(len(a.tokens)):
        row = {name: float(value[i]) for name, value in known.items() if np.isfinite(value[i])}
        counts[prefer(row).outcome if row else "failed"] += 1
    return PairOfPlanners(a, b, estimates, prefer(shown), counts)


def rulebook_table(pairs: Sequence[PairOfPlanners]) -> str:
    """Markdown."""
    lines = [
        "| split | agents | planner | against | by the rulebook | scenarios better / worse / incomparable / equal |",
        "|---|---|---|---|---|---|",
    ]
    for pair in pairs:
        said = outcome_words(pair.overall.to_json(), pair.second.planner)
        counts = " / ".join(str(pair.counts[name]) for name in ("better", "worse", "incomparable", "equal"))
        names = f"{pair.first.split} | {pair.first.agents} | {pair.first.planner} | {pair.second.planner}"
        lines.append(f"| {names} | {said} | {counts} |")
    tolerances = ", ".join(f"{name} {value:g}" for name, value in TOLERANCES.items())
    return "\n".join(
        [*lines, "", f"Differences within these are none: {tolerances} (unit of the rule times s; goal: m)."]
    )
