"""Rounds of learning in the loop: drive, let an expert take over, go on training, keep what does not collide more.

    OUT/start/dev          the model to start from on the scenarios for choosing
    OUT/round-0/own        its own drives on a part of the training scenarios
    OUT/round-0/driven     what the expert executed after taking over, as logs
    OUT/round-0/samples    the training samples of these
    OUT/round-0/training   the next model
    OUT/round-0/dev        that model on the scenarios for choosing
    OUT/round-0/round.json whether it was kept, and why; written last
    OUT/rounds.json        all rounds and the model that remains

Every part resumes by itself, so a killed run goes on with the same call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from radp.evaluation.closed_loop import run_simulation, summarise_run
from radp.evaluation.planners import values_of
from radp.evaluation.settings import Rounds, Simulation
from radp.metrics.card import read_cards
from radp.planners import load_planner
from radp.runs.errors import BadInput, reading_file
from radp.runs.files import write_json_atomically
from radp.runs.settings import checked
from radp.scenario.splits import open_split
from radp.scene.log_samples import write_log_samples
from radp.scene.settings import SampleChoice
from radp.sources.driven import demonstrate
from radp.sources.settings import Demonstrations

COLLISION = "no_ego_at_fault_collisions"
Train = Callable[[str, Sequence[Path], Path], Path]  # model to start from, its new samples, run folder -> model folder


@dataclass(frozen=True)
class Round:
    """One round: the model before, the model after, their mean collision scores and scores on the dev scenarios."""

    before: str
    after: str
    collision_before: float
    collision_after: float
    score_before: float
    score_after: float
    kept: bool


def run_rounds(
    settings: Rounds, train: Train, out: Path | str, workers: int = 1, plan_timeout: float | None = None
) -> list[Round]:
    """All rounds, or those that are missing; the last model that was kept is `remaining(rounds, settings)`.

    A planner that gives no answer within `plan_timeout` seconds fails that drive.
    """
    if settings.rounds < 1:
        raise BadInput(f"rounds is {settings.rounds}, expected at least 1")
    for scenarios in (settings.scenarios, settings.dev):  # hours of driving come before the last of them is needed
        open_split(scenarios)
    load_planner(settings.expert)
    out = Path(out)
    model, samples, done = settings.start, [], []
    before = _on_dev(model, settings, out / "start" / "dev", workers, plan_timeout)
    for number in range(settings.rounds):
        folder = out / f"round-{number}"
        samples.append(_collect(model, settings, number, folder, workers, plan_timeout))
        file = folder / "round.json"
        if not file.exists():
            after_model = str(train(model, samples, folder / "training"))
            after = _on_dev(after_model, settings, folder / "dev", workers, plan_timeout)
            write_json_atomically(file, asdict(_judge(model, after_model, before, after)))
        with reading_file(file, "result of a round"):
            one = checked(Round, json.loads(file.read_bytes()))
        done.append(one)
        if one.kept:
            model, before = one.after, (one.collision_after, one.score_after)
    summary = {"rounds": [asdict(one) for one in done], "model": remaining(done, settings)}
    write_json_atomically(out / "rounds.json", summary)
    return done


def remaining(rounds: Sequence[Round], settings: Rounds) -> str:
    """The model of the last round that was kept; the first one if none was."""
    return next((one.after for one in reversed(rounds) if one.kept), settings.start)


def _judge(before: str, after: str, scores_before: tuple[float, float], scores_after: tuple[float, float]) -> Round:
    """Kept if the collision score on the dev scenarios does not fall."""
    (collision_before, score_before), (collision_after, score_after) = scores_before, scores_after
    kept = collision_after >= collision_before
    return Round(before, after, collision_before, collision_after, score_before, score_after, kept)


def _collect(model: str, settings: Rounds, number: int, folder: Path, workers: int, plan_timeout: float | None) -> Path:
    """Samples of what the expert executed after the model's own driving on this round's part of the scenarios."""
    part = f"{settings.scenarios}@every-{settings.rounds}+{number}" if settings.rounds > 1 else settings.scenarios
    own = Simulation(planner=model, scenarios=part, seed=settings.seed)
    summarise_run(run_simulation(own, folder / "own", workers=workers, plan_timeout=plan_timeout))
    choice = Demonstrations(
        scenarios=part, planner=settings.expert, after=model, run=folder / "own", takeovers=settings.takeovers,
        seed=settings.seed,
    )  # fmt: skip
    card = demonstrate(choice, folder / "driven", workers, plan_timeout)
    if not card["scenarios"]:
        raise BadInput(f"{folder / 'driven'}: the expert drove no scenario well, so there is nothing to learn")
    samples = SampleChoice(stride=settings.stride, other_egos=0)
    write_log_samples(folder / "samples", open_split(folder / "driven"), samples, workers)
    return folder / "samples"


def _on_dev(
    model: str, settings: Rounds, folder: Path, workers: int, plan_timeout: float | None
) -> tuple[float, float]:
    """Mean collision score and mean score on the dev scenarios, reactive."""
    job = Simulation(planner=model, scenarios=settings.dev, seed=settings.seed)
    summarise_run(run_simulation(job, folder, workers=workers, plan_timeout=plan_timeout))
    values = values_of(read_cards(folder))
    return float(np.nanmean(values[COLLISION])), float(np.mean(values["score"]))
