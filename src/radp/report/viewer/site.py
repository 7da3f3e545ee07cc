"""The pages of a run, or of two runs side by side: index.html and one page per scenario."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from radp.attribution.calibration import Calibration
from radp.attribution.online import levels_of
from radp.evaluation.closed_loop import Run
from radp.incidents.words import MOST_LEVEL
from radp.model.rule_weights import parse_weights
from radp.report.viewer.drive import DriveReport
from radp.report.viewer.explain import rule_words, rules_reported
from radp.report.viewer.look import report_rollout
from radp.report.viewer.page import render
from radp.report.viewer.scenario_page import scenario_page
from radp.report.viewer.thumbnail import HEIGHT, WIDTH, thumbnail
from radp.report.viewer.words import SHORT, TITLES, kind_words
from radp.rules.sets import V2
from radp.runs.errors import BadInput, did_you_mean
from radp.runs.files import write_atomically, write_json_atomically
from radp.runs.progress import Progress
from radp.scenario import Scenario
from radp.scenario.parts import spread_over_kinds
from radp.version import __version__

INDEX, LIST = "index.html", "pages.json"
FORMAT = "radp-view"
WORTH = 0.05  # of the score: incidents that cost less are not searched for what would have avoided them
LEAST_COST = 0.005  # of the score: the start page does not lead to incidents that cost less
STYLES, SCRIPTS = ("base.css", "index.css"), ("theme.js", "index.js")


@dataclass(frozen=True)
class Site:
    """What was written: the start page, and the page of each token."""

    index: Path
    pages: dict[str, Path]
    rows: list[dict[str, Any]]  # as the start page lists them


def write_site(
    runs: Sequence[Run],
    out: Path | str,
    limit: int | None = None,
    tokens: Sequence[str] = (),
    verify: float | None = None,
    at_incident: bool = False,
    rules: str = "",
    weighted: bool = False,
) -> Site:
    """Pages of one run, or of two in lock step, into `out`; pages that an earlier call wrote there are replaced.

    Scenarios are those of the first run, at most `limit`, and only `tokens` where some are given. What would have
    avoided an incident is looked for where it cost at least `verify` (None: nowhere). `at_incident`: the start page
    leads to the first moment of a page that cost points. `rules`: the rule set that judges, that of the run or v2 if
    not given. `weighted`: the runs are one planner at several weights of rules; a page then shows one drive at a time
    and a slider for each weight that varies, the start page the first run.
    """
    out = Path(out)
    weights = varied_weights(runs) if weighted else None
    chosen = choose(runs, limit, tokens)
    _clear(out)
    calibrations = [_calibration(run, rules) for run in runs]
    listed = runs[:1] if weighted else runs
    names = [page_name(i, one.token) for i, one in enumerate(chosen)]
    write_json_atomically(out / LIST, {"format": FORMAT, "files": [*names, INDEX]})
    rows: list[dict[str, Any]] = []
    shown: list[list[str]] = []
    with Progress("pages", len(chosen)) as progress:
        for i, one in enumerate(chosen):
            links = {
                "index": INDEX,
                "before": names[i - 1] if i else None,
                "after": names[i + 1] if i + 1 < len(names) else None,
            }
            scenario = runs[0].split[one.position]
            reports = [report_drive(runs[k], scenario, calibrations[k], verify, rules) for k in one.driven]
            calibrated = all(calibrations[k] is not None for k in one.driven)
            page, road = scenario_page(reports, links, calibrated, weights and [weights[k] for k in one.driven])
            write_atomically(out / names[i], page.encode())
            shown.append(rules_reported(drive.explanation for drive in reports))
            moment = _first_incident(reports) if at_incident else ""
            shown_here = reports[: len(listed)]
            row = _row(shown_here, one.driven[: len(listed)], len(listed))
            rows.append({"page": names[i] + moment, **row, "thumb": _thumb(shown_here, road.road)})
            progress.advance()
    names_shown = list(dict.fromkeys(rule for one in shown for rule in one))
    _align_pressures(rows, names_shown)
    write_atomically(out / INDEX, index_page(listed, rows, names_shown, None not in calibrations).encode())
    return Site(out / INDEX, {one.token: out / name for one, name in zip(chosen, names)}, rows)


def _first_incident(reports: Sequence[DriveReport]) -> str:
    """#t=SECONDS a second before the first moment of any drive that cost points; empty where none did."""
    moments = [one.time for report in reports for one in report.incidents if one.cost > LEAST_COST]
    return f"#t={max(0.0, min(moments) - 1.0):.1f}" if moments else ""


