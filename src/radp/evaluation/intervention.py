"""Intervention: does a small step down the gradient of a rule lower the risk that its pressure stands for?

The scenarios of a run are driven again; wherever the pressure of rule i is high, the plan is moved a little along minus
its gradient before it is executed. Risks of both drives are compared frame by frame where the first drive had that
pressure: paired, with intervals over scenarios. The same with plus the gradient is the control.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from radp.attribution.nudge import NudgedPlanner
from radp.attribution.online import calibration_of
from radp.evaluation.alignment import risks
from radp.evaluation.closed_loop import Run
from radp.evaluation.drives import Drives, read_drives, stack
from radp.evaluation.endpoints import ENDPOINTS
from radp.evaluation.intervals import Estimate, means_of
from radp.evaluation.risk import severities
from radp.metrics.score import evaluate
from radp.planners import load_planner
from radp.runs import RunFolder, parallel_map
from radp.runs.errors import BadInput
from radp.scenario import Scenario
from radp.sim.rollout_store import RolloutStore
from radp.sim.simulate import drive_batch

COMMAND = "evaluate intervention"
STEP = 0.3  # m that a plan is moved at most
HIGH = 0.9  # quantile of a rule's pressures above which they are high


@dataclass(frozen=True)
class Intervention:
    """Change of each risk (7,) in high-pressure frames of one rule, and of the share of frames that are events."""

    rule: str
    sign: int  # -1: down the gradient, +1: up
    threshold: float
    scenarios: int
    frames: int
    change: tuple[Estimate, ...]  # nudged minus plain, in units of the endpoint
    events: tuple[Estimate, ...]


def intervene(
    run: Run,
    out: Path | str,
    rules: Sequence[str] = (),
    step: float = STEP,
    both_ways: bool = True,
    limit: int | None = None,
    workers: int = 1,
    batch: int = 16,
) -> list[Intervention]:
    """Drive the scenarios of `run` with high pressures again, for each rule; what is there already is kept."""
    drives = read_drives(run, rivals=False)
    if "teacher" not in drives.scores:
        raise BadInput(f"{run.folder.path} has no exact pressures: drive it with --attribution teacher")
    unknown = [rule for rule in rules if rule not in drives.rules]
    if unknown:
        raise BadInput(f"no rule {unknown[0]!r}; expected some of {', '.join(drives.rules)}")
    found = []
    for rule in rules or drives.rules:
        threshold, high = high_frames(drives.channel("teacher", rule))
        chosen = np.flatnonzero(high.any(1))[:limit]
        for sign in (-1, 1) if both_ways else (-1,):
            if len(chosen):
                folder = Path(out) / f"{rule}-{'down' if sign < 0 else 'up'}"
                nudge = Nudge(str(run.folder.path), rule, threshold, -sign * step)
                again = drive_nudged(nudge, [drives.tokens[i] for i in chosen], folder, workers, batch)
                found.append(compare(drives, again, chosen, high, rule, sign, threshold))
    return found


def high_frames(pressure: np.ndarray, quantile: float = HIGH) -> tuple[float, np.ndarray]:
    """pressure (N, T), NaN = none -> threshold (a quantile of all frames, at least 0) and the frames above it."""
    threshold = max(0.0, float(np.nanquantile(pressure, quantile)))
    return threshold, np.nan_to_num(pressure, nan=-1.0) > threshold


@dataclass(frozen=True)
class Nudge:
    """What is changed about a run."""

    run: str
    rule: str
    threshold: float
    size: float  # m down the gradient

    def planner(self, run: Run) -> NudgedPlanner:
        plain = load_planner(run.job.planner)
        return NudgedPlanner(plain, self.rule, self.threshold, self.size, calibration_of(plain, run.job.planner))


def drive_nudged(nudge: Nudge, tokens: Sequence[str], out: Path, workers: int, batch: int) -> Drives:
    """Drive `tokens` again into the folder `out` and read what came of it, in that order."""
    settings = {**nudge.__dict__, "tokens": list(tokens)}
    run, folder = Run.open(nudge.run), RunFolder.create(out, COMMAND, settings, execution={"workers": workers})
    store = RolloutStore(folder.path / "drives")
    store.clean()
    done = store.tokens()
    missing = [token for token in tokens if token not in done]
    pieces = [tuple(missing[i : i + batch]) for i in range(0, len(missing), batch)]
    outcome = parallel_map(
        partial(_drive, nudge, store.path), pieces, workers=workers, name=lambda piece: piece[0],
        ledger=folder.ledger, label=f"batches nudged by {nudge.rule}",
    )  # fmt: skip
    if outcome.failures:
        raise BadInput(f"{out}: {outcome.failures[0].piece}: {outcome.failures[0].reason}")
    rows: dict[str, list[np.ndarray]] = {endpoint.name: [] for endpoint in ENDPOINTS}
    for scenario in _scenarios(run, tokens):
        rollout = store.read(scenario)
        for name, values in severities(rollout, evaluate(rollout)).items():
            rows[name].append(values)
    lengths = np.array([len(values) for values in rows["collision"]])
    severity = {name: stack(values, int(lengths.max())) for name, values in rows.items()}
    return Drives((), tuple(tokens), lengths, {}, severity)


def _drive(nudge: Nudge, drives: Path, tokens: tuple[str, ...]) -> None:
    run = Run.open(nudge.run)
    for rollout in drive_batch(nudge.planner(run), _scenarios(run, tokens), run.job.options):
        RolloutStore(drives).write(rollout)


def _scenarios(run: Run, tokens: Sequence[str]) -> list[Scenario]:
    place = {token: i for i, token in enumerate(run.split.tokens())}
    return [run.split[place[token]] for token in tokens]


def compare(
    plain: Drives, nudged: Drives, chosen: np.ndarray, high: np.ndarray, rule: str, sign: int, threshold: float
) -> Intervention:
    """Mean change over the high-pressure frames of each scenario that count in both drives."""
    before, after = risks(plain), risks(nudged)
    width = min(high.shape[1], nudged.severity["collision"].shape[1])
    mask = high[chosen, :width]
    rows = []
    for endpoint in ENDPOINTS:
        a, b = before[endpoint.name][chosen, :width], after[endpoint.name][:, :width]
        for x, y in ((a, b), (event_of(a, endpoint.threshold), event_of(b, endpoint.threshold))):
            rows.append(_mean_where(y - x, mask & ~np.isnan(x) & ~np.isnan(y)))
    told = means_of(np.stack(rows))
    return Intervention(rule, sign, threshold, len(chosen), int(mask.sum()), tuple(told[::2]), tuple(told[1::2]))


def event_of(risk: np.ndarray, threshold: float) -> np.ndarray:
    """1 and 0, NaN where the risk is not known."""
    return np.where(np.isnan(risk), np.nan, (risk > threshold).astype(np.float64))


def _mean_where(values: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """(N, T) -> (N,) mean over the mask, NaN where it is empty."""
    count = mask.sum(1)
    return np.divide(np.where(mask, values, 0.0).sum(1), count, out=np.full(len(values), np.nan), where=count > 0)
