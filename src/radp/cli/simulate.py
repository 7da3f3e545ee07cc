"""radp simulate: drive scenarios in closed loop."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class Simulate:
    """Drive scenarios in closed loop and score the drives.

    A run that was interrupted goes on with the same command.

    Example:
        radp simulate --planner pdm_closed --scenarios path/to/store --agents reactive --out runs/pdm
        radp simulate --planner my_planner.py:MyPlanner --scenarios scenario.json.gz --out runs/mine --workers 2
    """

    planner: str
    """Name of a planner, or your own as file.py:Class or module:Class."""
    scenarios: str
    """Name of a packaged split, or a path (store, neutral JSON file, folder of them)."""
    out: Path
    """Folder of the run: config.json, drives/, summary.json."""
    agents: Literal["reactive", "nonreactive"] = "reactive"
    """How the others move: reactive (IDM) or nonreactive (as in the log)."""
    batch: int = 64
    """Scenarios in lock step; does not change the result."""
    workers: int = 1
    """Processes; does not change the result."""
    seed: int = 0
    """Of the planner's randomness."""
    limit: int | None = None
    """At most this many scenarios, from the first."""
    controller: Literal["lqr", "perfect"] = "lqr"
    """lqr (tracker and bicycle, as nuPlan) or perfect (the ego is put on its plan)."""
    keep_plans: bool = False
    """Keep every plan and rule pressure with the drives."""
    attribution: Literal["own", "teacher"] = "own"
    """own: what the planner itself tells, if it has a head (kept with --keep-plans); teacher: the exact pressure
    of every rule on every plan too, kept with the plans.
    """
    calibration: str = ""
    """Planner whose usual levels the teacher goes by, for planners that have none of their own."""
    allow_missing: bool = False
    """Drive what can be read of a store that is incomplete."""
    export_json: Path | None = None
    """Folder for the drives as neutral JSON."""
    json: bool = False
    """Print the summary as JSON."""

    def __call__(self) -> int:
        from radp.cli.data import say_missing
        from radp.evaluation.closed_loop import export_drives, run_simulation, summarise_run
        from radp.metrics.summary import summary_text

        run = run_simulation(
            self.planner,
            self.scenarios,
            self.out,
            self.agents,
            self.batch,
            self.workers,
            self.seed,
            self.limit,
            self.controller,
            self.keep_plans,
            self.attribution,
            self.calibration,
            self.allow_missing,
        )
        say_missing(run.split)
        summary = summarise_run(run)
        if self.export_json is not None:
            export_drives(run, self.export_json)
        if self.json:
            print(json.dumps(summary, indent=1))
        else:
            print(summary_text(summary))
            print(f"run: {self.out}")
        return 0