def varied_weights(runs: Sequence[Run]) -> list[dict[str, float]]:
    """Of runs of one planner: the weights of each that are not the same in all; BadInput if two have the same."""
    planners = list(dict.fromkeys(run.job.planner for run in runs))
    if len(planners) > 1:
        raise BadInput(f"{planners[0]!r} and {planners[1]!r} are two planners; sliders are for weights of one")
    given = [parse_weights(run.job.weights) for run in runs]
    names = list(dict.fromkeys(name for one in given for name in one))
    every = [{name: one.get(name, 1.0) for name in names} for one in given]
    for i, one in enumerate(every):
        if one in every[:i]:
            same = [str(runs[k].folder.path) for k in (every.index(one), i)]
            raise BadInput(f"{same[0]} and {same[1]} were driven with the same weights")
    varied = [name for name in names if len({one[name] for one in every}) > 1]
    return [{name: one[name] for name in varied} for one in every]


@dataclass(frozen=True)
class Chosen:
    """A scenario to show: its place in the split, and the runs that drove it."""

    position: int
    token: str
    driven: list[int]


def write_films(runs: Sequence[Run], site: Site, suffixes: Sequence[str], rules: str = "") -> list[Path]:
    """A film (.gif or .mp4) of each scenario of the site, beside its page."""
    from radp.report.viewer.film import write_film  # matplotlib is slow to import

    films = []
    for one in choose(runs, None, tuple(site.pages)) if suffixes else ():
        scenario = runs[0].split[one.position]
        reports = [report_drive(runs[k], scenario, _calibration(runs[k], rules), rules=rules) for k in one.driven]
        for suffix in suffixes:
            films.append(site.pages[one.token].with_suffix(suffix))
            write_film(reports, films[-1])
    return films


def choose(runs: Sequence[Run], limit: int | None, tokens: Sequence[str]) -> list[Chosen]:
    """Scenarios to show, in the order of the split; a limit is spread over their kinds."""
    every = runs[0].split.tokens()
    driven = [{token for token in every if token in run.store} for run in runs]
    unknown = [token for token in tokens if token not in driven[0]]
    if unknown:
        near = did_you_mean(unknown[0], driven[0])
        raise BadInput(f"{runs[0].folder.path} holds no drive of scenario {unknown[0]!r}{near}")
    wanted = set(tokens) or driven[0]
    for run, known in zip(runs[1:], driven[1:]):
        if not wanted & known:
            raise BadInput(f"{runs[0].folder.path} and {run.folder.path} have no scenario in common")
    found = [
        Chosen(position, token, [k for k, known in enumerate(driven) if token in known])
        for position, token in enumerate(every)
        if token in wanted and token in driven[0]
    ]
    if not found:
        raise BadInput(f"{runs[0].folder.path} holds no drives yet")
    if limit is None:
        return found
    kinds = runs[0].split.kind_of_each()
    return [found[i] for i in spread_over_kinds([kinds[one.position] for one in found], limit)]


def report_drive(
    run: Run, scenario: Scenario, calibration: Calibration | None, verify: float | None = None, rules: str = ""
) -> DriveReport:
    """The drive of a scenario with its score, its risks, its incidents and, where plans were kept, its pressures."""
    return report_rollout(run.store.read(scenario), calibration, rules or run.job.rule_set, verify)


