"""radp demo: drive a few scenarios and leave a page to look at."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from radp.runs.engine import Engine
from radp.runs.errors import BadInput


@dataclass(frozen=True)
class Demo:
    """Show what radp does: its planner beside the one that it was made of, on six scenarios, with scores and reasons.

    The scenarios were chosen by a written rule (docs/viewer.md): some in which the rules saved a drive, one in which
    they cost progress, one failure. IDM and PDM-Closed stand beside them in the table. Needs no data and no network;
    what was driven already is not driven again. With --quick nothing is driven: the pages come with the package.

    Example:
        radp demo --quick --open
        radp demo --out demo
    """

    out: Path = Path("demo")
    """Folder for the runs and the pages."""
    quick: bool = False
    """Show the pages that come with the package."""
    scenarios: int = 6
    """How many scenarios to drive; other numbers than 6 are spread over the kinds."""
    workers: int = 2
    """Processes; 2 let two planners drive at the same time."""
    where: Engine = field(default_factory=Engine)
    open: bool = False
    """Open the pages in a browser."""
    json: bool = False
    """Print paths and summaries as JSON."""

    def __call__(self) -> int:
        from radp.runs.json_text import json_text

        if self.scenarios < 1:
            raise BadInput(f"scenarios is {self.scenarios}, expected at least 1")
        if self.quick:
            from radp.report.packaged_pages import copy_pages

            index = copy_pages(self.out)
            print(json_text({"index": str(index)}) if self.json else f"open {index.resolve().as_uri()}")
        else:
            from radp.report.demo import demo_json, demo_table, run_demo

            made = run_demo(self.out, self.scenarios, self.workers)
            index = made.site.index
            print(demo_json(made) if self.json else f"{demo_table(made)}\nopen {index.resolve().as_uri()}")
        if self.open:
            import webbrowser

            webbrowser.open(index.resolve().as_uri())
        return 0
