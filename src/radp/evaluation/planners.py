"""Tables of planners: every sub-score with its interval, and paired differences to a base planner."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from radp.evaluation.closed_loop import CARDS, run_simulation, summarise_run
from radp.evaluation.intervals import Estimate, mean_of, paired_difference
from radp.metrics.score import METRICS

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

    def estimate(self, metric: str) -> Estimate:
        return mean_of(self.values[metric])

    def difference(self, base: Row, metric: str) -> Estimate:
        """Paired by scenario."""
        return paired_difference(self.values[metric], base.values[metric])


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
                rows.append(Row(Path(split).name, agents, Path(planner).name, read_values(folder)))
    return rows


def read_values(run: Path) -> dict[str, np.ndarray]:
    """Score and metrics (N,) of a run, sorted by token; NaN where a drive has no value."""
    cards = sorted((json.loads(line) for line in (run / CARDS).read_text().splitlines()), key=lambda c: c["token"])
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
        cells = [_cell(row.estimate(metric)) for metric in COLUMNS]
        lines.append(f"| {row.split} | {row.agents} | {row.planner} | {' | '.join(cells)} |")
        same = [r for r in rows if (r.split, r.agents, r.planner) == (row.split, row.agents, base)]
        if same and row.planner != base:
            changes = [_change(row.difference(same[0], metric)) for metric in COLUMNS]
            lines.append(f"| | | difference to {base} | {' | '.join(changes)} |")
    return "\n".join(lines)


def _cell(estimate: Estimate) -> str:
    if np.isnan(estimate.value):
        return "n/a"
    return f"{100 * estimate.value:.1f} [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"


def _change(estimate: Estimate) -> str:
    if np.isnan(estimate.value):
        return "n/a"
    note = "" if estimate.excludes_zero else " (no difference shown)"
    return f"{100 * estimate.value:+.1f} [{100 * estimate.low:+.1f}, {100 * estimate.high:+.1f}]{note}"
