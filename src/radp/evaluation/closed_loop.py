"""A closed-loop run on disk: drives that survive a kill, and the summary made of them.

    config.json        settings that decide the result, seed, version
    drives/            one file per finished scenario, written whole or not at all
    ledger.jsonl       scenarios that gave no drive (a worker that died), and why
    cards.jsonl        the score card of every scenario, one per line
    summary.json       means and intervals, written last

A drive whose planner failed is finished too: it holds the reason and scores 0.
"""

from __future__ import annotations

import hashlib
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from functools import cache, partial
from itertools import accumulate, islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import nn

from radp.evaluation.settings import ATTRIBUTIONS, Simulation
from radp.metrics.card import CARDS, score_card
from radp.metrics.score import evaluate_many
from radp.metrics.summary import summarise
from radp.model.memory import keep_freed_memory
from radp.planners import UnknownPlanner, load_planner
from radp.planners.identity import identity_of
from radp.runs.allowance import check_deadline
from radp.runs.claim import claimed
from radp.runs.engine import current_engine
from radp.runs.errors import BadInput, EndOfRun, reading_file
from radp.runs.folder import RUN, RunError, RunFolder
from radp.runs.json_text import json_text
from radp.runs.parallel import parallel_map, runs_here
from radp.runs.progress import Progress
from radp.runs.settings import checked, narrowed
from radp.scenario import Scenario
from radp.scenario.neutral_json import save_json
from radp.scenario.parts import name_and_part
from radp.scenario.splits import MADE, Split, limited, open_split, with_tokens
from radp.sim.planner import Planner, TimedPlanner, timed_allowance
from radp.sim.rollout import Rollout, rollout_to_json
from radp.sim.rollout_store import RolloutStore
from radp.sim.simulate import drive_batch, planner_error, undriven
from radp.zoo import list_splits

if TYPE_CHECKING:
    from radp.attribution.calibration import Calibration

COMMAND = "simulate"
DRIVES, SUMMARY = "drives", "summary.json"
SCORED_AT_ONCE = 64
PIECES_OF_A_SHARD = 4  # a job of a cluster that is killed loses a quarter of its share at most
HOUSE = Path(__file__).resolve().parents[1]  # radp's own code


def split_of(job: Simulation) -> Split:
    """The scenarios that are driven."""
    with reading_file(job.scenarios, "set of scenarios"):
        split = open_split(job.scenarios, job.allow_missing)
        split = with_tokens(split, job.token) if job.token else split
        return split[: job.limit] if job.limit_over == "first" else limited(split, job.limit)


def driver_of(job: Simulation) -> Planner:
    """The planner, with the teacher beside it if one is wanted."""
    try:
        planner = load_planner(job.planner)
    except UnknownPlanner as error:
        raise BadInput(str(error)) from None
    if job.weights:
        planner = _weighted(planner, job)
    if job.backend != "torch":
        from radp.planners.backends import on_backend, settled_backend

        planner = on_backend(planner, settled_backend(planner, job.backend))
    if job.attribution != "teacher":
        return planner
    from radp.attribution.online import ExplainedPlanner  # the rules are not needed otherwise

    return ExplainedPlanner(planner, usual_levels(job, planner), job.rule_set, job.expert_target)


def _weighted(planner: Planner, job: Simulation) -> Planner:
    """The planner with the weights of rules that the job gives it."""
    from radp.model.rule_weights import parse_weights

    if not hasattr(planner, "with_weights"):
        raise BadInput(f"planner {job.planner!r} takes no weights of rules")
    return planner.with_weights(parse_weights(job.weights))


def usual_levels(job: Simulation, planner: Planner) -> Calibration | None:
    """What the teacher compares with: of the named planner, else of this one; None if there are none."""
    from radp.attribution.online import calibration_of

    found = calibration_of(None if job.calibration else planner, job.calibration or job.planner, job.rule_set)
    if found is None and (job.calibration or job.rule_set):
        wanted = f" of the rule set {job.rule_set!r}" if job.rule_set else ""
        raise BadInput(f"{job.calibration or job.planner!r} has no usual levels{wanted}; radp calibrate makes them")
    return found


