"""Drives that went better than those of a base planner, as logs to learn from: alignment by what came of it.

One scenario, several planners: where the base's drive fails and another one's does not, the moments before that failure
are kept as the other one drove them. What others did is then their answer to the better drive, not to the worse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from radp.evaluation.closed_loop import Run
from radp.metrics.card import read_cards
from radp.metrics.score import GATES
from radp.runs.errors import BadInput
from radp.scenario.scenario import Ego
from radp.scenario.store import ScenarioWriter
from radp.sim.driven_log import driven_log
from radp.sim.rollout import Rollout

TTC = "time_to_collision_within_bound"
SAFE = ("no_ego_at_fault_collisions", "drivable_area_compliance", TTC)
BETTER = 0.1  # of the score
APART = 0.3  # m between two drives of one scenario: from there on they differ
BEFORE, AFTER = 10, 10  # samples kept before they differ, and after the base's failure
FUTURE = 40  # samples that the last kept state still has before it


@dataclass(frozen=True)
class Winner:
    """The drive of `run` (position) wins scenario `token`, whose base fails at sample `failed`."""

    token: str
    run: int
    failed: int


def winners(base: Sequence[Mapping[str, Any]], others: Sequence[Sequence[Mapping[str, Any]]]) -> list[Winner]:
    """Score cards of the base and of each other run -> who wins, one for each scenario at most, in the base's order.

    The base fails a gate or its time to collision falls below the bound; the winner does neither and scores higher.
    """
    found = []
    by_token = [{str(card["token"]): card for card in cards} for cards in others]
    for card in base:
        token, failed = str(card["token"]), failure_sample(card)
        if failed is None:
            continue
        rows = [(k, cards[token]) for k, cards in enumerate(by_token) if token in cards]
        good = [(one["score"], -k) for k, one in rows if is_clean(one) and one["score"] >= card["score"] + BETTER]
        if good:
            found.append(Winner(token, -max(good)[1], failed))
    return found


def is_clean(card: Mapping[str, Any]) -> bool:
    """Whether a drive passed all gates and kept its time to collision."""
    values = [card["metrics"][name]["value"] for name in (*GATES, TTC)]
    return card["score"] is not None and all(value is None or value >= 1.0 for value in values)


def failure_sample(card: Mapping[str, Any]) -> int | None:
    """Sample of the first moment at which safety failed; None if it never did."""
    if card["score"] is None or card.get("failure"):
        return None
    times = []
    for name in SAFE:
        metric = card["metrics"][name]
        if metric["value"] is not None and metric["value"] < 1.0:
            times += [float(moment["time"]) for moment in metric["moments"]]
    times += [float(collision["time"]) for collision in card["collisions"] if collision["at_fault"]]
    return round(min(times) * 10) if times else None


def first_apart(drive: Rollout, base: Rollout) -> int:
    """Sample at which two drives of one scenario are first apart; the last one if they never are."""
    steps = min(len(drive.ego), len(base.ego))
    gap = np.linalg.norm((drive.ego[:steps] - base.ego[:steps])[:, [Ego.X, Ego.Y]], axis=1)
    far = np.flatnonzero(gap > APART)
    return int(far[0]) if len(far) else steps - 1


def keep_drives(run: Path, out: Path) -> int:
    """Write the drives of a finished run as the store `out`, failed ones left out; returns how many there are."""
    if (out / "manifest.json").exists():
        raise BadInput(f"{out} holds a store already")
    finished = Run.open(run)
    if finished.incomplete:
        raise BadInput(finished.incomplete)
    kept = 0
    with ScenarioWriter(out) as writer:
        for drive in finished.rollouts():
            if drive.failure is None:
                writer.add(driven_log(drive))
                kept += 1
    return kept


def keep_winners(base: Path, others: Sequence[Path], out: Path) -> dict[str, int]:
    """Write the winning drives of finished runs as the store `out`: from where they part until the base has failed.

    Returns how many scenarios the base failed, how many were won, and by whom.
    """
    if not others:
        raise BadInput("name at least one run beside that of the base")
    if (out / "manifest.json").exists():
        raise BadInput(f"{out} holds a store already")
    first, rest = Run.open(base), [Run.open(path) for path in others]
    for run in rest:
        if (run.job.agents, run.job.seed) != (first.job.agents, first.job.seed):
            raise BadInput(f"{run.folder.path} has other traffic or another seed than {base}")
    cards = read_cards(base)
    won = {one.token: one for one in winners(cards, [read_cards(path) for path in others])}
    counts = {"failed": sum(failure_sample(card) is not None for card in cards), "won": 0}
    with ScenarioWriter(out) as writer:
        for i, token in enumerate(first.split.tokens()):
            if token not in won:
                continue
            scenario, one = first.split[i], won[token]
            drive = rest[one.run].store.read(scenario)
            begin = max(0, first_apart(drive, first.store.read(scenario)) - BEFORE)
            end = min(len(drive.ego), one.failed + AFTER + FUTURE + 1)
            if begin < one.failed:
                writer.add(driven_log(drive, begin, end=end))
                name = rest[one.run].job.planner
                counts["won"], counts[name] = counts["won"] + 1, counts.get(name, 0) + 1
    return counts
