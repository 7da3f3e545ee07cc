"""Tables of planners: every sub-score with its interval, and paired differences to a base planner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from radp.evaluation.closed_loop import run_simulation, summarise_run
from radp.evaluation.settings import Comparison, Simulation
from radp.metrics.card import read_cards
from radp.metrics.score import METRICS
from radp.planners import load_planner
from radp.planners.backends import takes_backend
from radp.runs.errors import BadInput
from radp.scenario.parts import log_of
from radp.scenario.splits import open_split
from radp.sim.planner import is_random
from radp.statistics.bootstrap import LEVEL, RESAMPLES, known_mean, mean_of, means_of, paired_difference
from radp.statistics.estimate import LEGEND, Estimate, difference, interval
from radp.statistics.power import ERRORS, POWER, SIGNIFICANCE

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
POOLED = "all splits"  # in place of a split's name


@dataclass(frozen=True)
class Row:
    """One planner on one split in one mode: values by metric (N,), scenarios in the order of their tokens."""

    split: str
    agents: str
    planner: str
    values: dict[str, np.ndarray]
    logs: np.ndarray | None = None  # (N,) the log of each scenario, for intervals over logs
    seconds: np.ndarray | None = None  # (N,) how long each was driven; NaN where the planner failed
    seeds: tuple[int, ...] = (0,)  # of the drives whose values are averaged inside each scenario

    def estimate(self, metric: str) -> Estimate:
        return mean_of(self.values[metric], groups=self.logs)

    def difference(self, base: Row, metric: str) -> Estimate:
        """Paired by scenario."""
        return paired_difference(self.values[metric], base.values[metric], groups=self.logs)

    def estimates(self) -> dict[str, Estimate]:
        """Of all columns, from the same draws."""
        return dict(zip(COLUMNS, means_of(np.stack([self.values[m] for m in COLUMNS]), groups=self.logs)))

    def differences(self, base: Row) -> dict[str, Estimate]:
        """To the base in all columns, paired by scenario."""
        less = np.stack([self.values[m] - base.values[m] for m in COLUMNS])
        return dict(zip(COLUMNS, means_of(less, groups=self.logs)))

    @classmethod
    def read(cls, run: Path, split: str, agents: str, planner: str, seed: int = 0) -> Row:
        """The score cards of a run."""
        cards = sorted(read_cards(run), key=lambda card: card["token"])
        logs = np.array([log_of(card["token"]) for card in cards])
        seconds = np.array([np.nan if card.get("seconds") is None else card["seconds"] for card in cards])
        return cls(split, agents, planner, values_of(cards), logs, seconds, (seed,))


def over_seeds(rows: Sequence[Row]) -> Row:
    """The same scenarios driven with several seeds -> one row, in which each scenario has the mean over its seeds."""
    first = rows[0]
    values = {name: known_mean(np.stack([row.values[name] for row in rows], -1)) for name in first.values}
    seeds = tuple(seed for row in rows for seed in row.seeds)
    return replace(first, values=values, seeds=seeds)


def over_splits(rows: Sequence[Row]) -> list[Row]:
    """One row more for each planner and mode: the scenarios of all splits together, if there are several splits."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row.agents, row.planner), []).append(row)
    return [_joined(parts) for parts in found.values() if len(parts) > 1]


def _joined(parts: Sequence[Row]) -> Row:
    def together(name: str) -> np.ndarray | None:
        values = [getattr(part, name) for part in parts]
        return None if any(value is None for value in values) else np.concatenate(values)

    first = parts[0]
    values = {metric: np.concatenate([part.values[metric] for part in parts]) for metric in first.values}
    return replace(first, split=POOLED, values=values, logs=together("logs"), seconds=together("seconds"))


def compare(wanted: Comparison, out: Path, workers: int = 1, plan_timeout: float | None = None) -> list[Row]:
    """Drive everything (what is there already is kept) and read the score cards.

    Each scenario is driven with `seeds` seeds, beginning with `seed`; once by a planner that is not random.
    """
    if wanted.seeds < 1:
        raise BadInput(f"seeds is {wanted.seeds}, expected at least 1")
    for given in (wanted.planners, wanted.splits):
        check_distinct(given)
    loaded = {planner: load_planner(planner) for planner in wanted.planners}  # all are known before any drives
    for split in wanted.splits:
        open_split(split)
    several = {name for name, planner in loaded.items() if wanted.seeds > 1 and is_random(planner)}
    quicker = {name for name, planner in loaded.items() if wanted.backend != "torch" and takes_backend(planner)}
    rows = []
    for split, agents, planner in product(wanted.splits, wanted.agents, wanted.planners):
        seeds = range(wanted.seed, wanted.seed + (wanted.seeds if planner in several else 1))
        backend = wanted.backend if planner in quicker else "torch"
        job = Simulation(planner=planner, scenarios=split, agents=agents, limit=wanted.limit, backend=backend)
        rows.append(over_seeds([drive(replace(job, seed=seed), out, workers, plan_timeout) for seed in seeds]))
    return rows


