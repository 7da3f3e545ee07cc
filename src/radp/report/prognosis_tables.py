"""Prognosis as tables: every predictor of every risk, what pressure has more or less, and what it adds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from radp.evaluation.closed_loop import Run
from radp.evaluation.drives import PRESSURES, pooled, read_drives
from radp.evaluation.endpoints import READINGS
from radp.evaluation.prognosis import CEILING, PLAIN, PREDICTORS, STATISTICS, Forecast, Prognosis, prognosis
from radp.report.alignment_tables import READING_WORDS, TITLE_OF, refuse_strangers
from radp.report.table import Table, number
from radp.statistics.estimate import LEGEND, difference, interval
from radp.statistics.power import SIGNIFICANCE

HOLM = (
    f"p: two-sided, of the difference in rho, adjusted over the seven endpoints (Holm); below {SIGNIFICANCE:g} it "
    "holds for all of them together. Endpoints beside the seven have none. Intervals are clustered by log."
)

TREES = (CEILING, PLAIN)


def forecast_table(found: Prognosis, where: str) -> Table:
    """rho of every predictor for every endpoint, the pressure first; * the best of a column, trees left out."""
    single = [name for name in found.predictors if name not in TREES]
    best = {e: max((found.forecast(e.name, name).rho.value for name in single), key=_or_least) for e in found.endpoints}
    rows = []
    for name in found.predictors:
        values = {e: found.forecast(e.name, name).rho.value for e in found.endpoints}
        stars = {e: "*" if name in single and value == best[e] else "" for e, value in values.items()}
        rows.append((name, *(f"{number(value)}{stars[e]}" for e, value in values.items())))
    notes = (
        *(f"{name}: {words}." for name, words in PREDICTORS.items() if name in found.predictors),
        "Temporal rho, mean over scenarios; * highest of the column, trees left out.",
        verdict(found, "TTC"),
        verdict(found, "persistence"),
    )
    title = f"Prognosis, {found.source} and what a safety engineer would use, {READING_WORDS[found.reading]}, {where}"
    return Table(title, ("predictor", *(TITLE_OF[e.name] for e in found.endpoints)), tuple(rows), notes)


def _or_least(value: float) -> float:
    return -np.inf if np.isnan(value) else value


def verdict(found: Prognosis, predictor: str) -> str:
    """In which endpoints a predictor beats the pressure, and the other way round, beyond noise."""
    leads = {e: found.forecast(e.name, predictor).lead["rho"] for e in found.endpoints}
    shown = {e: lead for e, lead in leads.items() if lead.excludes_zero}
    better = ", ".join(TITLE_OF[e.name] for e, lead in shown.items() if lead.value < 0) or "none"
    worse = ", ".join(TITLE_OF[e.name] for e, lead in shown.items() if lead.value > 0) or "none"
    return f"{predictor} foretells better than {found.source} pressure: {better}. Pressure better: {worse}. By rho."


def lead_table(found: Prognosis, where: str) -> Table:
    """Endpoint by endpoint: rho, AUPRC and lift of each predictor, and what the pressure has more."""
    rows = [
        (
            TITLE_OF[f.endpoint.name], f.predictor, interval(f.rho, count=True), interval(f.auprc, count=True),
            interval(f.lift, 2), *_leads(f),
        )
        for f in found.forecasts
    ]  # fmt: skip
    header = (
        "risk endpoint", "predictor", "rho", "AUPRC", "Lift@10%", f"{found.source} minus it, rho", "p (Holm)",
        f"{found.source} minus it, AUPRC",
    )  # fmt: skip
    title = f"Pressure against each predictor, {found.source}, {READING_WORDS[found.reading]}, {where}"
    return Table(title, header, tuple(rows), (HOLM, LEGEND))


def _leads(one: Forecast) -> tuple[str, str, str]:
    if not one.lead:
        return "-", "-", "-"
    return difference(one.lead["rho"]), number(one.p), difference(one.lead["auprc"])


def increment_table(found: Prognosis, where: str) -> Table:
    """What pressure adds to TTC and persistence."""
    rows = []
    for one in found.increments:
        ceiling = found.forecast(one.endpoint.name, CEILING)
        rows.append(
            (TITLE_OF[one.endpoint.name], interval(one.plain["rho"], count=True), difference(one.added["rho"]),
             number(one.p), interval(one.plain["auprc"], count=True), difference(one.added["auprc"]),
             difference(one.added["lift"], 2), number(ceiling.rho.value), number(ceiling.auprc.value))
        )  # fmt: skip
    header = (
        "risk endpoint", f"{PLAIN}, rho", "pressure adds", "p (Holm)", f"{PLAIN}, AUPRC", "pressure adds",
        "pressure adds, Lift@10%", "ceiling rho", "ceiling AUPRC",
    )  # fmt: skip
    notes = (
        "Gradient-boosted trees with the matched pressure of this drive, or of another one at the same clock; five "
        "folds of whole logs: each drive is judged by trees that did not see its log. The ceiling has all measures of "
        "the table above, and no pressure.",
        HOLM,
        LEGEND,
    )
    title = f"What {found.source} pressure adds, {READING_WORDS[found.reading]}, {where}"
    return Table(title, header, tuple(rows), notes)


def prognosis_json(found: Prognosis) -> dict[str, Any]:
    """Everything with intervals; NaN is null."""

    def plain(p: float) -> float | None:
        return None if np.isnan(p) else p

    return {
        "source": found.source,
        "reading": found.reading,
        "drives": found.drives,
        "events": {name: one.__dict__ for name, one in found.events.items()},
        "forecasts": [
            {
                "endpoint": f.endpoint.name,
                "predictor": f.predictor,
                **{s: getattr(f, s).to_json() for s in STATISTICS},
                "lead": {s: e.to_json() for s, e in f.lead.items()},
                "p": plain(f.p),
            }
            for f in found.forecasts
        ],
        "increments": [
            {
                "endpoint": one.endpoint.name,
                "plain": {s: e.to_json() for s, e in one.plain.items()},
                "added": {s: e.to_json() for s, e in one.added.items()},
                "p": plain(one.p),
            }
            for one in found.increments
        ],
    }


def prognosis_tables(found: Prognosis, where: str) -> list[Table]:
    return [forecast_table(found, where), increment_table(found, where), lead_table(found, where)]


def runs_prognosis(runs: Sequence[Run], committed: bool = False, seed: int = 0) -> Iterator[tuple[Prognosis, str]]:
    """Of all runs together, for each source of pressure and reading, with the words that say where."""
    refuse_strangers(runs)
    drives = pooled([read_drives(run, committed=committed, measures=True) for run in runs])
    splits = " + ".join(dict.fromkeys(Path(run.job.scenarios).name for run in runs))
    where = f"{runs[0].job.planner} on {splits}, {runs[0].job.agents} agents, {len(drives.tokens)} drives"
    for reading in READINGS:
        if reading == "main" or (committed and reading == "committed"):
            for source in PRESSURES:
                if source in drives.scores:
                    yield prognosis(drives, source, reading, seed), where
