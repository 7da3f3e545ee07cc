"""radp demo: drive a few scenarios and leave a page to look at."""

from __future__ import annotations

from pathlib import Path

from radp.runs.errors import BadInput


def demo(out: Path = Path("demo"), scenarios: int = 6, workers: int = 2, json: bool = False) -> int:
    """Drive a few scenarios with the best planner at hand and with IDM, score both, and show them side by side.

    Needs no data and no network. What was driven already is not driven again.

    Example:
        radp demo --out demo

    Args:
        out: Folder for the runs and the pages.
        scenarios: How many scenarios to drive.
        workers: Processes; 2 let both planners drive at the same time.
        json: Print paths and summaries as JSON.
    """
    from radp.report.demo import demo_json, demo_table, run_demo

    if scenarios < 1:
        raise BadInput(f"scenarios is {scenarios}, expected at least 1")
    made = run_demo(out, scenarios, workers)
    if json:
        print(demo_json(made))
    else:
        print(demo_table(made))
        print(f"open {made.site.index.resolve().as_uri()}")
    return 0