def page_name(position: int, token: str) -> str:
    """A file name that is safe everywhere and unique by its number; the token in it is for people."""
    return f"{position + 1:04d}-{re.sub(r'[^A-Za-z0-9_-]+', '-', token)[:60].strip('-')}.html"


def index_page(runs: Sequence[Run], rows: Sequence[dict[str, Any]], rules: Sequence[str], calibrated: bool) -> str:
    """The start page."""
    data = {
        "version": __version__,
        "runs": [_run_words(run) for run in runs],
        "metrics": [{"name": name, "short": SHORT[name], "title": TITLES[name]} for name in TITLES],
        "rules": rule_words(rules),
        "calibrated": calibrated,
        "most": MOST_LEVEL,
        "thumb": [WIDTH, HEIGHT],
        "rows": list(rows),
    }
    title = " and ".join(run.job.planner for run in runs)
    return render("index.html", f"radp · {title}", data, STYLES, SCRIPTS)


def _calibration(run: Run, rules: str = "") -> Calibration | None:
    return levels_of(run.job.calibration or run.job.planner, rules or run.job.rule_set or V2)


def _run_words(run: Run) -> dict[str, Any]:
    settings = run.job
    return {
        "folder": str(run.folder.path),
        "planner": settings.planner,
        "scenarios": Path(settings.scenarios).name,
        "agents": settings.agents,
        "seed": settings.seed,
    }


def _row(reports: Sequence[DriveReport], driven: Sequence[int], runs: int) -> dict[str, Any]:
    """What the start page says about a scenario; drives: one entry per run, None where it was not driven."""
    scenario = reports[0].rollout.scenario
    drives: list[dict[str, Any] | None] = [None] * runs
    for k, one in zip(driven, reports):
        card, why = one.card, one.explanation
        drives[k] = {
            "score": card["score"],
            "failure": card["failure"],
            "metrics": [card["metrics"][name]["value"] for name in TITLES],
            "pressures": None if why is None else dict(zip(why.rules, _peaks(why.pressure))),
            "risky": int((one.events > 0).sum()),
        }
    return {"token": scenario.token, "kind": kind_words(scenario.kind), "drives": drives}


def _peaks(pressure: np.ndarray) -> list[float | None]:
    """(K, M) -> (M,) highest pressure of each rule; None where it is not known."""
    peaks = pressure.max(0) if len(pressure) else np.zeros(pressure.shape[1])
    return [None if np.isnan(peak) else round(float(peak), 4) for peak in peaks]


def _align_pressures(rows: Sequence[dict[str, Any]], rules: Sequence[str]) -> None:
    """Peaks by rule -> a list in the order of `rules`, in place."""
    for drive in (drive for row in rows for drive in row["drives"] if drive is not None):
        if drive["pressures"] is not None:
            drive["pressures"] = [drive["pressures"].get(rule) for rule in rules]


def _thumb(reports: Sequence[DriveReport], road: Sequence[np.ndarray]) -> dict[str, object]:
    return thumbnail(road, [one.rollout.ego[:, :2] for one in reports])


def _clear(out: Path) -> None:
    """Make the folder, or remove the pages that an earlier call left in it; a folder of something else is refused."""
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out} is a file; expected a folder for the pages")
    out.mkdir(parents=True, exist_ok=True)
    if not (out / LIST).exists():
        if (out / INDEX).exists():
            raise BadInput(f"{out} holds an {INDEX} that radp view did not write; choose another folder")
        return
    try:
        written = json.loads((out / LIST).read_bytes())
        if written["format"] != FORMAT:
            raise ValueError(f"its format is {written['format']!r}, expected {FORMAT!r}")
        files = [str(name) for name in written["files"]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadInput(f"{out / LIST} is not a readable list of pages ({error}); choose another folder") from None
    for name in files:
        if re.fullmatch(r"[A-Za-z0-9_-]+\.html", name):
            (out / name).unlink(missing_ok=True)