def planner_facts(job: Simulation, driver: Planner, *folders: Path | str) -> dict[str, str | None]:
    """What a run folder keeps of its planner beside the name: hashes of its source file and of all that it consists of.

    RunError if one of the folders holds drives of this name by another planner.
    """
    planner = getattr(driver, "planner", driver)  # without the teacher beside it
    learned = isinstance(getattr(planner, "model", None), nn.Module)
    levels = usual_levels(job, planner) if learned or job.attribution == "teacher" else None
    facts = {"planner_file": _file_hash(job.planner)}
    identity = identity_of(planner, job.planner, levels and _levels_of(levels))
    if identity is None:
        return facts
    for folder in (Path(folder) for folder in folders):
        before = RunFolder.open(folder).settings if RUN.is_in(folder) else {}
        if before.get("planner") != job.planner or before.get("backend", "torch") != job.backend:
            continue
        if "planner_hash" not in before and not learned:  # 0.1.0 noted the source file, which is compared as well
            return facts
        if "planner_hash" not in before:
            raise RunError(
                f"{folder} is of a radp that did not note the weights of {job.planner!r}, so nothing says that they "
                "are still the same: it can be scored and viewed, but not gone on with; choose another folder"
            )
        if before["planner_hash"] != identity:
            raise RunError(
                f"{folder} was driven by another {job.planner!r}: its weights, adapters, head, calibration or source "
                "file have changed since; choose another folder, or delete this one to drive again"
            )
    return {**facts, "planner_hash": identity}


def _levels_of(levels: Calibration) -> list[Any]:
    """What a run's identity keeps of a calibration; the paper's set is not named, as runs of it never were."""
    named = [] if levels.rule_set == "paper" else [levels.rule_set]
    return [levels.rules, levels.kappa, levels.is_fitted, *named]


class Run:
    """A run folder with its scenarios and drives."""

    def __init__(self, folder: RunFolder, job: Simulation) -> None:
        self.folder, self.job = folder, job
        self.split = split_of(job)
        self.store = RolloutStore(folder.path / DRIVES)

    @classmethod
    def open(cls, path: Path | str) -> Run:
        """A run that was started earlier; BadInput if the folder holds none."""
        folder = RunFolder.open(path)
        with reading_file(folder.path / RUN.file, "description of a run"):
            if folder.config["command"] != COMMAND:
                raise BadInput(f"{path} holds a run of radp {folder.config['command']}, expected one of radp {COMMAND}")
            stored = {"limit_over": "first", **folder.settings, "seed": folder.config["seed"]}  # as older runs did
            known = {field.name: stored[field.name] for field in fields(Simulation) if field.name in stored}
            job = checked(Simulation, known)
        return cls(folder, job)

    def missing(self) -> list[str]:
        """Tokens of scenarios that were never driven, or whose drives are gone.

        What failed and is in the ledger is not missing: it counts as failed, with its reason.
        """
        lost = self.folder.ledger.failures()
        return [token for token in self.split.tokens() if token not in self.store and token not in lost]

    @property
    def incomplete(self) -> str:
        """A sentence if drives are missing; empty otherwise."""
        missing = self.missing()
        count = f"{len(missing)} of {len(self.split)} drives are missing"
        again = f"radp {COMMAND} with the same options drives them"
        return f"{self.folder.path}: {count} (the first: {missing[0]!r}); {again}" if missing else ""

    def rollouts(self) -> Iterator[Rollout]:
        """The drives in the order of the scenarios; one that is missing counts as failed."""
        lost = self.folder.ledger.failures()
        for scenario in self.split:
            yield self.drive(scenario, lost.get(scenario.token, "not driven yet"))

    def drive(self, scenario: Scenario, reason: str) -> Rollout:
        """The drive of one scenario, or one that failed for a reason if it is not there; StoreError if damaged."""
        if scenario.token in self.store:
            return self.store.read(scenario)
        return undriven(scenario, self.job.planner, self.job, reason)


