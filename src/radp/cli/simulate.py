"""radp simulate: drive scenarios in closed loop."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Literal


def simulate(
    planner: str,
    scenarios: str,
    out: Path,
    agents: Literal["reactive", "nonreactive"] = "reactive",
    batch: int = 64,
    workers: int = 1,
    seed: int = 0,
    limit: int | None = None,
    controller: Literal["lqr", "perfect"] = "lqr",
    keep_plans: bool = False,
    attribution: Literal["own", "teacher"] = "own",
    calibration: str = "",
    export_json: Path | None = None,
    json: bool = False,
) -> int:
    """Drive scenarios in closed loop and score the drives. A run that was interrupted goes on with the same command.

    Example:
        radp simulate --planner pdm_closed --scenarios path/to/store --agents reactive --out runs/pdm
        radp simulate --planner my_planner.py:MyPlanner --scenarios scenario.json.gz --out runs/mine --workers 2

    Args:
        planner: Name of a planner, or your own as file.py:Class or module:Class.
        scenarios: Name of a packaged split, or a path (store, neutral JSON file, folder of them).
        out: Folder of the run: config.json, drives/, summary.json.
        agents: How the others move: reactive (IDM) or nonreactive (as in the log).
        batch: Scenarios in lock step; does not change the result.
        workers: Processes; does not change the result.
        seed: Of the planner's randomness.
        limit: At most this many scenarios, from the first.
        controller: lqr (tracker and bicycle, as nuPlan) or perfect (the ego is put on its plan).
        keep_plans: Keep every plan and rule pressure with the drives.
        attribution: own: what the planner itself tells, if it has a head (kept with --keep-plans); teacher: the exact
            pressure of every rule on every plan too, kept with the plans.
        calibration: Planner whose usual levels the teacher goes by, for planners that have none of their own.
        export_json: Folder for the drives as neutral JSON.
        json: Print the summary as JSON.
    """
    from radp.evaluation.closed_loop import export_drives, run_simulation, summarise_run
    from radp.metrics.summary import summary_text

    run = run_simulation(
        planner,
        scenarios,
        out,
        agents,
        batch,
        workers,
        seed,
        limit,
        controller,
        keep_plans,
        attribution,
        calibration,
    )
    summary = summarise_run(run)
    if export_json is not None:
        export_drives(run, export_json)
    if json:
        print(json_module.dumps(summary, indent=1))
    else:
        print(summary_text(summary))
        print(f"run: {out}")
    return 0
