"""Temporal alignment as tables: the protocol itself, the result of each endpoint, and the controls."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from radp.evaluation.alignment import Aligned, CrossTable, align, cross_table
from radp.evaluation.closed_loop import Run
from radp.evaluation.drives import PRESSURES, RIVALS, read_drives
from radp.evaluation.endpoints import ENDPOINTS, MIN_FRAMES, MIN_WINDOW_LEFT, TOP_SHARE
from radp.report.table import Table, number, percent
from radp.statistics.bootstrap import RESAMPLES
from radp.statistics.estimate import LEGEND, NONE, difference, interval

TITLES = {
    "collision": "Physical collision",
    "ttc": "TTC risk (aux.)",
    "lane": "Lane-boundary risk",
    "speed": "Overspeed risk",
    "kinematics": "Kinematic risk",
    "comfort": "Comfort risk",
    "goal": "Route-progress deficit",
}
ELIGIBLE = (
    f"A frame counts when at least {MIN_WINDOW_LEFT:.0%} of its window remains. Spearman: scenarios with at least "
    f"{MIN_FRAMES} such frames and series that are not constant. AUPRC and lift: scenarios with frames of both "
    f"classes. n = eligible scenarios. 95% intervals: {RESAMPLES:,} resamples of scenarios, percentile method."
)
CHANCE = (
    "AUPRC of chance is the positive rate of the scenarios that are eligible for AUPRC. It is the baseline to compare "
    "with: the positive rate of all frames also counts scenarios without any event, where AUPRC is not defined."
)


def endpoint_table() -> Table:
    """The protocol, as it stands in the code."""
    rows = tuple(
        (e.name, e.channel, f"{e.window:g} s", e.aggregate, f"> {e.threshold:.3g}", e.severity) for e in ENDPOINTS
    )
    header = ("risk", "pressure", "window", "operator", "event", "severity at one moment, from executed states")
    return Table("Risk endpoints", header, rows, (ELIGIBLE,))


def alignment_table(aligned: Aligned, where: str) -> Table:
    """One row for each endpoint and source of pressure, and the mean over endpoints."""
    rows = []
    for endpoint in ENDPOINTS:
        for source in _pressures(aligned):
            one = aligned.row(endpoint.name, source)
            rows.append(
                (endpoint.channel, TITLES[endpoint.name], source, percent(one.positive_rate), str(one.frames),
                 interval(one.auprc, count=True), interval(one.chance), interval(one.lift),
                 interval(one.rho, count=True), interval(one.shuffled))
            )  # fmt: skip
    for source in _pressures(aligned):
        macro = aligned.macro[source]
        known = sum(aligned.row(e.name, source).rho.count > 0 for e in ENDPOINTS)
        rows.append(
            ("all", f"mean over {known} of 7 endpoints", source, "", "", interval(macro["auprc"]),
             interval(macro["chance"]), interval(macro["lift"]), interval(macro["rho"]), interval(macro["shuffled"]))
        )  # fmt: skip
    header = (
        "channel", "risk endpoint", "source", "positive rate", "frames", "AUPRC", "AUPRC of chance",
        f"Lift@{TOP_SHARE:.0%}", "temporal rho", "shuffled rho",
    )  # fmt: skip
    return Table(
        f"Temporal risk alignment, {where}, {aligned.scenarios} scenarios",
        header,
        tuple(rows),
        (ELIGIBLE, CHANCE, LEGEND),
    )


def cross_as_table(cross: CrossTable, where: str) -> Table:
    """Pressure i against risk j; the matched pair in brackets, the best of a column with a star."""
    best = {e.name: rule for e, rule in zip(ENDPOINTS, cross.best)}
    rows = []
    for rule, cells in zip(cross.rules, cross.rho):
        shown = []
        for endpoint, cell in zip(ENDPOINTS, cells):
            text = number(cell.value, 2)
            text = f"[{text}]" if endpoint.channel == rule else text
            shown.append(f"{text}*" if best[endpoint.name] == rule and text != NONE else text)
        rows.append((rule, *shown))
    rows.append(("matched minus best other", *(difference(lead, 2) for lead in cross.lead)))
    hits = sum(e.channel == rule for e, rule in zip(ENDPOINTS, cross.best))
    notes = (
        "Mean temporal Spearman of the pressure in the row with the risk in the column; [matched], * highest of the "
        f"column. The matched pressure is the highest for {hits} of 7 risks; differences are paired by scenario.",
        LEGEND,
    )
    return Table(
        f"Pressure against every risk, {cross.source}, {where}", ("pressure", *TITLES.values()), tuple(rows), notes
    )


def rival_table(aligned: Aligned, where: str) -> Table:
    """Temporal Spearman of pressures and rivals for the same risks, and AUPRC and lift on average."""
    sources = aligned.sources
    rows = []
    for source in sources:
        cells = [number(aligned.row(e.name, source).rho.value, 3) for e in ENDPOINTS]
        macro = aligned.macro[source]
        less = aligned.less_teacher.get(source)
        rows.append(
            (source, *cells, interval(macro["rho"]), difference(less["rho"]) if less else "-",
             interval(macro["auprc"]), interval(macro["lift"], 2))
        )  # fmt: skip
    header = ("predictor", *TITLES.values(), "mean rho", "minus teacher", "mean AUPRC", f"mean Lift@{TOP_SHARE:.0%}")
    notes = (*(f"{name}: {words}." for name, words in RIVALS.items() if name in sources), LEGEND)
    return Table(f"Rival predictors of the same risks (temporal rho), {where}", header, tuple(rows), notes)


def _pressures(aligned: Aligned) -> list[str]:
    return [source for source in PRESSURES if source in aligned.sources]


def alignment_json(aligned: Aligned, crosses: list[CrossTable]) -> dict[str, object]:
    """Everything with intervals, JSON-ready; NaN is null."""
    return {
        "scenarios": aligned.scenarios,
        "endpoints": [e.__dict__ for e in ENDPOINTS],
        "rows": [
            {
                "endpoint": row.endpoint.name,
                "source": row.source,
                "positive_rate": None if np.isnan(row.positive_rate) else row.positive_rate,
                "frames": row.frames,
                **{name: getattr(row, name).to_json() for name in ("rho", "shuffled", "auprc", "chance", "lift")},
            }
            for row in aligned.rows
        ],
        "macro": {s: {n: e.to_json() for n, e in means.items()} for s, means in aligned.macro.items()},
        "less_teacher": {s: {n: e.to_json() for n, e in means.items()} for s, means in aligned.less_teacher.items()},
        "cross": {
            cross.source: {rule: [cell.to_json() for cell in row] for rule, row in zip(cross.rules, cross.rho)}
            for cross in crosses
        },
        "lead": {cross.source: [lead.to_json() for lead in cross.lead] for cross in crosses},
    }


def run_tables(run: Run, seed: int = 0) -> tuple[list[Table], dict[str, object]]:
    """All tables about one run, and the same as JSON."""
    drives = read_drives(run)
    aligned = align(drives, seed)
    crosses = [cross_table(drives, source, seed) for source in PRESSURES if source in drives.scores]
    where = f"{run.job.planner} on {Path(run.job.scenarios).name}, {run.job.agents} agents"
    tables = [
        alignment_table(aligned, where),
        rival_table(aligned, where),
        *(cross_as_table(c, where) for c in crosses),
    ]
    return tables, alignment_json(aligned, crosses)