def run_simulation(
    simulation: Simulation, out: Path | str, batch: int = 64, workers: int = 1, plan_timeout: float | None = None
) -> Run:
    """Drive scenarios into the folder `out`, or finish a run that stopped there; the same call gives the same drives.

    What the simulation says must be as in the folder (else BadInput); batch, workers, engine and timeout may differ.
    A planner that gives no answer within `plan_timeout` seconds (of one call, whatever the batch) fails that drive.
    A store of which something cannot be read is refused, unless that is allowed. LostWrite if drives cannot be kept.
    """
    limit = 1 if simulation.limit is None else simulation.limit
    for name, value in (("batch", batch), ("workers", workers), ("limit", limit)):
        if value < 1:
            raise BadInput(f"{name} is {value}, expected at least 1")
    check_deadline(plan_timeout)
    job = _settled(simulation)
    tokens = split_of(job).tokens()
    if not tokens:
        raise BadInput(f"{simulation.scenarios!r} holds no scenarios")
    driver = driver_of(job)
    digest = hashlib.sha256("\n".join(tokens).encode()).hexdigest()[:16]
    facts = {**planner_facts(job, driver, out), "scenario_tokens": digest}
    with claimed(out):
        folder = RunFolder.create(out, COMMAND, job, job.seed, _execution(batch, workers, plan_timeout), facts)
        run = Run(folder, job)
        run.store.clean()
        _drive_missing(run, driver, tokens, batch, workers, plan_timeout)
        run.store.clean()  # of what workers left that were killed on the way
    return run


def _execution(batch: int, workers: int, plan_timeout: float | None) -> dict[str, Any]:
    timeout = {} if plan_timeout is None else {"plan_timeout": plan_timeout}
    engine = {} if current_engine().is_local else {"engine": current_engine().name}
    return {"batch": batch, "workers": workers, **timeout, **engine}


def _settled(simulation: Simulation) -> Simulation:
    """The simulation as config.json keeps it: it means the same in another folder."""
    if simulation.attribution not in ATTRIBUTIONS:
        raise BadInput(f"attribution is {simulation.attribution!r}, expected one of {', '.join(ATTRIBUTIONS)}")
    taught = simulation.attribution == "teacher"
    if not taught and (simulation.calibration or simulation.rule_set or simulation.expert_target):
        raise BadInput("calibration, rule set and expert's target are for the teacher: add --attribution teacher")
    if simulation.rule_set:
        from radp.rules import rule_set

        rule_set(simulation.rule_set)  # BadInput if there is none of this name
    plain = narrowed(Simulation, simulation)
    if plain.backend != "torch":
        from radp.planners.backends import settled_backend

        plain = replace(plain, backend=settled_backend(load_planner(plain.planner), plain.backend))
    return replace(plain, scenarios=_absolute(plain.scenarios), keep_plans=plain.keep_plans or taught)


def summarise_run(run: Run) -> dict[str, Any]:
    """Score every drive; writes cards.jsonl and summary.json, and returns the summary."""
    cards, rollouts = [], run.rollouts()
    while group := list(islice(rollouts, SCORED_AT_ONCE)):
        cards += [score_card(score) for score in evaluate_many(group)]
    summary = summarise(cards, run.job.seed)
    if run.split.missing:
        summary["missing"] = run.split.missing
    run.folder.write_bytes(CARDS, "".join(f"{json_text(card, indent=None)}\n" for card in cards).encode())
    run.folder.write_json(SUMMARY, summary)
    return summary


def planner_traceback(run: Run) -> str:
    """Where the planner raises on the first scenario, in its own lines; empty if that is not why the drive failed."""
    error = planner_error(driver_of(run.job), run.split[0], run.job)
    if error is None:
        return ""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not Path(frame.filename).resolve().is_relative_to(HOUSE)]
    return "".join((*traceback.format_list(own or frames), *traceback.format_exception_only(error)))


