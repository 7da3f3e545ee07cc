"""Drives of a run as arrays of frames: what pressed, what else might foretell, and what then happened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from radp.evaluation.closed_loop import Run
from radp.evaluation.committed import committed_severities
from radp.evaluation.endpoints import Reading, series_of
from radp.evaluation.known import inverse_ttc, measures_of
from radp.evaluation.risk import all_severities
from radp.geometry.frames import points_from_frame, pose_frame
from radp.metrics.score import ScenarioScore, evaluate
from radp.runs.errors import BadInput
from radp.runs.progress import Progress
from radp.scenario import Ego
from radp.scenario.parts import log_of
from radp.sim.rollout import Rollout

PRESSURES = ("teacher", "head")
RIVALS = {
    "cost": "raw rule cost J_i of the plan",
    "expert": "mean distance of the plan from the expert's path at the same times, |X - expert|",
    "ttc": "1 / constant-velocity time to collision now, looking 8 s ahead",
}


@dataclass(frozen=True)
class Drives:
    """N drives of at most T frames. Scores by source (N, T, M), severities by endpoint (N, T); NaN = none."""

    rules: tuple[str, ...]
    tokens: tuple[str, ...]
    lengths: np.ndarray  # (N,) samples
    scores: Mapping[str, np.ndarray]
    severity: Mapping[str, np.ndarray]
    measures: Mapping[str, np.ndarray] = field(default_factory=dict)  # what else is known at a moment, by name (N, T)

    @property
    def logs(self) -> list[str]:
        """(N,) the log of each drive: drives of one log are not independent."""
        return [log_of(token) for token in self.tokens]

    def channel(self, source: str, rule: str) -> np.ndarray:
        """(N, T) scores of one rule."""
        return self.scores[source][..., self.rules.index(rule)]

    def __contains__(self, reading: Reading) -> bool:
        """Whether the severities of a reading were measured."""
        return set(series_of((reading,))) <= set(self.severity)

    def some(self, chosen: np.ndarray) -> Drives:
        """The drives with these places (n,) alone."""
        parts = (
            {name: values[chosen] for name, values in series.items()}
            for series in (self.scores, self.severity, self.measures)
        )
        return Drives(self.rules, tuple(self.tokens[i] for i in chosen), self.lengths[chosen], *parts)


def read_drives(run: Run, rivals: bool = True, committed: bool = False, measures: bool = False) -> Drives:
    """Every finished drive of a run that keeps pressures; BadInput if it keeps none.

    `committed`: the risks of each plan, driven without replanning, are measured too; `measures`: and what a safety
    engineer would look at.
    """
    known: dict[str, list[np.ndarray]] = {}
    scores: dict[str, list[np.ndarray]] = {}
    severity: dict[str, list[np.ndarray]] = {}
    rules: tuple[str, ...] = ()
    tokens = []
    with Progress("drives read", len(run.split)) as progress:
        for rollout in run.rollouts():
            progress.advance()
            found = pressures_of(rollout)
            if rollout.failure is not None or not found:
                continue
            if rules and rules != rollout.rules:
                raise BadInput(f"{run.folder.path}: drives have pressures of different rules")
            rules = rollout.rules
            score = evaluate(rollout)
            found |= rivals_of(rollout, score) if rivals else {}
            for name, values in found.items():
                scores.setdefault(name, []).append(values)
            measured = all_severities(rollout, score)
            measured |= committed_severities(rollout, score) if committed else {}
            for name, values in measured.items():
                severity.setdefault(name, []).append(values)
            for name, values in (measures_of(rollout, score, measured) if measures else {}).items():
                known.setdefault(name, []).append(values)
            tokens.append(rollout.scenario.token)
    if not tokens:
        raise BadInput(f"{run.folder.path} keeps no pressures: drive it with --attribution teacher")
    partly = next((name for name, rows in scores.items() if len(rows) != len(tokens)), None)
    if partly is not None:
        raise BadInput(f"{run.folder.path}: only {len(scores[partly])} of {len(tokens)} drives have {partly!r}")
    lengths = np.array([len(row) for row in severity["collision"]])
    stacked = ({name: stack(rows, int(lengths.max())) for name, rows in s.items()} for s in (scores, severity, known))
    return Drives(rules, tuple(tokens), lengths, *stacked)


def pooled(parts: Sequence[Drives]) -> Drives:
    """Drives of several runs as one: other splits, other noise seeds. Sources that not all of them have are left out.

    A scenario that was driven with several seeds is there several times, but its log is drawn as one.
    """
    if len({part.rules for part in parts}) > 1:
        raise BadInput("the runs have pressures of different rules, so they cannot be pooled")
    longest = max(part.severity["collision"].shape[1] for part in parts)

    def together(series: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
        common = [name for name in series[0] if all(name in one for one in series)]
        return {name: stack([row for one in series for row in one[name]], longest) for name in common}

    return Drives(
        parts[0].rules,
        tuple(token for part in parts for token in part.tokens),
        np.concatenate([part.lengths for part in parts]),
        together([part.scores for part in parts]),
        together([part.severity for part in parts]),
        together([part.measures for part in parts]),
    )


def stack(rows: Sequence[np.ndarray], longest: int) -> np.ndarray:
    """Series (S, ...) of different length as rows (N, longest, ...), filled up with NaN."""
    out = np.full((len(rows), longest, *rows[0].shape[1:]), np.nan)
    for place, values in zip(out, rows):
        place[: len(values)] = values
    return out


def pressures_of(rollout: Rollout) -> dict[str, np.ndarray]:
    """(K, M) by source: the exact teacher's and the planner's own."""
    found = {"teacher": rollout.exact_pressures, "head": rollout.pressures}
    return {name: values for name, values in found.items() if values is not None and rollout.rules}


def rivals_of(rollout: Rollout, score: ScenarioScore) -> dict[str, np.ndarray]:
    """(K, M) of what else might foretell risks; one value for all rules where the rival knows of none."""
    found = {}
    if rollout.rule_costs is not None:
        found["cost"] = rollout.rule_costs
    count = len(rollout.rules)
    if rollout.plans is not None:
        found["expert"] = np.repeat(distance_to_expert(rollout, rollout.plans)[:, None], count, 1)
    found["ttc"] = np.repeat(inverse_ttc(rollout, score)[:, None], count, 1)
    return found


def distance_to_expert(rollout: Rollout, plans: np.ndarray) -> np.ndarray:
    """plans (K, H, 4) -> (K,) mean distance [m] of the planned rear axle from the expert's at the same times.

    Steps after the end of the log do not count; NaN where none is left.
    """
    scenario, steps = rollout.scenario, plans.shape[1]
    expert = scenario.ego[scenario.start :, : Ego.HEADING]
    poses = torch.from_numpy(rollout.ego[: len(plans), None, : Ego.VX])
    frames = pose_frame(poses)
    world = points_from_frame(torch.from_numpy(plans[..., :2]).double(), frames).numpy()
    when = np.arange(len(plans))[:, None] + 1 + np.arange(steps)
    inside = when < len(expert)
    gap = np.linalg.norm(world - expert[np.minimum(when, len(expert) - 1)], axis=-1)
    count = inside.sum(1)
    return np.divide((gap * inside).sum(1), count, out=np.full(len(plans), np.nan), where=count > 0)
