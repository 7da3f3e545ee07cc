"""Intervention: does following the gradient of a rule lower the risk that its pressure stands for?

The scenarios of a run are driven again; wherever the pressure of rule i is high, accelerations that halve its cost are
added to the plan, and kept over the window of its risk. Risks of both drives are compared frame by frame where the
first drive had that pressure: paired, with intervals over scenarios. The same accelerations with the other sign, and a
random direction of the same size, are the controls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

import numpy as np

from radp.attribution.nudge import NudgedPlanner, Way
from radp.evaluation.alignment import risks
from radp.evaluation.closed_loop import Run, planner_facts, usual_levels
from radp.evaluation.drives import Drives, read_drives, stack
from radp.evaluation.endpoints import ENDPOINTS
from radp.evaluation.risk import severities
from radp.metrics.score import evaluate
from radp.planners import load_planner
from radp.runs.claim import claimed
from radp.runs.errors import BadInput
from radp.runs.folder import RunFolder
from radp.runs.parallel import parallel_map
from radp.runs.progress import Progress
from radp.scenario import Scenario
from radp.sim.rollout_store import RolloutStore
from radp.sim.simulate import drive_batch
from radp.statistics.bootstrap import known_mean, means_of
from radp.statistics.estimate import Estimate

COMMAND = "evaluate intervention"
HIGH = 0.9  # quantile of a rule's pressures above which they are high
WAYS: tuple[Way, ...] = get_args(Way)
_SEAM = (
    "the gradient sits in the first three steps of a plan, where the plan meets the present speed: no smooth change of "
    "the plan lowers the cost, and what the car executes there is smoothed by the tracker"
)
LEFT_OUT = {"kinematics": _SEAM, "comfort": _SEAM}


@dataclass(frozen=True)
class Intervention:
    """Change of each risk (7,) in high-pressure frames of one rule, and of the share of frames that are events."""

    rule: str
    way: Way
    threshold: float
    scenarios: int
    frames: int
    change: tuple[Estimate, ...]  # pushed minus plain, in units of the endpoint
    events: tuple[Estimate, ...]
    rows: np.ndarray = field(repr=False)  # (7, n) the change in each scenario; NaN: no frame counts
    logs: tuple[str, ...] = field(default=(), repr=False)  # (n,)


@dataclass(frozen=True)
class Contrast:
    """A matched risk under a control minus the same risk down the gradient, by scenario: above 0 if the rule's
    gradient points the right way."""

    rule: str
    endpoint: str
    control: Way
    difference: Estimate
    higher: int  # scenarios in which the control has the higher risk
    lower: int


def intervene(
    run: Run,
    out: Path | str,
    rules: Sequence[str] = (),
    ways: Sequence[Way] = WAYS,
    swerve: bool = False,
    limit: int | None = None,
    workers: int = 1,
    batch: int = 32,
    drives: Drives | None = None,
) -> list[Intervention]:
    """Drive scenarios of `run` with high pressures again, for each rule; what is there already is kept.

    At most `limit` scenarios for each rule, evenly spread over those with high pressures. The collision rule acts along
    the path only, unless it may `swerve`. `drives`: those of the run, if they were read before.
    """
    drives = drives or read_drives(run, rivals=False)
    if "teacher" not in drives.scores:
        raise BadInput(f"{run.folder.path} has no exact pressures: drive it with --attribution teacher")
    unknown = [rule for rule in rules if rule not in drives.rules]
    if unknown:
        raise BadInput(f"no rule {unknown[0]!r}; expected some of {', '.join(drives.rules)}")
    left_out = next((rule for rule in rules if rule in LEFT_OUT), None)
    if left_out is not None:
        raise BadInput(f"{left_out} has no sound intervention through the plan: {LEFT_OUT[left_out]}")
    trials = []
    for rule in rules or [rule for rule in drives.rules if rule not in LEFT_OUT]:
        threshold, high = high_frames(drives.channel("teacher", rule))
        chosen = evenly(np.flatnonzero(high.any(1)), limit)
        tokens = tuple(drives.tokens[i] for i in chosen)
        for way in ways if len(chosen) else ():
            folder = Path(out) / f"{rule}-{way}"
            sideways = swerve or rule != "collision"
            nudge = Nudge(str(run.folder.path), rule, threshold, way, sideways, str(folder))
            trials.append(Trial(nudge, high, chosen, tokens))
    with claimed(out):
        drive_nudged(run, trials, Path(out), workers, batch)
    with Progress("interventions compared", len(trials)) as progress:
        return [compare(drives, trial, read_nudged(run, trial, progress)) for trial in trials]


def evenly(places: np.ndarray, limit: int | None) -> np.ndarray:
    """At most `limit` of the places (n,), evenly spread over them."""
    if limit is None or len(places) <= limit:
        return places
    return places[np.linspace(0, len(places) - 1, limit).round().astype(int)]


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
    way: Way
    sideways: bool
    folder: str

    def planner(self, run: Run) -> NudgedPlanner:
        plain = load_planner(run.job.planner)
        levels = usual_levels(run.job, plain)
        return NudgedPlanner(plain, self.rule, self.threshold, self.way, levels, window_of(self.rule), self.sideways)

    @property
    def store(self) -> RolloutStore:
        return RolloutStore(Path(self.folder) / "drives")


@dataclass(frozen=True)
class Trial:
    """One rule, one way: what is driven again."""

    nudge: Nudge
    high: np.ndarray  # (N, T) frames of all plain drives
    chosen: np.ndarray  # (n,) which of them are driven again
    tokens: tuple[str, ...]  # theirs


def drive_nudged(run: Run, trials: Sequence[Trial], out: Path, workers: int, batch: int) -> None:
    """Drive what is missing of all trials, in one pool of processes, with the planner that drove the run."""
    pieces, facts = [], planner_facts(run.job, load_planner(run.job.planner), run.folder.path)
    facts.pop("planner_file")  # a part of the hash
    for trial in trials:
        settings = {k: v for k, v in trial.nudge.__dict__.items() if k != "folder"} | {"tokens": list(trial.tokens)}
        RunFolder.create(trial.nudge.folder, COMMAND, settings, execution={"workers": workers}, facts=facts)
        trial.nudge.store.clean()
        missing = [token for token in trial.tokens if token not in trial.nudge.store]
        pieces += [(trial.nudge, tuple(missing[i : i + batch])) for i in range(0, len(missing), batch)]
    outcome = parallel_map(
        _drive, pieces, workers=workers, name=lambda piece: f"{piece[0].folder}, {piece[1][0]}",
        label="batches nudged", folder=out,
    )  # fmt: skip
    if outcome.failures:
        raise BadInput(f"{outcome.failures[0].piece}: {outcome.failures[0].reason}")


def _drive(piece: tuple[Nudge, tuple[str, ...]]) -> None:
    nudge, tokens = piece
    run = Run.open(nudge.run)
    for rollout in drive_batch(nudge.planner(run), _scenarios(run, tokens), run.job):
        nudge.store.write(rollout)


def read_nudged(run: Run, trial: Trial, progress: Progress) -> Drives:
    """What came of a trial, in the order of its tokens."""
    rows: dict[str, list[np.ndarray]] = {endpoint.name: [] for endpoint in ENDPOINTS}
    for scenario in _scenarios(run, trial.tokens):
        rollout = trial.nudge.store.read(scenario)
        for name, values in severities(rollout, evaluate(rollout)).items():
            rows[name].append(values)
    lengths = np.array([len(values) for values in rows["collision"]])
    severity = {name: stack(values, int(lengths.max())) for name, values in rows.items()}
    progress.advance()
    return Drives((), trial.tokens, lengths, {}, severity)


def _scenarios(run: Run, tokens: Sequence[str]) -> list[Scenario]:
    place = {token: i for i, token in enumerate(run.split.tokens())}
    return [run.split[place[token]] for token in tokens]


def compare(plain: Drives, trial: Trial, nudged: Drives) -> Intervention:
    """Mean change over the high-pressure frames of each scenario that count in both drives."""
    before, after = risks(plain.some(trial.chosen)), risks(nudged)
    width = min(trial.high.shape[1], nudged.severity["collision"].shape[1])
    mask = trial.high[trial.chosen, :width]
    rows = []
    for endpoint in ENDPOINTS:
        a, b = before[endpoint.name][:, :width], after[endpoint.name][:, :width]
        for x, y in ((a, b), (event_of(a, endpoint.threshold), event_of(b, endpoint.threshold))):
            rows.append(known_mean(np.where(mask, y - x, np.nan)))
    values = np.stack(rows)
    means = means_of(values, groups=nudged.logs)
    nudge, count = trial.nudge, len(trial.chosen)
    return Intervention(
        nudge.rule, nudge.way, nudge.threshold, count, int(mask.sum()), tuple(means[::2]), tuple(means[1::2]),
        values[::2], tuple(nudged.logs),
    )  # fmt: skip


def contrasts(found: Sequence[Intervention]) -> list[Contrast]:
    """The controls against the way down, for the matched risks of each rule, paired by scenario."""
    by_way = {(one.rule, one.way): one for one in found}
    out = []
    for (rule, way), control in by_way.items():
        down = by_way.get((rule, "down"))
        if way == "down" or down is None:
            continue
        for i, endpoint in enumerate(ENDPOINTS):
            if endpoint.channel == rule:
                gap = control.rows[i] - down.rows[i]
                mean = means_of(gap[None], groups=list(down.logs))[0]
                out.append(Contrast(rule, endpoint.name, way, mean, int((gap > 0).sum()), int((gap < 0).sum())))
    return out


def window_of(rule: str) -> float:
    """Seconds of the risk that belongs to a rule; of the longest endpoint for rules without one."""
    longest = max(endpoint.window for endpoint in ENDPOINTS)
    return next((endpoint.window for endpoint in ENDPOINTS if endpoint.channel == rule), longest)


def event_of(risk: np.ndarray, threshold: float) -> np.ndarray:
    """1 and 0, NaN where the risk is not known."""
    return np.where(np.isnan(risk), np.nan, (risk > threshold).astype(np.float64))
