"""Results that nuplan-devkit wrote: its aggregator files and metric files as score cards, beside our own.

An aggregator file (.parquet, or the same table as .csv) has a row for each scenario and rows of means below. A folder
of metric files (metrics.NAME.parquet) has a file for each metric with a row for each scenario.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from radp.metrics.card import metric_costs
from radp.metrics.metric import NO_VALUE, Metric
from radp.metrics.score import GATES, METRICS, WEIGHTS, aggregate
from radp.runs.errors import BadInput, one_line
from radp.sources.limits import MOST_BYTES
from radp.sources.log_files import reading
from radp.storage.foreign_tables import read_foreign_table
from radp.storage.unpacking import read_csv

Row = dict[str, Any]
METRIC_FILES = "metrics.*.parquet"
MOST_ROWS = 1_000_000
ROUNDING = 1e-6
NUMBERS = (*METRICS, "score", "num_scenarios", "metric_score")  # the texts of a .csv that are numbers; tokens are not
COLUMNS = (*NUMBERS, "scenario", "scenario_name", "scenario_type", "planner_name", "metric_statistics_name", "model",
           "simulation", "validation")  # fmt: skip
AGENTS = (("nonreactive", "nonreactive"), ("reactive", "reactive"))


@dataclass(frozen=True)
class Results:
    """cards: one for each scenario, as of `score_card`, without moments. totals: rows of means as they were written."""

    cards: list[Row]
    totals: list[Row]


def read_results(path: Path) -> Results:
    """An aggregator file, or a folder of metric files or of aggregator files."""
    if path.is_dir():
        metric_files = sorted(path.rglob(METRIC_FILES))
        if metric_files:
            return Results(cards_of_metrics(metric_files), [])
        tables = sorted(p for p in path.rglob("*") if p.suffix in (".parquet", ".csv") and p.is_file())
        parts = [read_results(table) for table in tables]
        return Results([c for part in parts for c in part.cards], [t for part in parts for t in part.totals])
    rows = read_rows(path)
    if not rows or not {"scenario", "score", "planner_name"} <= set(rows[0]):
        raise BadInput(
            f"{path}: expected columns scenario, planner_name and score, as nuplan-devkit's aggregator writes"
        )
    of_scenarios = [row for row in rows if row.get("num_scenarios") is None]
    totals = [row for row in rows if row.get("num_scenarios") and row["score"] is not None]
    with reading(path.name, "a row"):
        return Results([_card(row, path) for row in of_scenarios], totals)


def read_rows(path: Path) -> list[Row]:
    """Rows of a .parquet or .csv table; empty cells and NaN are None, and numbers are numbers."""
    try:
        raw: Iterable[Row] = read_csv(path) if path.suffix == ".csv" else _rows_of(path)
    except (OSError, ValueError, csv.Error, NotImplementedError, KeyError, TypeError, MemoryError) as error:
        raise BadInput(f"{path}: not a readable table ({' '.join(str(error).split())[:200]})") from None
    with reading(path.name, "a number"):
        return [{name: _plain(name, value) for name, value in row.items() if name is not None} for row in raw]


def _rows_of(path: Path) -> list[Row]:
    """The columns that we look at."""
    table = read_foreign_table(path, COLUMNS, MOST_ROWS, MOST_BYTES)
    if nested := [field.name for field in table.schema if field.type.num_fields]:
        raise ValueError(f"{nested[0]} holds more than one value in a row")
    return table.to_pylist()


def _plain(name: str, value: Any) -> Any:
    """A cell; a number must be one, and scores lie between 0 and 1."""
    if name not in NUMBERS:
        return None if isinstance(value, str) and not value else value
    number = None if value is None or value == "" else float(value)
    if number is None or math.isnan(number):
        return None
    if not 0.0 <= number <= (MOST_ROWS if name == "num_scenarios" else 1.0 + ROUNDING):
        raise ValueError(f"{name} is {number:g}, expected 0 to 1")
    return number


def _card(row: Row, path: Path) -> Row:
    metrics = {name: _metric(row.get(name)) for name in METRICS}
    agents = next((agents for word, agents in AGENTS if word in path.name), "unknown")
    return card_of(row, metrics, row["score"], agents)


def _metric(value: Any) -> Metric:
    return NO_VALUE if value is None else Metric(float(value))


def card_of(row: Row, metrics: dict[str, Metric], score: float | None, agents: str) -> Row:
    """A score card of a result: `score` as written, or our aggregation of the metrics where there is none."""
    costs = metric_costs(metrics)
    return {
        "token": one_line(row.get("scenario") or row.get("scenario_name")),
        "kind": one_line(row["scenario_type"]),
        "planner": one_line(row["planner_name"]),
        "agents": agents,
        "seed": 0,
        "score": aggregate(metrics) if score is None else float(score),
        "seconds": None,
        "failure": None,
        "metrics": {
            name: {
                "value": metric.value if metric.valid else None,
                "role": "gate" if name in GATES else "weighted",
                "weight": WEIGHTS.get(name),
                "cost": costs[name],
                "gain": 0.0,
                "moments": [],
            }
            for name, metric in metrics.items()
        },
        "collisions": [],
    }


def cards_of_metrics(files: Iterable[Path]) -> list[Row]:
    """Metric files -> a card for each scenario and planner; their score is our aggregation."""
    found: dict[tuple[str, str], Row] = {}
    values: dict[tuple[str, str], dict[str, Metric]] = {}
    for file in files:
        for row in read_rows(file):
            key = str(row.get("scenario_name")), str(row.get("planner_name"))
            found.setdefault(key, row)
            name = row.get("metric_statistics_name")
            if name in METRICS:
                values.setdefault(key, dict.fromkeys(METRICS, NO_VALUE))[name] = _metric(row.get("metric_score"))
    with reading("metric files", "a row"):
        return [card_of(found[key], metrics, None, "unknown") for key, metrics in values.items()]
