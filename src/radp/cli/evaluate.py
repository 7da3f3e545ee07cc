"""radp evaluate: tables with intervals."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Literal


def evaluate_planners(
    planners: tuple[str, ...],
    splits: tuple[str, ...],
    out: Path,
    agents: tuple[Literal["reactive", "nonreactive"], ...] = ("reactive", "nonreactive"),
    base: str | None = None,
    limit: int | None = None,
    workers: int = 1,
    seed: int = 0,
) -> int:
    """Drive planners over splits in closed loop and print one table: every sub-score with its 95% interval.

    Drives that are there already are not driven again. The table is also written to OUT/planners.md.

    Example:
        radp evaluate planners --planners log_replay idm pdm_closed --splits sumo14-val --out runs/table

    Args:
        planners: Names, model folders, or your own as file.py:Class.
        splits: Packaged splits or stores.
        out: Folder for the runs and the table.
        agents: How the others move.
        base: A planner of the list to which the others are compared, paired by scenario.
        limit: At most this many scenarios of each split.
        workers: Processes.
        seed: Of the planners' randomness.
    """
    from radp.evaluation.planners import compare, footnote, table

    rows = compare(planners, splits, agents, out, limit, workers, seed)
    text = f"{table(rows, base)}\n\n{footnote(rows)}"
    (out / "planners.md").write_text(text + "\n")
    print(text)
    return 0


def evaluate_fidelity(
    planner: str,
    splits: tuple[str, ...],
    out: Path,
    agents: Literal["reactive", "nonreactive"] = "reactive",
    limit: int | None = None,
    workers: int = 1,
    seed: int = 0,
    json: bool = False,
) -> int:
    """Compare the pressures that a planner's head tells with the exact teacher's, on the same frames in closed loop.

    Spearman, mean absolute error and Top-1 with 95% intervals (10,000 resamples of scenarios). Drives that are there
    already are not driven again. Also written: OUT/fidelity.md and OUT/fidelity.json.

    Example:
        radp evaluate fidelity --planner radp-mini --splits sumo14-val sumo14-random --out runs/fidelity

    Args:
        planner: Packaged model or planner folder with a head.
        splits: Packaged splits or stores.
        out: Folder for the runs and the tables.
        agents: How the others move.
        limit: At most this many scenarios of each split.
        workers: Processes.
        seed: Of the planner's randomness and of the resamples.
        json: Print JSON instead of the table.
    """
    from radp.evaluation.fidelity import fidelity_table, measure_fidelity
    from radp.runs.files import write_json_atomically

    found = measure_fidelity(planner, splits, out, agents, limit, workers, seed)
    data = {"planner": planner, "agents": agents, "splits": [one.to_json() for one in found]}
    write_json_atomically(out / "fidelity.json", data)
    text = fidelity_table(found)
    (out / "fidelity.md").write_text(text + "\n")
    print(json_module.dumps(data, indent=1) if json else text)
    return 0
