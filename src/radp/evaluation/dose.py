"""Dose and response: what a planner that takes weights of rules does when one weight grows and all others stay.

For each rule the same scenarios are driven at several weights of that rule alone. The matched cost is the mean cost of
that rule (of the set v2) over the plans of a drive, one in half a second, the matched risks are those that its
pressure stands for (`evaluation.endpoints`); both on the states that the planner came to, so that they tell what one
gets, not what a plan would cost elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from radp.attribution.afterwards import costs_of_drive
from radp.evaluation.closed_loop import Run, run_simulation, summarise_run
from radp.evaluation.endpoints import ENDPOINTS, Endpoint
from radp.evaluation.planners import COLUMNS, Row
from radp.evaluation.risk import future_risk, severities
from radp.evaluation.settings import DoseResponse, Simulation
from radp.metrics.score import evaluate
from radp.planners import load_planner
from radp.rules import default_rules
from radp.rules.sets import ROAD_V2, V2
from radp.runs.errors import BadInput
from radp.runs.progress import Progress
from radp.statistics.bootstrap import known_mean, means_of
from radp.statistics.estimate import Estimate

DEFAULT = 1.0
EVERY = 5  # plans (0.1 s) from one whose cost is taken to the next
Word = Literal["monotone", "falls", "flat", "rises", "no order"]


@dataclass(frozen=True)
class DosedDrives:
    """The drives at one weight of one rule: N scenarios in the order of their tokens."""

    weight: float
    row: Row  # sub-scores
    cost: np.ndarray  # (N,) matched cost; NaN where the planner failed
    risk: dict[str, np.ndarray]  # (N,) of each matched endpoint


@dataclass(frozen=True)
class Verdict:
    """Whether the matched cost falls as the weight grows.

    monotone: it falls at every step, and from the lowest weight to the highest that is shown; falls: shown from end to
    end, but not at every step; rises: the other way round; flat: nothing is shown; no order: some step is, the ends are
    not.
    """

    word: Word
    ends: Estimate  # highest weight minus lowest, paired by scenario
    steps: tuple[Estimate, ...]  # each weight minus the one before
    breaks: tuple[tuple[float, float], ...] = ()  # steps at which it rises

    def __str__(self) -> str:
        where = ", ".join(f"{a:g} to {b:g}" for a, b in self.breaks)
        return f"{self.word}, but rises from {where}" if where and self.word == "falls" else self.word


@dataclass(frozen=True)
class Response:
    """All doses of one rule, the lowest weight first; differences are to the default, paired by scenario."""

    rule: str
    doses: tuple[DosedDrives, ...]
    verdict: Verdict

    @property
    def default(self) -> DosedDrives:
        return next(dose for dose in self.doses if dose.weight == DEFAULT)

    def change(self, dose: DosedDrives) -> dict[str, Estimate]:
        """Of matched cost, matched risks and all sub-scores, against the default."""
        base = self.default
        rows = {"cost": dose.cost - base.cost}
        rows |= {f"risk {name}": dose.risk[name] - base.risk[name] for name in dose.risk}
        rows |= {metric: dose.row.values[metric] - base.row.values[metric] for metric in COLUMNS}
        return dict(zip(rows, means_of(np.stack(list(rows.values())), groups=dose.row.logs)))

    def to_json(self) -> dict[str, Any]:
        return {
            "rule": self.rule, "verdict": self.verdict.word, "breaks": [list(one) for one in self.verdict.breaks],
            "ends": self.verdict.ends.to_json(), "steps": [step.to_json() for step in self.verdict.steps],
            "doses": [
                {"weight": dose.weight, "cost": float(known_mean(dose.cost)),
                 "change": {name: one.to_json() for name, one in self.change(dose).items()}}
                for dose in self.doses
            ],
        }  # fmt: skip


def dose_response(wanted: DoseResponse, out: Path, workers: int = 1) -> list[Response]:
    """Drive everything (what is there already is kept) and compare; the default is driven once for all rules."""
    rules, doses = rules_of(wanted), doses_of(wanted)
    default = _drive(wanted, out, "", DEFAULT, workers)
    found = []
    for rule in rules:
        measured = [default if dose == DEFAULT else _drive(wanted, out, rule, dose, workers) for dose in doses]
        matched = tuple(one.of(rule, dose) for one, dose in zip(measured, doses))
        costs = np.stack([one.cost for one in matched])
        found.append(Response(rule, matched, verdict_of(costs, doses, matched[0].row.logs)))
    return found


def verdict_of(costs: np.ndarray, doses: Sequence[float], logs: np.ndarray | None = None) -> Verdict:
    """Matched costs (D, N) at D growing weights -> whether they fall."""
    rows = np.concatenate((costs[-1:] - costs[:1], np.diff(costs, axis=0)))
    ends, *steps = means_of(rows, groups=logs)
    up = tuple((a, b) for a, b, step in zip(doses, doses[1:], steps) if step.value > 0)
    word: Word = "flat"
    if ends.excludes_zero:
        word = "rises" if ends.value > 0 else "falls" if up else "monotone"
    elif any(step.excludes_zero for step in steps):
        word = "no order"
    return Verdict(word, ends, tuple(steps), up)


@dataclass(frozen=True)
class _Measured:
    """The drives of one run: costs by rule, risks by endpoint, sub-scores."""

    row: Row
    costs: dict[str, np.ndarray]
    risks: dict[str, np.ndarray]

    def of(self, rule: str, weight: float) -> DosedDrives:
        matched = {e.name: self.risks[e.name] for e in ENDPOINTS if e.channel == rule}
        return DosedDrives(weight, self.row, self.costs[rule], matched)


def doses_of(wanted: DoseResponse) -> tuple[float, ...]:
    """The weights in order, the default among them."""
    doses = tuple(sorted({DEFAULT, *wanted.doses}))
    if min(doses) <= 0 or len(doses) < 2:
        raise BadInput("doses are weights above 0, at least one of them other than 1")
    return doses


def rules_of(wanted: DoseResponse) -> tuple[str, ...]:
    """Those that are asked for, all of which the planner takes weights of."""
    model = getattr(load_planner(wanted.planner), "model", None)
    taken = tuple(model.config.rule_weights) if model is not None else ()
    if not taken:
        raise BadInput(f"planner {wanted.planner!r} takes no weights of rules: it was not trained with them")
    for rule in wanted.rules:
        if rule not in taken:
            raise BadInput(f"planner {wanted.planner!r} takes no weight of {rule!r}, only of {', '.join(taken)}")
    if len(set(wanted.rules)) != len(wanted.rules):
        raise BadInput("a rule was named twice")
    return wanted.rules or taken


def _drive(wanted: DoseResponse, out: Path, rule: str, weight: float, workers: int) -> _Measured:
    """One weight of one rule, in a folder of its own."""
    beyond = set(rules_of(wanted)) - {one.name for one in default_rules()}
    job = Simulation(
        planner=wanted.planner, scenarios=wanted.scenarios, agents=wanted.agents, limit=wanted.limit, seed=wanted.seed,
        keep_plans=True, weights=(f"{rule}={weight:g}",) if rule else (),
    )  # fmt: skip
    folder = out / (f"{rule}-{weight:g}" if rule else "default")
    run = run_simulation(job, folder, workers=workers)
    summarise_run(run)
    row = Row.read(folder, Path(job.scenarios).name, job.agents, Path(job.planner).name, job.seed)
    return _Measured(row, *_measure(run, ROAD_V2 if beyond else V2))


def _measure(run: Run, rules: str) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Mean cost of each rule and mean risk of each endpoint over the frames of each drive, by token."""
    rows: dict[str, tuple[dict[str, float], dict[str, float]]] = {}
    with Progress("drives measured", len(run.split)) as progress:
        for rollout in run.rollouts():
            costs, risks = {}, {}
            if rollout.failure is None:
                judged = costs_of_drive(rollout, rules, EVERY)
                costs = {name: float(known_mean(values)) for name, values in judged.items()}
                severity = severities(rollout, evaluate(rollout))
                risks = {e.name: _mean_risk(severity[e.name], e) for e in ENDPOINTS}
            rows[rollout.scenario.token] = costs, risks
            progress.advance()
    found = [rows[token] for token in sorted(rows)]
    return _columns([costs for costs, _ in found]), _columns([risks for _, risks in found])


def _mean_risk(severity: np.ndarray, endpoint: Endpoint) -> float:
    return float(known_mean(future_risk(severity[None], np.array([len(severity)]), endpoint)[0]))


def _columns(rows: Sequence[dict[str, float]]) -> dict[str, np.ndarray]:
    """Rows by name -> (N,) by name, NaN where a row lacks it."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: np.array([row.get(name, np.nan) for row in rows], dtype=np.float64) for name in names}
