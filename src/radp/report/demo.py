"""The demo: two planners drive the same few scenarios, are scored beside others, and are shown side by side."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from radp.attribution.online import calibration_of
from radp.evaluation.closed_loop import COMMAND, SUMMARY, Run, run_simulation, summarise_run
from radp.evaluation.settings import Simulation
from radp.metrics.card import read_cards
from radp.planners import UnknownPlanner, load_planner
from radp.planners.learned import base_of
from radp.report.viewer import Site, write_site
from radp.rules.sets import ROAD_V2
from radp.runs.errors import BadInput
from radp.runs.folder import RunError, RunFolder
from radp.runs.json_text import json_text
from radp.runs.parallel import parallel_map
from radp.scenario.neutral_json import save_json, scenario_to_json
from radp.sources.synthetic import make_scenario
from radp.zoo import DEMO, list_models, list_splits

BEST_RULE_BASED, BASELINE = "pdm_closed", "idm"
FAVOURITES = ("radp-mini",)  # packaged models, the best first; others follow by name
SPLITS = ("sumo14-val",)  # the one to take scenarios from, if it is packaged
CHOICE = "choice.json"  # which scenarios are shown, and why


@dataclass(frozen=True)
class DemoResult:
    """What the demo left behind: a run and its summary for each planner, and the pages of the first two."""

    runs: list[Run]
    summaries: list[dict[str, Any]]
    site: Site


def run_demo(out: Path | str, count: int, workers: int) -> DemoResult:
    """Drive `count` scenarios in reactive traffic: ours and its base with the teacher beside them, and two others.

    A demo that was interrupted goes on; one of another version, planner or number of scenarios is driven anew. With two
    workers two planners drive at the same time, which on a fresh machine is mostly compiling.
    """
    out = Path(out)
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out} is a file; expected a folder for the demo")
    ours = best_planner()
    shown = [ours, base_of(ours) or BASELINE]
    planners = [*shown, *(name for name in (BASELINE, BEST_RULE_BASED) if name not in shown)]
    usual = ours if calibration_of(None, ours) is not None else ""
    job = replace(choose_scenarios(out, count), planner=ours)
    jobs = [
        replace(job, planner=planner, attribution="teacher", calibration=usual) if planner in shown
        else replace(job, planner=planner)
        for planner in planners
    ]  # fmt: skip
    pieces = [(one, out / "runs" / one.planner) for one in jobs]
    outcome = parallel_map(
        _drive, pieces, workers=workers, name=lambda piece: piece[0].planner, label="planners", folder=out
    )
    if outcome.failures:
        raise BadInput(f"{outcome.failures[0].piece}: {outcome.failures[0].reason}")
    runs = [Run.open(folder) for _, folder in pieces]
    summaries = [run.folder.read_json(SUMMARY) for run in runs]
    rules = ROAD_V2 if calibration_of(None, ours, ROAD_V2) is not None else ""
    return DemoResult(runs, summaries, write_site(runs[:2], out, at_incident=True, rules=rules))


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


def choose_scenarios(out: Path, count: int) -> Simulation:
    """What to drive: the packaged choice, else scenarios of a packaged split spread over its kinds, else made ones."""
    packaged = list_splits()
    name = next((name for name in (*SPLITS, *packaged) if name in packaged), None)
    if name is None:
        folder = out / "scenarios" / f"made-{count}"
        for i in range(count):
            if not (folder / f"{i:03d}.json.gz").exists():
                save_json(scenario_to_json(make_scenario(i)), folder / f"{i:03d}.json.gz")
        return Simulation(planner="", scenarios=str(folder))
    chosen = packaged_choice(name)
    if len(chosen) == count:
        return Simulation(planner="", scenarios=name, token=tuple(chosen))
    return Simulation(planner="", scenarios=name, limit=count)


def packaged_choice(split: str) -> dict[str, str]:
    """Token -> why it is shown, of the scenarios that were chosen for the demo; none of another split."""
    if not (DEMO / CHOICE).is_file():
        return {}
    choice = json.loads((DEMO / CHOICE).read_bytes())
    return {row["token"]: row["why"] for row in choice["scenarios"]} if choice["split"] == split else {}


def _drive(piece: tuple[Simulation, Path]) -> None:
    """Resume the run in the folder and score it; a run of the demo's that was another one is replaced."""
    job, folder = piece
    try:
        run = run_simulation(job, folder)
    except RunError:
        if RunFolder.open(folder).config["command"] != COMMAND:
            raise
        shutil.rmtree(folder)
        run = run_simulation(job, folder)
    summarise_run(run)


def demo_table(demo: DemoResult) -> str:
    """Scores x100 by scenario and planner, why each is shown, and the means."""
    names = [run.job.planner for run in demo.runs]
    scores = [{card["token"]: card["score"] for card in read_cards(run.folder.path)} for run in demo.runs]
    why = packaged_choice(demo.runs[0].job.scenarios)
    first = max(len(row["kind"]) for row in demo.site.rows)

    def line(title: str, cells: Sequence[str], note: str = "") -> str:
        return (
            f"{title:<{first}}" + "".join(f"  {cell:>{max(len(name), 6)}}" for cell, name in zip(cells, names)) + note
        )

    lines = [line("score x100", names)]
    for row in demo.site.rows:
        cells = [f"{100 * found[row['token']]:.1f}" if row["token"] in found else "-" for found in scores]
        lines.append(line(row["kind"], cells, f"  {why[row['token']]}" if row["token"] in why else ""))
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
