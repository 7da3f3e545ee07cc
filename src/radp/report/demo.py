"""The demo: two planners drive the same few scenarios, are scored, and are shown side by side."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from radp.attribution.online import calibration_of
from radp.evaluation.closed_loop import COMMAND, SUMMARY, Run, run_simulation, summarise_run
from radp.evaluation.settings import Simulation
from radp.planners import UnknownPlanner, load_planner
from radp.report.viewer import Site, write_site
from radp.runs.errors import BadInput
from radp.runs.folder import RunError, RunFolder
from radp.runs.json_text import json_text
from radp.runs.parallel import parallel_map
from radp.scenario.neutral_json import save_json, scenario_to_json
from radp.scenario.splits import open_split
from radp.sources.synthetic import make_scenario
from radp.zoo import list_models, list_splits

BASELINE = "idm"
BEST_RULE_BASED = "pdm_closed"
FAVOURITES = ("radp-mini",)  # packaged models, the best first; others follow by name
SPLITS = ("sumo14-val",)  # the one to take scenarios from, if it is packaged


@dataclass(frozen=True)
class DemoResult:
    """What the demo left behind: a run and its summary for each planner, and the pages."""

    runs: list[Run]
    summaries: list[dict[str, Any]]
    site: Site


def run_demo(out: Path | str, count: int, workers: int) -> DemoResult:
    """Drive `count` scenarios in reactive traffic with the teacher beside each planner.

    A demo that was interrupted goes on; one of another version, planner or number of scenarios is driven anew. With two
    workers the planners drive at the same time, which on a fresh machine is mostly compiling.
    """
    out = Path(out)
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out} is a file; expected a folder for the demo")
    best, scenarios = best_planner(), choose_scenarios(out, count)
    planners = [best, BASELINE]
    usual = best if calibration_of(None, best) is not None else ""
    folders = [out / "runs" / planner for planner in planners]
    pieces = [(planner, scenarios, folder, count, usual) for planner, folder in zip(planners, folders)]
    outcome = parallel_map(_drive, pieces, workers=workers, name=lambda piece: piece[0], label="planners", folder=out)
    if outcome.failures:
        raise BadInput(f"{outcome.failures[0].piece}: {outcome.failures[0].reason}")
    runs = [Run.open(folder) for folder in folders]
    return DemoResult(runs, [run.folder.read_json(SUMMARY) for run in runs], write_site(runs, out))


def best_planner() -> str:
    """The best packaged model that can be loaded, or the best planner that needs none."""
    packaged = list_models()
    ordered = [*(name for name in FAVOURITES if name in packaged), *(n for n in packaged if n not in FAVOURITES)]
    for name in ordered:
        try:
            load_planner(name)
        except UnknownPlanner:
            continue
        return name
    return BEST_RULE_BASED


def choose_scenarios(out: Path, count: int) -> str:
    """A folder with scenarios spread evenly over a packaged split; without one, with scenarios made by formula."""
    packaged = list_splits()
    name = next((name for name in (*SPLITS, *packaged) if name in packaged), None)
    folder = out / "scenarios" / f"{name or 'made'}-{count}"
    split = None if name is None else open_split(name)
    total = count if split is None else len(split)
    for i, position in enumerate(np.linspace(0, total - 1, count).round().astype(int)):
        path = folder / f"{i:03d}.json.gz"
        if not path.exists():
            scenario = make_scenario(int(position)) if split is None else split[int(position)]
            save_json(scenario_to_json(scenario), path)
    return str(folder)


def _drive(piece: tuple[str, str, Path, int, str]) -> None:
    """Resume the run in the folder and score it; a run of the demo's that was another one is replaced."""
    planner, scenarios, folder, count, usual = piece

    job = Simulation(planner=planner, scenarios=scenarios, limit=count, attribution="teacher", calibration=usual)

    def drive() -> Run:
        return run_simulation(job, folder)

    try:
        run = drive()
    except RunError:
        if RunFolder.open(folder).config["command"] != COMMAND:
            raise
        shutil.rmtree(folder)
        run = drive()
    summarise_run(run)


def demo_table(demo: DemoResult) -> str:
    """Scores x100 by scenario and planner, and their means."""
    names = [run.job.planner for run in demo.runs]
    first = max(len(row["kind"]) for row in demo.site.rows)

    def line(title: str, cells: Sequence[str]) -> str:
        return f"{title:<{first}}" + "".join(f"  {cell:>{max(len(name), 6)}}" for cell, name in zip(cells, names))

    lines = [line("score x100", names)]
    for row in demo.site.rows:
        lines.append(line(row["kind"], [f"{100 * drive['score']:.1f}" if drive else "-" for drive in row["drives"]]))
    lines.append(line("mean", [f"{100 * summary['score']['mean']:.1f}" for summary in demo.summaries]))
    for name, summary in zip(names, demo.summaries):
        lines += [f"{name} failed on {failure['token']}: {failure['reason']}" for failure in summary["failures"]]
    return "\n".join(lines)


def demo_json(demo: DemoResult) -> str:
    return json_text(
        {
            "index": str(demo.site.index),
            "pages": {token: str(path) for token, path in demo.site.pages.items()},
            "planners": {run.job.planner: summary for run, summary in zip(demo.runs, demo.summaries)},
        }
    )