def export_drives(run: Run, folder: Path) -> None:
    """Every drive as neutral JSON, one compressed file per scenario, named as in drives/."""
    with Progress("export", len(run.split)) as progress:
        for rollout in run.rollouts():
            name = run.store.path_of(rollout.scenario.token).stem
            save_json(rollout_to_json(rollout), folder / f"{name}.json.gz")
            progress.advance()


def _drive_missing(
    run: Run, driver: Planner, tokens: Sequence[str], batch: int, workers: int, plan_timeout: float | None
) -> None:
    """Batches first; scenarios of a batch that broke are then tried alone, and noted in the ledger if they break."""
    keep_freed_memory()
    allowance = timed_allowance(plan_timeout)
    drive = partial(_drive_in_worker, run.job, run.store.path, plan_timeout)
    if runs_here(workers, allowance):
        drive = partial(_drive_here, driver, run.split, run.store, run.job)
    for alone in (False, True):
        missing = [i for i, token in enumerate(tokens) if token not in run.store]
        sizes = [1] * len(missing) if alone else sizes_of(len(missing), batch, workers, current_engine().name)
        ends = list(accumulate(sizes, initial=0))
        pieces = [tuple(missing[first:last]) for first, last in pairwise(ends)]
        if pieces:
            parallel_map(
                drive,
                pieces,
                workers=workers,
                name=lambda piece: tokens[piece[0]],
                ledger=run.folder.ledger if alone else None,
                label="scenarios tried alone" if alone else "scenarios",
                size=len,
                allowance=allowance,
                folder=run.folder.path,
            )


def sizes_of(count: int, batch: int, workers: int, engine: str) -> list[int]:
    """Into how large pieces so many scenarios are cut: as many for each worker, or on Ray ones that shrink towards the
    end, so that no worker waits long for the last."""
    sizes, left = [], count
    share = -(-count // (workers if engine == "local" else PIECES_OF_A_SHARD * workers))
    if engine == "local" and workers > 1 and share > batch:
        share = -(-count // (workers * -(-share // batch)))
    while left:
        sizes.append(min(batch, left, -(-left // (2 * workers)) if engine == "ray" else share))
        left -= sizes[-1]
    return sizes


def _drive_here(driver: Planner, split: Split, store: RolloutStore, job: Simulation, piece: tuple[int, ...]) -> None:
    """Drive some scenarios and write what became of each."""
    try:
        scenarios = [split[i] for i in piece]
    except BadInput as error:  # it would be missing from every result
        raise EndOfRun(str(error)) from None
    for rollout in drive_batch(driver, scenarios, job):
        store.write(rollout)


def _drive_in_worker(job: Simulation, drives: Path, plan_timeout: float | None, piece: tuple[int, ...]) -> None:
    driver, split = _equipment(job)
    if plan_timeout is not None:
        driver = TimedPlanner(driver, plan_timeout)
    store, tokens = RolloutStore(drives), split.tokens()
    left = tuple(i for i in piece if tokens[i] not in store)  # another worker may have driven some, and died
    if left:
        _drive_here(driver, split, store, job, left)


@cache
def _equipment(job: Simulation) -> tuple[Planner, Split]:
    """Planner and scenarios, once per process."""
    keep_freed_memory()
    return driver_of(job), split_of(job)


def _absolute(scenarios: str) -> str:
    """A path that means the same in another folder; names of splits, and of parts of them, stay as they are."""
    known = name_and_part(scenarios)[0] in (*list_splits(), *MADE)
    return scenarios if known else str(Path(scenarios).expanduser().resolve())


def _file_hash(planner: str) -> str | None:
    """Content of a planner that is a file of the user's, given as file.py:Class or as a path."""
    path = Path(planner.rpartition(":")[0] or planner).expanduser()
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.is_file() else None
