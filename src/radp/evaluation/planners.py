"""Tables of planners: every sub-score with its interval, and paired differences to a base planner."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from radp.evaluation.closed_loop import CARDS, run_simulation, summarise_run
from radp.metrics.score import METRICS
from radp.scenario.parts import log_of
from radp.statistics.bootstrap import mean_of, paired_difference
from radp.statistics.estimate import Estimate, difference, interval

COLUMNS = {
    "score": "Score",
    "no_ego_at_fault_collisions": "Collision",
    "time_to_collision_within_bound": "TTC",
    "drivable_area_compliance": "Drivable",
    "ego_is_making_progress": "Moving",
    "driving_direction_compliance": "Direction",
    "ego_progress_along_expert_route": "Progress",
    "speed_limit_compliance": "Speed",
    "ego_is_comfortable": "Comfort",
}


@dataclass(frozen=True)
class Row:
    """One planner on one split in one mode: values by metric (N,), scenarios in the order of their tokens."""

    split: str
    agents: str
    planner: str
    values: dict[str, np.ndarray]
    logs: np.ndarray | None = None  # (N,) the log of each scenario, for intervals over logs
    seconds: np.ndarray | None = None  # (N,) how long each was driven; NaN where the planner failed

    def estimate(self, metric: str) -> Estimate:
        return mean_of(self.values[metric], groups=self.logs)

    def difference(self, base: Row, metric: str) -> Estimate:
        """Paired by scenario."""
        return paired_difference(self.values[metric], base.values[metric], groups=self.logs)

    @classmethod
    def read(cls, run: Path, split: str, agents: str, planner: str) -> Row:
        """The score cards of a run."""
        cards = read_cards(run)
        logs = np.array([log_of(card["token"]) for card in cards])
        seconds = np.array([np.nan if card["seconds"] is None else card["seconds"] for card in cards])
        return cls(split, agents, planner, values_of(cards), logs, seconds)


def compare(
    planners: Sequence[str],
    splits: Sequence[str],
    modes: Sequence[str],
    out: Path,
    limit: int | None = None,
    workers: int = 1,
    seed: int = 0,
) -> list[Row]:
    """Drive everything (what is there already is kept) and read the score cards."""
    rows = []
    for split in splits:
        for agents in modes:
            for planner in planners:
                folder = out / f"{Path(split).name}-{agents}-{Path(planner).name}"
                run = run_simulation(planner, split, folder, agents, workers=workers, seed=seed, limit=limit)
                summarise_run(run)
                rows.append(Row.read(folder, Path(split).name, agents, Path(planner).name))
    return rows


def read_cards(run: Path) -> list[dict[str, Any]]:
    """The score cards of a run, sorted by token."""
    return sorted((json.loads(line) for line in (run / CARDS).read_text().splitlines()), key=lambda c: c["token"])


def values_of(cards: Sequence[dict[str, Any]]) -> dict[str, np.ndarray]:
    values = {"score": np.array([card["score"] for card in cards], dtype=np.float64)}
    for metric in METRICS:
        found = [card["metrics"][metric]["value"] for card in cards]
        values[metric] = np.array([np.nan if v is None else v for v in found], dtype=np.float64)
    return values


def table(rows: Sequence[Row], base: str | None = None) -> str:
    """Markdown: means x100 with 95% intervals; with `base`, each row is followed by its paired difference to it."""
    lines = [
        f"| split | agents | planner | {' | '.join(COLUMNS.values())} |",
        f"|---|---|---|{'---|' * len(COLUMNS)}",
    ]
    for row in rows:
        cells = [interval(row.estimate(metric), 1, 100) for metric in COLUMNS]
        lines.append(f"| {row.split} | {row.agents} | {row.planner} | {' | '.join(cells)} |")
        same = [r for r in rows if (r.split, r.agents, r.planner) == (row.split, row.agents, base)]
        if same and row.planner != base:
            changes = [difference(row.difference(same[0], metric), 1, 100) for metric in COLUMNS]
            lines.append(f"| | | difference to {base} | {' | '.join(changes)} |")
    return "\n".join(lines)


def footnote(rows: Sequence[Row]) -> str:
    """One sentence per split on what its drives are: how many, of how many logs, how long."""
    notes = {}
    for row in rows:
        if row.logs is not None and row.seconds is not None and not np.isnan(row.seconds).all():
            least, most = np.nanmin(row.seconds), np.nanmax(row.seconds)
            long = f"{least:.1f} s" if most - least < 0.05 else f"{least:.1f} to {most:.1f} s"
            logs = len(np.unique(row.logs))
            of_logs = "" if logs == len(row.logs) else f" of {logs} logs, which are resampled whole"
            notes[row.split] = f"{row.split}: {len(row.logs)} drives{of_logs}, each {long} long."
    return "\n".join(notes.values())
