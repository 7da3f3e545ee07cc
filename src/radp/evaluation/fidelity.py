"""Fidelity of the head: what the planner tells about its plans against the exact teacher, on the same frames.

All frames of a split count alike (appendix, equations of head-teacher fidelity); intervals resample whole scenarios
with all their frames, and rank every resample anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from radp.evaluation.closed_loop import run_simulation
from radp.evaluation.intervals import RESAMPLES, Estimate
from radp.evaluation.resampled_ranks import resampled_spearman
from radp.runs.errors import BadInput
from radp.sim.rollout import Rollout

TAILS = (2.5, 97.5)  # percent
_CHUNK = 250  # resamples at once


@dataclass(frozen=True)
class Frames:
    """F synchronized frames of S scenarios: told and exact pressures (F, M), scenario (F,) index from 0."""

    rules: tuple[str, ...]
    told: np.ndarray
    exact: np.ndarray
    scenario: np.ndarray

    @property
    def scenarios(self) -> int:
        return int(self.scenario.max()) + 1 if len(self.scenario) else 0


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


def frames_of(rollouts: Iterable[Rollout]) -> Frames:
    """Frames that have both pressures; BadInput where the planner told none or the teacher was not asked."""
    told: list[np.ndarray] = []
    exact: list[np.ndarray] = []
    scenario: list[np.ndarray] = []
    names: list[tuple[str, ...]] = []
    for rollout in rollouts:
        if rollout.pressures is None or rollout.exact_pressures is None:
            if rollout.failure is None:
                missing = "the planner has no head" if rollout.pressures is None else "the teacher was not asked"
                raise BadInput(f"scenario {rollout.scenario.token!r} has no two pressures to compare: {missing}")
            continue
        told.append(rollout.pressures)
        exact.append(rollout.exact_pressures)
        scenario.append(np.full(len(rollout.pressures), len(scenario)))
        names.append(rollout.rules)
    if not told or len(set(names)) > 1:
        raise BadInput("no drives with pressures" if not told else f"drives tell different rules: {set(names)}")
    both = np.concatenate(told).astype(np.float64), np.concatenate(exact).astype(np.float64)
    known = np.atleast_1d(np.isfinite(both[0]).all(0))  # rules that the head knows
    rules = tuple(rule for rule, k in zip(names[0], known) if k)
    return Frames(rules, both[0][:, known], both[1][:, known], np.concatenate(scenario))


def fidelity(frames: Frames, split: str = "", seed: int = 0, resamples: int = RESAMPLES) -> Fidelity:
    """Per-rule and macro Spearman, mean absolute error and Top-1 with 95% intervals over scenarios."""
    count, size = frames.scenarios, len(frames.told)
    errors = np.abs(frames.told - frames.exact)
    same = frames.told.argmax(1) == frames.exact.argmax(1)
    sums = np.stack([np.bincount(frames.scenario, column, count) for column in (*errors.T, same, np.ones(size))], 1)
    ratios, ranks = [], []
    for counts in _draws(count, seed, resamples):
        drawn = counts @ sums
        ratios.append(drawn[:, :-1] / drawn[:, -1:])
        ranks.append(resampled_spearman(frames.told, frames.exact, frames.scenario, counts))
    once = np.ones((1, count))
    rho = resampled_spearman(frames.told, frames.exact, frames.scenario, once)[0]
    drawn_rho, drawn = np.concatenate(ranks), np.concatenate(ratios)
    mae = errors.mean(0)
    return Fidelity(
        split=split,
        rules=frames.rules,
        frames=size,
        spearman=tuple(_estimate(value, d, count) for value, d in zip(rho, drawn_rho.T)),
        mae=tuple(_estimate(value, d, count) for value, d in zip(mae, drawn.T)),
        macro_spearman=_estimate(_known_mean(rho[None])[0], _known_mean(drawn_rho), count),
        macro_mae=_estimate(mae.mean(), drawn[:, :-1].mean(1), count),
        top1=_estimate(same.mean(), drawn[:, -1], count),
    )


def measure_fidelity(
    planner: str,
    splits: Sequence[str],
    out: Path,
    agents: str = "reactive",
    limit: int | None = None,
    workers: int = 1,
    seed: int = 0,
) -> list[Fidelity]:
    """Drive the splits with the teacher beside the planner (what is there already is kept) and compare the two."""
    found = []
    for split in splits:
        folder = out / f"{Path(split).name}-{agents}-{Path(planner).name}-taught"
        run = run_simulation(
            planner, split, folder, agents, workers=workers, seed=seed, limit=limit, attribution="teacher"
        )
        found.append(fidelity(frames_of(run.rollouts()), Path(split).name, seed))
    return found


def fidelity_table(found: Sequence[Fidelity]) -> str:
    """Markdown: the whole by split, then each rule by split; 95% intervals in brackets."""
    lines = ["| split | frames | macro Spearman | MAE | Top-1 [%] |", "|---|---|---|---|---|"]
    for one in found:
        cells = [_cell(one.macro_spearman), _cell(one.macro_mae), _cell(one.top1, 100.0, 1)]
        lines.append(f"| {one.split} | {one.frames} | {' | '.join(cells)} |")
    lines += ["", "| split | rule | Spearman | MAE |", "|---|---|---|---|"]
    for one in found:
        for rule, rho, mae in zip(one.rules, one.spearman, one.mae):
            lines.append(f"| {one.split} | {rule} | {_cell(rho)} | {_cell(mae)} |")
    return "\n".join(lines)


def _draws(scenarios: int, seed: int, resamples: int) -> Iterable[np.ndarray]:
    """How often each scenario is drawn, (chunk, S) at a time."""
    draw = np.random.default_rng([seed, scenarios])
    for first in range(0, resamples, _CHUNK):
        size = min(_CHUNK, resamples - first)
        yield draw.multinomial(scenarios, np.full(scenarios, 1 / scenarios), size=size).astype(np.float64)


def _known_mean(rho: np.ndarray) -> np.ndarray:
    """(R, M) -> (R,) mean over the rules that have a value; NaN where none has."""
    known = ~np.isnan(rho)
    total = np.where(known, rho, 0.0).sum(1)
    return np.divide(total, known.sum(1), out=np.full(len(rho), np.nan), where=known.any(1))


def _estimate(value: float, drawn: np.ndarray, count: int) -> Estimate:
    drawn = drawn[~np.isnan(drawn)]
    if not len(drawn) or np.isnan(value):
        return Estimate(np.nan, np.nan, np.nan, count)
    low, high = np.percentile(drawn, TAILS)
    return Estimate(float(value), float(low), float(high), count)


def _cell(estimate: Estimate, times: float = 1.0, digits: int = 3) -> str:
    if np.isnan(estimate.value):
        return "n/a"
    value, low, high = (f"{times * v:.{digits}f}" for v in (estimate.value, estimate.low, estimate.high))
    return f"{value} [{low}, {high}]"
