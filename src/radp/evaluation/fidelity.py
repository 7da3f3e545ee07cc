"""Fidelity of the head: what the planner reports about its plans against the exact teacher, on the same frames.

All frames of a split count alike (appendix, equations of head-teacher fidelity); intervals resample whole logs with
all their frames, and rank every resample anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from radp.evaluation.closed_loop import run_simulation
from radp.evaluation.settings import FidelityCheck, Simulation
from radp.runs.errors import BadInput
from radp.scenario.parts import log_of
from radp.sim.rollout import Rollout
from radp.statistics.bootstrap import RESAMPLES, draws, estimate_of, macro_estimate
from radp.statistics.estimate import LEGEND, Estimate, interval
from radp.statistics.groups import members
from radp.statistics.ranks import resampled_spearman


@dataclass(frozen=True)
class PressureFrames:
    """F synchronized frames of S scenarios: predicted and exact pressures (F, M), scenario (F,) index from 0."""

    rules: tuple[str, ...]
    predicted: np.ndarray
    exact: np.ndarray
    scenario: np.ndarray
    logs: tuple[str, ...]  # (S,) the log of each scenario


@dataclass(frozen=True)
class Fidelity:
    """Agreement of head and teacher. A rule whose pressure never changes has no Spearman; the macro leaves it out."""

    split: str
    rules: tuple[str, ...]
    frames: int
    spearman: tuple[Estimate, ...]  # (M,)
    mae: tuple[Estimate, ...]  # (M,)
    macro_spearman: Estimate
    macro_mae: Estimate
    top1: Estimate

    def to_json(self) -> dict[str, Any]:
        by_rule = {
            rule: {"spearman": rho.to_json(), "mae": mae.to_json()}
            for rule, rho, mae in zip(self.rules, self.spearman, self.mae)
        }
        whole = {name: getattr(self, name).to_json() for name in ("macro_spearman", "macro_mae", "top1")}
        return {"split": self.split, "frames": self.frames, **whole, "rules": by_rule}


def frames_of(rollouts: Iterable[Rollout]) -> PressureFrames:
    """Frames that have both pressures; BadInput where the planner predicted none or the teacher was not asked."""
    predicted: list[np.ndarray] = []
    exact: list[np.ndarray] = []
    scenario: list[np.ndarray] = []
    logs: list[str] = []
    names: list[tuple[str, ...]] = []
    for rollout in rollouts:
        if rollout.pressures is None or rollout.exact_pressures is None:
            if rollout.failure is None:
                missing = "the planner has no head" if rollout.pressures is None else "the teacher was not asked"
                raise BadInput(f"scenario {rollout.scenario.token!r} has no two pressures to compare: {missing}")
            continue
        predicted.append(rollout.pressures)
        exact.append(rollout.exact_pressures)
        scenario.append(np.full(len(rollout.pressures), len(scenario)))
        logs.append(log_of(rollout.scenario.token))
        names.append(rollout.rules)
    if not predicted or len(set(names)) > 1:
        raise BadInput("no drives with pressures" if not predicted else f"drives have different rules: {set(names)}")
    both = np.concatenate(predicted).astype(np.float64), np.concatenate(exact).astype(np.float64)
    known = np.atleast_1d(np.isfinite(both[0]).all(0))  # rules that the head knows
    rules = tuple(rule for rule, k in zip(names[0], known) if k)
    return PressureFrames(rules, both[0][:, known], both[1][:, known], np.concatenate(scenario), tuple(logs))


def fidelity(frames: PressureFrames, split: str = "", seed: int = 0, resamples: int = RESAMPLES) -> Fidelity:
    """Per-rule and macro Spearman, mean absolute error and Top-1 with 95% intervals over scenarios."""
    count, size, log = len(frames.logs), len(frames.predicted), members(frames.logs, len(frames.logs))[frames.scenario]
    groups = int(log.max()) + 1
    errors = np.abs(frames.predicted - frames.exact)
    same = frames.predicted.argmax(1) == frames.exact.argmax(1)
    sums = np.stack([np.bincount(log, column, groups) for column in (*errors.T, same, np.ones(size))], 1)
    ratios, ranked = [], []
    for counts in draws(groups, seed, resamples):
        total = counts @ sums
        ratios.append(total[:, :-1] / total[:, -1:])
        ranked.append(resampled_spearman(frames.predicted, frames.exact, log, counts))
    rho = resampled_spearman(frames.predicted, frames.exact, log, np.ones((1, groups)))[0]
    drawn_rho, drawn = np.concatenate(ranked), np.concatenate(ratios)
    mae = errors.mean(0)
    return Fidelity(
        split=split,
        rules=frames.rules,
        frames=size,
        spearman=tuple(estimate_of(value, d, count, groups) for value, d in zip(rho, drawn_rho.T)),
        mae=tuple(estimate_of(value, d, count, groups) for value, d in zip(mae, drawn.T)),
        macro_spearman=macro_estimate(rho, drawn_rho, count, groups),
        macro_mae=macro_estimate(mae, drawn[:, :-1], count, groups),
        top1=estimate_of(same.mean(), drawn[:, -1], count, groups),
    )


def measure_fidelity(
    check: FidelityCheck, out: Path, workers: int = 1, plan_timeout: float | None = None
) -> list[Fidelity]:
    """Drive the splits with the teacher beside the planner (what is there already is kept) and compare the two."""
    found = []
    for split in check.splits:
        folder = out / f"{Path(split).name}-{check.agents}-{Path(check.planner).name}-taught"
        job = Simulation(
            planner=check.planner, scenarios=split, agents=check.agents, seed=check.seed, limit=check.limit,
            attribution="teacher",
        )  # fmt: skip
        run = run_simulation(job, folder, workers=workers, plan_timeout=plan_timeout)
        found.append(fidelity(frames_of(run.rollouts()), Path(split).name, check.seed))
    return found


def fidelity_table(found: Sequence[Fidelity]) -> str:
    """Markdown: the whole by split, then each rule by split; 95% intervals in brackets."""
    lines = ["| split | frames | macro Spearman | MAE | Top-1 [%] |", "|---|---|---|---|---|"]
    for one in found:
        cells = [interval(one.macro_spearman), interval(one.macro_mae), interval(one.top1, 1, 100)]
        lines.append(f"| {one.split} | {one.frames} | {' | '.join(cells)} |")
    lines += ["", "| split | rule | Spearman | MAE |", "|---|---|---|---|"]
    for one in found:
        for rule, rho, mae in zip(one.rules, one.spearman, one.mae):
            lines.append(f"| {one.split} | {rule} | {interval(rho)} | {interval(mae)} |")
    return "\n".join([*lines, "", LEGEND])
