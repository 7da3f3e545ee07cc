"""radp demo: drive a few scenarios and leave a page to look at."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from radp.runs.engine import Engine
from radp.runs.errors import BadInput


@dataclass(frozen=True)
class Demo:
    """Drive a few scenarios with the best planner at hand and with IDM, score both, and show them side by side.

    Needs no data and no network. What was driven already is not driven again.

    Example:
        radp demo --out demo
    """

    out: Path = Path("demo")
    """Folder for the runs and the pages."""
    scenarios: int = 6
    """How many scenarios to drive."""
    workers: int = 2
    """Processes; 2 let both planners drive at the same time."""
    where: Engine = field(default_factory=Engine)
    json: bool = False
    """Print paths and summaries as JSON."""

    def __call__(self) -> int:
        from radp.report.demo import demo_json, demo_table, run_demo

        if self.scenarios < 1:
            raise BadInput(f"scenarios is {self.scenarios}, expected at least 1")
        made = run_demo(self.out, self.scenarios, self.workers)
        if self.json:
            print(demo_json(made))
        else:
            print(demo_table(made))
            print(f"open {made.site.index.resolve().as_uri()}")
        return 0
