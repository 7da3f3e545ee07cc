"""Demonstrations in the loop: closed-loop drives that went well become logs to learn from.

Either one planner drives whole scenarios, or it takes over from another one at some moment, most often shortly before
that one's own collision or way off the road; what it then executes is the demonstration. Executed motion begins at the
ego and meets road users that react, which neither logs nor a planner's plans can offer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from radp.metrics.card import CARDS, read_cards
from radp.metrics.score import GATES, ScenarioScore, evaluate_many
from radp.planners import load_planner
from radp.planners.takeover import Takeover
from radp.runs.allowance import check_deadline
from radp.runs.errors import BadInput, reading_file
from radp.scenario import Scenario
from radp.scenario.splits import Split, open_split
from radp.scene.builder import FUTURE, SHORTEST_FUTURE
from radp.sim.driven_log import cut_drive, driven_log
from radp.sim.planner import Planner, TimedPlanner, timed_allowance
from radp.sim.settings import DriveOptions
from radp.sim.simulate import drive_batch
from radp.sources.convert import Refused, convert
from radp.sources.settings import Demonstrations

AT_ONCE = 64  # scenarios of one piece of work: a learned planner is quicker in large batches
DRIVABLE = "drivable_area_compliance"
EARLIEST = 10  # samples that the first driver has at least
BEFORE_FAILURE = (10, 30)  # samples before a failure at which somebody takes over


@dataclass(frozen=True)
class Piece:
    """Some scenarios, by position, and for each one the sample at which the demonstration begins."""

    name: str
    positions: tuple[int, ...]
    begins: tuple[int, ...]
    choice: Demonstrations
    plan_timeout: float | None = None


class DrivenLogs:
    """The source of driven logs, in the form that `radp.sources.convert` wants."""

    name = "driven logs"

    def __init__(self, plan_timeout: float | None = None) -> None:
        self.plan_timeout = plan_timeout

    def items(self, options: Demonstrations) -> list[Piece]:
        split = _split(options.scenarios)
        tokens = split.tokens()[: options.limit]
        failed = failure_samples(options.run) if options.run is not None else {}
        frames = _frames(split)[: options.limit]
        begins = [takeover_samples(token, failed.get(token), n - 1, options) for token, n in zip(tokens, frames)]
        groups, size = [], AT_ONCE if self.plan_timeout is None else 1  # a planner that hangs costs its whole piece
        for k in range(max(map(len, begins), default=0)):  # no scenario twice in one piece
            rows = [(position, begin[k]) for position, begin in enumerate(begins) if len(begin) > k]
            groups += [rows[i : i + size] for i in range(0, len(rows), size)]
        plain = replace(options, limit=None)
        names = [f"{i:05d}" if size > 1 else f"{tokens[group[0][0]]}+{group[0][1]}" for i, group in enumerate(groups)]
        return [
            Piece(name, tuple(p for p, _ in group), tuple(b for _, b in group), plain, self.plan_timeout)
            for name, group in zip(names, groups)
        ]

    def scenarios(self, item: Piece) -> Iterator[Scenario | Refused]:
        choice, split = item.choice, _split(item.choice.scenarios)
        worlds = [split[position] for position in item.positions]
        begins = {world.token: begin for world, begin in zip(worlds, item.begins)}
        driver = _driver(choice, begins)
        driver = driver if item.plan_timeout is None else TimedPlanner(driver, item.plan_timeout)
        driven = drive_batch(driver, worlds, DriveOptions(agents=choice.agents, seed=choice.seed))
        parts = [cut_drive(rollout, begin) for rollout, begin in zip(driven, item.begins)]
        for rollout, begin, score in zip(driven, item.begins, evaluate_many(parts, threads=1)):
            token = f"{rollout.scenario.token}+{begin}" if choice.after else rollout.scenario.token
            reason = _fault(score, choice)
            yield Refused(token, reason) if reason else replace(driven_log(rollout, begin), token=token)


def demonstrate(
    choice: Demonstrations, out: Path | str, workers: int = 1, plan_timeout: float | None = None
) -> dict[str, Any]:
    """Drive and keep what went well as the store `out`; returns its card. The same call takes up a killed run.

    A planner that gives no answer within `plan_timeout` seconds fails that drive; scenarios are then driven one by one.
    """
    check_deadline(plan_timeout)
    if choice.run is not None and not choice.after:
        raise BadInput("a run says where the first driver failed: name that driver as well")
    if choice.failed_only and choice.run is None:
        raise BadInput("only failed drives are wanted: name the run that says which failed")
    if not SHORTEST_FUTURE <= choice.future <= FUTURE:
        raise BadInput(f"future is {choice.future}, expected from {SHORTEST_FUTURE} to {FUTURE} samples")
    for name in filter(None, (choice.planner, choice.after)):
        load_planner(name)  # before any process is started: a planner that is not there has nothing to do with a log
    source, own = DrivenLogs(plan_timeout), timed_allowance(plan_timeout)
    return convert(source, choice, Path(out), workers, isolated=False, own=own)


def takeover_samples(token: str, failure: int | None, samples: int, choice: Demonstrations) -> list[int]:
    """Samples of a drive at which demonstrations begin: 0 without a first driver; 1 to 3 s before its failure, or at
    random moments. `choice.future` must remain, so late failures give none; drives that fail give one a takeover.
    """
    if not choice.after:
        return [0]
    if failure is None and choice.failed_only:
        return []
    last = samples - 1 - choice.future
    rng = np.random.default_rng([choice.seed, *token.encode()])
    chosen: set[int] = set()
    for _ in range(choice.takeovers):
        if failure is None:
            sample = int(rng.integers(EARLIEST, last + 1)) if last >= EARLIEST else -1
        else:
            sample = failure - int(rng.integers(BEFORE_FAILURE[0], BEFORE_FAILURE[1] + 1))
        if 0 <= sample <= last:
            chosen.add(sample)
    return sorted(chosen)


def failure_samples(run: Path) -> dict[str, int]:
    """token -> sample of the first collision at fault, else of the worst moment off the road, from the score cards of a
    finished run.
    """
    found: dict[str, int] = {}
    cards = read_cards(run)
    with reading_file(run / CARDS, "list of score cards"):
        for card in cards:
            times = [float(collision["time"]) for collision in card["collisions"] if collision["at_fault"]]
            road = card["metrics"][DRIVABLE]
            if not times and road["value"] is not None and road["value"] < 1.0:
                times = [float(moment["time"]) for moment in road["moments"]]
            if times:
                found[card["token"]] = round(min(times) * 10)
    return found


def _fault(score: ScenarioScore, choice: Demonstrations) -> str:
    """Why a drive is not kept; empty if it is."""
    if score.failure is not None:
        return score.failure
    failed = [gate for gate in GATES if score.metrics[gate].valid and score.metrics[gate].value < 1.0]
    if failed and choice.gates:
        return f"fails {', '.join(failed)}"
    wanted = choice.min_score
    return "" if score.score >= wanted else f"scores {score.score:.2f}, wanted {wanted:.2f}"


def _driver(choice: Demonstrations, begins: Mapping[str, int]) -> Planner:
    expert = _planner(choice.planner)
    return Takeover(_planner(choice.after), expert, begins) if choice.after else expert


@cache
def _planner(name: str) -> Planner:
    return load_planner(name)


@cache
def _split(name: str) -> Split:
    return open_split(name)


def _frames(split: Split) -> list[int]:
    """Frames of the drive of each scenario, from the index where there is one."""
    entries = getattr(split, "entries", None)
    return [one.frames for one in (entries() if entries is not None else split)]
