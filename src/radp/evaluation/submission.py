"""Whether a run folder may stand on a leaderboard: everything that its scores rest on is computed again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from radp.evaluation.closed_loop import SCORED_AT_ONCE, Run
from radp.evaluation.planners import Row, values_of
from radp.metrics.card import CARDS, read_cards, score_card
from radp.metrics.score import evaluate_many
from radp.runs.errors import BadInput, one_line, reading_file
from radp.runs.progress import Progress
from radp.scenario import Tracks
from radp.scenario.parts import log_of
from radp.scenario.splits import MADE
from radp.sim.rollout import Rollout
from radp.sim.simulate import agent_model
from radp.sim.world import PAST, World
from radp.zoo import list_splits

ABOUT = "submission.json"
ABOUT_FIELDS = ("name", "authors", "link", "notes")
LONGEST_TEXT = 300
SAME_SCORE, SAME_PLACE = 1e-9, 1e-6  # how far numbers that were computed again may be off; m


@dataclass(frozen=True)
class Submission:
    """A run that was checked: its row of scores, and all that is wrong with it."""

    path: Path
    row: Row | None = None
    about: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def check_submission(path: Path | str) -> Submission:
    """Open a run, drive its traffic again along the ego's path, score its drives again, and compare."""
    path = Path(path)
    try:
        run, about = Run.open(path), read_about(path)
        if problems := list(_wrong_settings(run)):
            return Submission(path, problems=tuple(problems))
        kept = {card["token"]: card for card in read_cards(path)} if (path / CARDS).is_file() else {}
        cards, problems = _checked_cards(run, kept)
    except (BadInput, OSError, KeyError, ValueError) as error:
        return Submission(path, problems=(one_line(error, 300),))
    settings, job = run.folder.settings, run.job
    facts = {"seed": job.seed, "radp": run.folder.config["radp"], "planner_hash": settings.get("planner_hash")}
    if problems:
        return Submission(path, about=about, facts=facts, problems=tuple(problems))
    cards.sort(key=lambda card: card["token"])
    seconds = np.array([np.nan if card["seconds"] is None else card["seconds"] for card in cards])
    logs = np.array([log_of(card["token"]) for card in cards])
    row = Row(job.scenarios, job.agents, Path(job.planner).name, values_of(cards), logs, seconds, (job.seed,))
    return Submission(path, row, about, facts)


def read_about(path: Path) -> dict[str, str]:
    """What submission.json says; nothing where there is none."""
    if not (path / ABOUT).is_file():
        return {}
    with reading_file(path / ABOUT, f"description of a submission: expected texts {', '.join(ABOUT_FIELDS)}"):
        about = json.loads((path / ABOUT).read_bytes())
        strange = [name for name in about if name not in ABOUT_FIELDS or not isinstance(about[name], str)]
        if strange:
            raise ValueError(f"{strange[0]!r} is not one of them, or no text")
        if long := next((name for name, text in about.items() if len(text) > LONGEST_TEXT), None):
            raise ValueError(f"{long} is longer than {LONGEST_TEXT} characters")
    return about


def _wrong_settings(run: Run) -> Iterator[str]:
    job = run.job
    if job.scenarios not in (*list_splits(), *MADE):
        yield f"it drove {Path(job.scenarios).name!r}, expected a whole split: {', '.join((*list_splits(), *MADE))}"
    if job.limit is not None or job.token:
        yield "it drove some scenarios of the split alone"
    if job.controller != "lqr":
        yield f"its controller is {job.controller}, expected lqr"
    missing = [token for token in run.split.tokens() if token not in run.store]
    if missing:
        yield f"{len(missing)} of {len(run.split)} scenarios were not driven, {missing[0]} for instance"


def _checked_cards(run: Run, kept: dict[str, dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """Score cards computed again, and what does not agree; the search ends at the first group with a fault."""
    cards: list[dict[str, Any]] = []
    problems: list[str] = []
    rollouts = run.rollouts()
    with Progress("drives checked", len(run.split)) as progress:
        while not problems and (group := list(islice(rollouts, SCORED_AT_ONCE))):
            for rollout in group:
                problems += [f"drive of {rollout.scenario.token}: {fault}" for fault in drive_faults(rollout)]
            for score in evaluate_many(group):
                card = score_card(score)
                cards.append(card)
                stored = kept.get(card["token"])
                if stored is None:
                    problems.append(f"{CARDS} has no card of {card['token']}")
                elif not abs(stored["score"] - card["score"]) <= SAME_SCORE:
                    problems.append(
                        f"{card['token']} is said to score {stored['score']:.6f}, but scores {card['score']:.6f}"
                    )
            progress.advance(len(group))
    return cards, problems


def drive_faults(rollout: Rollout) -> Iterator[str]:
    """What shows that a drive was not driven in this scenario: its beginning, its clock, its length, its traffic."""
    scenario, samples = rollout.scenario, len(rollout.ego)
    if rollout.failure is None and samples != scenario.frames - 1:
        yield f"it has {samples} samples, expected {scenario.frames - 1}"
    if not (rollout.ego[0] == scenario.ego[scenario.start]).all():
        yield "it does not begin where the scenario does"
    if not (rollout.time_us == scenario.time_us[scenario.start : scenario.start + samples]).all():
        yield "its clock is not that of the scenario"
    if rollout.failure is None and rollout.agent_mode == "reactive":
        again = replayed_traffic(rollout)
        same = again.ids == rollout.agents.ids and (again.valid == rollout.agents.valid).all()
        if not same or not np.allclose(again.state, rollout.agents.state, rtol=0.0, atol=SAME_PLACE):
            yield "its traffic is not what reacts to its ego"


def replayed_traffic(rollout: Rollout) -> Tracks:
    """The road users as they react to the ego's own path, computed again -> Tracks over the drive's samples."""
    world = World([rollout.scenario], agent_model(rollout.agent_mode))
    for step in range(len(rollout.ego) - 1):
        world.ego[0, PAST + step + 1], world.ego_valid[0, PAST + step + 1] = rollout.ego[step + 1], True
        world.tick()
    return world.drive_of(0, len(rollout.ego))[2]