def drive(job: Simulation, out: Path, workers: int = 1, plan_timeout: float | None = None) -> Row:
    """One planner on one split with one seed. A seed has its own run folder: more seeds cost their own drives only."""
    names, folder = names_of(job), run_folder(job, out)
    summarise_run(run_simulation(job, folder, workers=workers, plan_timeout=plan_timeout))
    return Row.read(folder, *names, job.seed)


def names_of(job: Simulation) -> tuple[str, str, str]:
    """Split, agents and planner, as tables call them."""
    return Path(job.scenarios).name, job.agents, Path(job.planner).name


def check_distinct(given: Sequence[str]) -> None:
    """BadInput if two of them would have one name, and so one row and one folder, in the table."""
    known: dict[str, str] = {}
    for one in given:
        other = known.setdefault(Path(one).name, one)
        if other != one:
            raise BadInput(f"{other} and {one} have the same last name, which names rows and runs; rename or link one")


def run_folder(job: Simulation, out: Path) -> Path:
    """Where the drives of one row are."""
    return out / ("-".join(names_of(job)) + (f"-seed{job.seed}" if job.seed else ""))


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
        cells = [interval(estimate, 1, 100) for estimate in row.estimates().values()]
        lines.append(f"| {row.split} | {row.agents} | {row.planner} | {' | '.join(cells)} |")
        if reference := _reference(row, rows, base):
            changes = [difference(estimate, 1, 100) for estimate in row.differences(reference).values()]
            lines.append(f"| | | difference to {base} | {' | '.join(changes)} |")
    return "\n".join(lines)


def _reference(row: Row, rows: Sequence[Row], base: str | None) -> Row | None:
    """The base on the same drives, unless the row is its own."""
    same = (r for r in rows if (r.split, r.agents, r.planner) == (row.split, row.agents, base))
    return None if row.planner == base else next(same, None)


def table_json(rows: Sequence[Row], base: str | None = None) -> dict[str, Any]:
    """Everything that the table says, 0..1, JSON-ready."""
    found = []
    for row in rows:
        entry: dict[str, Any] = {"split": row.split, "agents": row.agents, "planner": row.planner}
        entry |= {"seeds": list(row.seeds), "scenarios": len(row.values["score"])}
        entry |= {"logs": len(row.values["score"]) if row.logs is None else len(np.unique(row.logs))}
        entry["means"] = {metric: estimate.to_json() for metric, estimate in row.estimates().items()}
        if reference := _reference(row, rows, base):
            entry["differences"] = {
                metric: estimate.to_json() | {"shown": estimate.excludes_zero}
                for metric, estimate in row.differences(reference).items()
            }
        found.append(entry)
    power = {"power": POWER, "significance": SIGNIFICANCE, "standard_errors": ERRORS}
    bootstrap = {"resamples": RESAMPLES, "level": LEVEL}
    return {"base": base, "bootstrap": bootstrap, "smallest_difference": power, "rows": found}


def footnote(rows: Sequence[Row]) -> str:
    """What the drives are: how many, of how many logs, how long, with which seeds; and what d means."""
    notes = {}
    for row in rows:
        if row.logs is not None and row.seconds is not None and not np.isnan(row.seconds).all():
            least, most = np.nanmin(row.seconds), np.nanmax(row.seconds)
            long = f"{least:.1f} s" if most - least < 0.05 else f"{least:.1f} to {most:.1f} s"
            logs = len(np.unique(row.logs))
            of_logs = "" if logs == len(row.logs) else f" of {logs} logs, which are resampled whole"
            notes[row.split] = f"{row.split}: {len(row.logs)} scenarios{of_logs}, each {long} long."
    return "\n".join([*notes.values(), *_seed_notes(rows), LEGEND])


def _seed_notes(rows: Sequence[Row]) -> list[str]:
    """Which planners were driven with several seeds, and which once."""
    if all(len(row.seeds) == 1 for row in rows):
        return []
    words: dict[str, list[str]] = {}
    for planner, seeds in {row.planner: row.seeds for row in rows}.items():
        several = f"Each scenario driven with seeds {seeds[0]} to {seeds[-1]}, averaged inside it"
        words.setdefault(several if len(seeds) > 1 else "Driven once, without randomness", []).append(planner)
    return [f"{how}: {', '.join(who)}." for how, who in words.items()]
