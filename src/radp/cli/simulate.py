"""radp simulate: drive scenarios in closed loop."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

from radp.evaluation.settings import Simulation
from radp.runs.engine import Engine
from radp.runs.errors import BadInput
from radp.runs.json_text import json_text


@dataclass(frozen=True, kw_only=True)
class Simulate(Simulation):
    """Drive scenarios in closed loop and score the drives.

    A run that was interrupted goes on with the same command.

    Example:
        radp simulate --planner pdm_closed --scenarios path/to/store --agents reactive --out runs/pdm
        radp simulate --planner runs/w/model --scenarios sumo14-val --weights collision=3 goal=0.5 --out runs/careful
        radp simulate --planner my_planner.py:MyPlanner --scenarios scenario.json.gz --out runs/mine --workers 2
    """

    out: Path
    """Folder of the run: config.json, drives/, summary.json."""
    batch: int = 64
    """Scenarios in lock step; does not change the result."""
    workers: int = 1
    """Processes; does not change the result."""
    where: Engine = field(default_factory=Engine)
    plan_timeout: float | None = None
    """Seconds within which the planner must answer, else that drive fails and the run goes on; each batch is one call,
    and the first may compile for a minute."""
    export_json: Path | None = None
    """Folder for the drives as neutral JSON."""
    fresh: bool = False
    """Drive everything again: what an earlier run left in OUT is deleted first."""
    json: bool = False
    """Print the summary as JSON."""

    def __call__(self) -> int:
        from radp.cli.data import say_missing
        from radp.evaluation.closed_loop import export_drives, planner_traceback, run_simulation, summarise_run
        from radp.metrics.summary import summary_text
        from radp.runs.folder import discard_run

        if self.fresh:
            discard_run(self.out, "simulate")
        run = run_simulation(self, self.out, self.batch, self.workers, self.plan_timeout)
        say_missing(run.split)
        summary = summarise_run(run)
        if self.export_json is not None:
            export_drives(run, self.export_json)
        if self.json:
            print(json_text(summary))
        else:
            print(summary_text(summary))
            print(f"run: {self.out}")
        if summary["failed"] == summary["scenarios"]:
            if self.plan_timeout is None:  # what never answers has no traceback
                print(planner_traceback(run), file=sys.stderr, end="")
            raise BadInput(f"every drive failed; the first: {summary['failures'][0]['reason']}")
        return 0
