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
    seeds: int = 1,
    json: bool = False,
) -> int:
    """Drive planners over splits in closed loop and print one table: every sub-score with its 95% interval.

    Beside each interval stands the smallest difference that could have been shown. Drives that are there already are
    not driven again. Also written: OUT/planners.md and OUT/planners.json.

    Example:
        radp evaluate planners --planners log_replay idm pdm_closed --splits sumo14-val --out runs/table
        radp evaluate planners --planners idm radp-mini --splits sumo14-val --base idm --seeds 3 --out runs/table

    Args:
        planners: Names, model folders, or your own as file.py:Class.
        splits: Packaged splits or stores.
        out: Folder for the runs and the table.
        agents: How the others move.
        base: A planner of the list to which the others are compared, paired by scenario.
        limit: At most this many scenarios of each split.
        workers: Processes.
        seed: Of the planners' randomness; the first of several.
        seeds: How many seeds each scenario is driven with, averaged inside it; planners without randomness drive once.
        json: Print JSON instead of the table.
    """
    from radp.evaluation.planners import compare, footnote, table, table_json
    from radp.runs.errors import BadInput
    from radp.runs.files import write_json_atomically

    names, base = [Path(planner).name for planner in planners], base and Path(base).name
    if base is not None and base not in names:
        raise BadInput(f"base is {base!r}, expected one of the planners: {', '.join(names)}")
    rows = compare(planners, splits, agents, out, limit, workers, seed, seeds)
    text, data = f"{table(rows, base)}\n\n{footnote(rows)}", table_json(rows, base)
    (out / "planners.md").write_text(text + "\n")
    write_json_atomically(out / "planners.json", data)
    print(json_module.dumps(data, indent=1) if json else text)
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
