"""Dose and response as tables and as a figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from radp.evaluation.dose import DEFAULT, Response
from radp.evaluation.dose_states import StateResponse
from radp.evaluation.planners import COLUMNS
from radp.report.table import Table, number
from radp.statistics.bootstrap import known_mean
from radp.statistics.estimate import LEGEND, difference

COST, RISK, PROGRESS = "#d55e00", "#0072b2", "#009e73"  # of the figure's three lines
TOO_WIDE = 300.0  # percent: a risk so rare that its line would hide the others
PROGRESS_METRIC = "ego_progress_along_expert_route"


def dose_tables(found: Sequence[Response], planner: str, scenarios: str) -> list[Table]:
    """The verdicts, then one table for each rule."""
    where = f"{Path(planner).name} on {Path(scenarios).name}"
    return [_verdicts(found, where), *(_doses(one, where) for one in found)]


def _verdicts(found: Sequence[Response], where: str) -> Table:
    rows = tuple(
        (
            one.rule,
            str(one.verdict),
            difference(one.verdict.ends),
            *(number(float(known_mean(d.cost))) for d in one.doses),
        )
        for one in found
    )
    weights = tuple(f"cost at {dose.weight:g}" for dose in found[0].doses) if found else ()
    notes = (
        "Matched cost: mean cost of the rule over the plans of a drive, on the states that the planner came to. "
        "monotone: it falls at every step of the weight, and from the lowest to the highest that is shown; flat: "
        "nothing is shown.",
        LEGEND,
    )
    return Table(f"Dose and response, {where}", ("rule", "matched cost", "highest minus lowest weight", *weights),
                 rows, notes)  # fmt: skip


def _doses(one: Response, where: str) -> Table:
    """Changes against the default; sub-scores x100."""
    rows = []
    for dose in one.doses:
        if dose.weight == DEFAULT:
            continue
        change = one.change(dose)
        cells = [difference(estimate, 1, 100) if name in COLUMNS else difference(estimate, 3)
                 for name, estimate in change.items()]  # fmt: skip
        rows.append((f"{dose.weight:g}", *cells))
    names = [COLUMNS.get(name, name) for name in one.change(one.doses[0])]
    note = "Differences to the default weight, paired by scenario, with 95% intervals over logs; sub-scores x100."
    return Table(f"Weight of {one.rule}, {where}", ("weight", *names), tuple(rows), (note,))


def state_table(found: Sequence[StateResponse], planner: str, data: str) -> Table:
    """One row for each weight of each rule."""
    rows = []
    for one in found:
        for i, dose in enumerate(one.doses):
            if dose != DEFAULT:
                change, moved, longer = one.means(i)
                rows.append((one.rule, str(one.verdict), f"{dose:g}", number(float(one.values[i, 0].mean())),
                             difference(change), f"{moved.value:.2f}", difference(longer, 2)))  # fmt: skip
    usual = ", ".join(f"{one.rule} {number(float(one.values[one.doses.index(DEFAULT), 0].mean()))}" for one in found)
    states = f"{found[0].values.shape[-1]:,} states of {len(np.unique(found[0].drives)):,} drives" if found else ""
    notes = (f"Mean cost of the plans of {states}, intervals over drives. At the default: {usual}.", LEGEND)
    header = ("rule", "verdict", "weight", "cost", "against the default", "moved [m]", "longer [m]")
    return Table(f"Dose and response on states, {Path(planner).name} on {Path(data).name}", header, tuple(rows), notes)


def draw_doses(found: Sequence[Response], path: Path) -> bool:
    """One panel a rule: matched cost and risk in percent of the default, progress in points. False: no matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    columns = 2 if len(found) == 4 else min(3, len(found))
    lines = -(-len(found) // columns)
    figure = Figure(figsize=(3.4 * columns, 2.7 * lines), layout="constrained")
    panels = [_lines(one) for one in found]
    fullest = max(range(len(panels)), key=lambda i: len(panels[i]), default=0)
    for i, one in enumerate(found):
        axes = figure.add_subplot(lines, columns, i + 1)
        weights = [dose.weight for dose in one.doses]
        for color, label, values in panels[i]:
            middle, low, high = np.array(values).T
            axes.errorbar(weights, middle, (middle - low, high - middle), color=color, marker="o", ms=3, lw=1.2,
                          capsize=2, label=label)  # fmt: skip
        axes.axhline(0.0, color="#999999", lw=0.8, ls=":")
        axes.set_xscale("log", base=2)
        axes.set_xticks(weights, [f"{w:g}" for w in weights])
        axes.set(title=f"{one.rule}: {one.verdict.word}", xlabel="weight", ylabel="change [%, points]")
        axes.grid(True, lw=0.3, alpha=0.6)
        if i == fullest:
            axes.legend(frameon=False, fontsize=7)
    figure.savefig(path, dpi=110)
    return True


def _lines(one: Response) -> list[tuple[str, str, list[tuple[float, float, float]]]]:
    """Colour, name and (D, 3) value, low, high of each line of a panel that can be read."""
    changes = [one.change(dose) for dose in one.doses]
    base = one.default
    wanted = [(COST, "matched cost", "cost", _share(base.cost))]
    wanted += [(RISK, "risk", f"risk {name}", _share(values)) for name, values in list(base.risk.items())[:1]]
    wanted += [(PROGRESS, "progress", PROGRESS_METRIC, 100.0)]
    lines = [
        (color, label, [(times * c[key].value, times * c[key].low, times * c[key].high) for c in changes])
        for color, label, key, times in wanted
        if times
    ]
    return [line for line in lines if max(high - low for _, low, high in line[2]) <= TOO_WIDE]


def _share(values: np.ndarray) -> float:
    """What turns a change into percent of the mean; 0 where that is 0 or not known."""
    mean = float(known_mean(values))
    return 100.0 / mean if mean > 0 else 0.0
