"""Temporal alignment as tables: the protocol itself, the result of each endpoint, and the controls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from radp.evaluation.alignment import CONTROLS, STATISTICS, Aligned, CrossTable, align, beats_controls, cross_table
from radp.evaluation.closed_loop import Run
from radp.evaluation.controls import OTHERS
from radp.evaluation.drives import PRESSURES, RIVALS, Drives, pooled, read_drives
from radp.evaluation.endpoints import BESIDE, ENDPOINTS, MIN_FRAMES, MIN_WINDOW_LEFT, READINGS, TOP_SHARE, Reading
from radp.report.seam_table import seam_tables
from radp.report.table import Table, number, percent
from radp.runs.errors import BadInput
from radp.statistics.bootstrap import RESAMPLES
from radp.statistics.estimate import LEGEND, NONE, Estimate, difference, interval

TITLES = {
    "collision": "Physical collision",
    "ttc": "TTC risk (aux.)",
    "lane": "Lane-boundary risk",
    "speed": "Overspeed risk",
    "kinematics": "Kinematic risk",
    "comfort": "Comfort risk",
    "goal": "Route-progress deficit",
}
BESIDE_TITLES = {
    "ttc_late": "TTC risk, 1 to 2 s ahead",
    "lane_mean": "Lane-boundary risk, mean",
    "goal_total": "Deficit to the expert's total",
}
TITLE_OF = {**TITLES, **BESIDE_TITLES}
READING_WORDS = {
    "main": "main reading",
    "paper": "the paper's reading",
    "committed": "plans driven for 2 s without replanning",
}
COMMITTED_NOTE = (
    "Every plan is driven for 2 s by tracker and bicycle without replanning, from the executed state that it was made "
    "in; the others move as they did in the drive. A planner that reacts averts what pressure foretells; here nobody "
    "averts anything."
)
CLOCKED = (
    "The deficit to the expert's total, the reading nearest to the paper's words on progress, is mostly a clock: it "
    "falls in every drive that gets on. On 200 scenarios of sumo14-val -t alone scored a rho of 0.93 there."
)
ELIGIBLE = (
    f"A frame counts when at least {MIN_WINDOW_LEFT:.0%} of its window remains. Spearman: scenarios with at least "
    f"{MIN_FRAMES} such frames and series that are not constant. AUPRC and lift: scenarios with frames of both "
    f"classes. n = eligible scenarios. 95% intervals: {RESAMPLES:,} resamples of scenarios, percentile method."
)
CHANCE = (
    "AUPRC of chance is the positive rate of the scenarios that are eligible for AUPRC. It is the baseline to compare "
    "with: the positive rate of all frames also counts scenarios without any event, where AUPRC is not defined."
)

NO_EVIDENCE = "no evidence"
CONTROLLED = (
    f"Controls: {'; '.join(f'{name}: {words}' for name, words in CONTROLS.items())}; other drive: pressures of "
    f"{OTHERS} other drives at the same clock against the risk of this one, which is what the common course of drives "
    "alone gives. A rho that does not lie above those of the clock and of other drives, each by a paired 95% "
    f"interval, is called '{NO_EVIDENCE}', whatever its own interval."
)


def endpoint_table(reading: Reading = "main") -> Table:
    """The protocol, as it stands in the code."""
    rows = []
    for e in (*READINGS[reading], *BESIDE[reading]):
        window = f"({e.begin:g}, {e.window:g}] s" if e.begin else f"{e.window:g} s"
        name = e.name if e in READINGS[reading] else f"{e.name} (beside)"
        rows.append((name, e.channel, window, e.aggregate, f"> {e.threshold:.3g}", e.severity))
    note = COMMITTED_NOTE if reading == "committed" else CLOCKED
    header = ("risk", "pressure", "window", "operator", "event", "severity at one moment, from executed states")
    return Table(f"Risk endpoints, {READING_WORDS[reading]}", header, tuple(rows), (ELIGIBLE, note))


def protocol() -> str:
    """Both readings, in Markdown."""
    return "\n\n".join(endpoint_table(reading).markdown() for reading in READINGS)


def alignment_table(aligned: Aligned, where: str) -> Table:
    """One row for each endpoint and source of pressure, and the mean over endpoints."""
    rows = []
    for endpoint in aligned.endpoints:
        for source in _pressures(aligned):
            one = aligned.row(endpoint.name, source)
            rows.append(
                (endpoint.channel, TITLE_OF[endpoint.name], source, percent(one.positive_rate), str(one.frames),
                 interval(one.auprc, count=True), interval(one.chance), interval(one.lift),
                 judged(one.rho, one.less_clock, one.less_other, count=True), interval(one.shuffled),
                 *control_cells(aligned, endpoint.name, source))
            )  # fmt: skip
    for source in _pressures(aligned):
        macro = aligned.macro[source]
        known = sum(aligned.row(e.name, source).rho.count > 0 for e in aligned.seven)
        beside = (aligned.macro["clock"]["rho"], macro["other"], aligned.macro["persistence"]["rho"])
        rows.append(
            ("all", f"mean over {known} of 7 endpoints", source, "", "", interval(macro["auprc"]),
             interval(macro["chance"]), interval(macro["lift"]),
             judged(macro["rho"], macro["less_clock"], macro["less_other"]), interval(macro["shuffled"]),
             *(number(one.value) for one in beside))
        )  # fmt: skip
    header = (
        "channel", "risk endpoint", "source", "positive rate", "frames", "AUPRC", "AUPRC of chance",
        f"Lift@{TOP_SHARE:.0%}", "temporal rho", "shuffled rho", *CONTROL_COLUMNS,
    )  # fmt: skip
    notes = (events_note(aligned), ELIGIBLE, CONTROLLED, CHANCE, LEGEND)
    title = f"Temporal risk alignment, {READING_WORDS[aligned.reading]}, {where}, {aligned.scenarios} drives"
    return Table(title, header, tuple(rows), notes)


CONTROL_COLUMNS = ("clock rho", "other drive rho", "persistence rho")


def control_cells(aligned: Aligned, endpoint: str, source: str) -> tuple[str, ...]:
    """rho of the three controls that keep the clock."""
    own = aligned.row(endpoint, source)
    found = (aligned.row(endpoint, "clock").rho, own.other, aligned.row(endpoint, "persistence").rho)
    return tuple(number(one.value) for one in found)


def judged(rho: Estimate, less_clock: Estimate, less_other: Estimate, count: bool = False) -> str:
    """A rho with its interval, called no evidence unless it beats both controls."""
    text = interval(rho, count=count)
    return text if text == NONE or beats_controls(less_clock, less_other) else f"{text}: {NO_EVIDENCE}"


def events_note(aligned: Aligned) -> str:
    """How often each risk came true."""
    counts = (
        f"{TITLE_OF[name]} {one.count} in {one.drives} drives ({one.logs} logs)" for name, one in aligned.events.items()
    )
    return f"Events (unbroken stretches above the threshold): {'; '.join(counts)}."


def control_table(aligned: Aligned, where: str) -> Table:
    """What is left of each rho beside its controls: paired differences, and the smallest that could have been seen."""
    rows = []
    for endpoint in aligned.endpoints:
        for source in _pressures(aligned):
            one = aligned.row(endpoint.name, source)
            verdict = NONE if np.isnan(one.rho.value) else "evidence" if one.is_evidence else NO_EVIDENCE
            rows.append(
                (TITLE_OF[endpoint.name], source, number(one.rho.value), *control_cells(aligned, endpoint.name, source),
                 difference(one.less_clock), difference(one.less_other),
                 *(number(ap.value) for ap in (one.auprc, aligned.row(endpoint.name, "clock").auprc, one.other_auprc)),
                 verdict)
            )  # fmt: skip
    for source in _pressures(aligned):
        macro, ticks = aligned.macro[source], aligned.macro["clock"]
        beside = (ticks["rho"], macro["other"], aligned.macro["persistence"]["rho"])
        verdict = "evidence" if beats_controls(macro["less_clock"], macro["less_other"]) else NO_EVIDENCE
        rows.append(
            ("mean", source, number(macro["rho"].value), *(number(one.value) for one in beside),
             difference(macro["less_clock"]), difference(macro["less_other"]),
             *(number(ap.value) for ap in (macro["auprc"], ticks["auprc"], macro["other_auprc"])), verdict)
        )  # fmt: skip
    header = (
        "risk endpoint", "source", "rho", *CONTROL_COLUMNS, "minus clock", "minus other drive", "AUPRC", "clock AUPRC",
        "other drive AUPRC", "verdict",
    )  # fmt: skip
    notes = (events_note(aligned), CONTROLLED, LEGEND)
    return Table(f"Controls that keep the clock, {READING_WORDS[aligned.reading]}, {where}", header, tuple(rows), notes)


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
        cells = [_plain_judged(aligned, e.name, source) for e in aligned.endpoints]
        macro = aligned.macro[source]
        less = aligned.less_teacher.get(source)
        rows.append(
            (source, *cells, interval(macro["rho"]), difference(less["rho"]) if less else "-",
             interval(macro["auprc"]), interval(macro["lift"], 2))
        )  # fmt: skip
    titles = [TITLE_OF[e.name] for e in aligned.endpoints]
    header = ("predictor", *titles, "mean rho", "minus teacher", "mean AUPRC", f"mean Lift@{TOP_SHARE:.0%}")
    notes = (
        *(f"{name}: {words}." for name, words in {**RIVALS, **CONTROLS}.items() if name in sources),
        CONTROLLED,
        LEGEND,
    )
    return Table(f"Rival predictors of the same risks (temporal rho), {where}", header, tuple(rows), notes)


def _plain_judged(aligned: Aligned, endpoint: str, source: str) -> str:
    one = aligned.row(endpoint, source)
    text = number(one.rho.value)
    return text if text == NONE or source in CONTROLS or one.is_evidence else f"{text} ({NO_EVIDENCE})"


def _pressures(aligned: Aligned) -> list[str]:
    return [source for source in PRESSURES if source in aligned.sources]


def alignment_json(aligned: Aligned, crosses: list[CrossTable]) -> dict[str, object]:
    """Everything with intervals, JSON-ready; NaN is null."""
    return {
        "drives": aligned.scenarios,
        "events": {name: one.__dict__ for name, one in aligned.events.items()},
        "reading": aligned.reading,
        "endpoints": [e.__dict__ for e in aligned.endpoints],
        "rows": [
            {
                "endpoint": row.endpoint.name,
                "source": row.source,
                "positive_rate": None if np.isnan(row.positive_rate) else row.positive_rate,
                "frames": row.frames,
                "evidence": row.is_evidence,
                **{name: getattr(row, name).to_json() for name in STATISTICS},
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


def run_tables(runs: Sequence[Run], seed: int = 0) -> Iterator[tuple[str, list[Table], dict[str, object]]]:
    """All tables about each run, and about all runs pooled if there are several: name, tables, the same as JSON."""
    refuse_strangers(runs)
    parts = []
    for run in runs:
        parts.append(read_drives(run, committed=True))
        where = f"{run.job.planner} on {Path(run.job.scenarios).name}, {run.job.agents} agents"
        where += f", seed {run.job.seed}" if run.job.seed else ""
        tables, data = drives_tables(parts[-1], where, seed)
        yield run.folder.path.name, [*tables, *seam_tables(run.rollouts(), where)], data
    if len(runs) > 1:
        splits = " + ".join(dict.fromkeys(Path(run.job.scenarios).name for run in runs))
        seeds = len({run.job.seed for run in runs})
        where = f"{runs[0].job.planner} on {splits} pooled, {runs[0].job.agents} agents, {seeds} noise seed(s)"
        yield "pooled", *drives_tables(pooled(parts), where, seed)


def refuse_strangers(runs: Sequence[Run]) -> None:
    """BadInput unless the runs are of one planner, one kind of agents and one rule set, each scenario and seed once."""
    for name in ("planner", "agents", "rule_set"):
        found = sorted({str(getattr(run.job, name)) for run in runs})
        if len(found) > 1:
            raise BadInput(f"runs of different {name} cannot be pooled: {', '.join(found)}; evaluate them one by one")
    driven = Counter((token, run.job.seed) for run in runs for token in run.split.tokens())
    twice = next((token for (token, _), times in driven.items() if times > 1), None)
    if twice is not None:
        raise BadInput(f"scenario {twice!r} stands in two of the runs with the same seed, so it would count twice")


def drives_tables(drives: Drives, where: str, seed: int = 0) -> tuple[list[Table], dict[str, object]]:
    """All tables about some drives, and the same as JSON."""
    aligned = align(drives, seed)
    beside = [align(drives, seed, reading=reading) for reading in READINGS if reading != "main" and reading in drives]
    crosses = [cross_table(drives, source, seed) for source in PRESSURES if source in drives.scores]
    tables = [
        alignment_table(aligned, where),
        control_table(aligned, where),
        rival_table(aligned, where),
        *(cross_as_table(c, where) for c in crosses),
        *(make(one, where) for one in beside for make in (alignment_table, control_table)),
    ]
    return tables, {**alignment_json(aligned, crosses), **{one.reading: alignment_json(one, []) for one in beside}}
