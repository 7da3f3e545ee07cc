"""Which rule presses most on whom, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from radp.evaluation.pressing import Pressing
from radp.report.table import Table
from radp.statistics.estimate import LEGEND, interval

LEVELS = "Pressure of the exact teacher, log(1 + gradient / usual level), by the same levels for all: 0.69 is usual."
COUNTED = "Strongest [%]: frames in which a rule presses most; nothing: in which none does. Every drive counts alike."


def pressing_table(found: Sequence[Pressing], scope: str = "") -> Table:
    """Two rows for each planner: mean pressures, and the share of frames in which each rule is the strongest."""
    rules = found[0].rules if found else ()
    rows = []
    for one in found:
        rows.append((one.planner, "mean", *(interval(e, 2) for e in one.mean), "-"))
        shares = (interval(e, 1, 100) for e in (*one.strongest, one.nothing))
        rows.append((one.planner, "strongest [%]", *shares))
    where = f"{found[0].split}, {found[0].agents} agents" if found else ""
    notes = tuple(note for note in (scope, LEVELS, COUNTED, LEGEND) if note)
    return Table(f"Which rule presses on whom, {where}", ("planner", "", *rules, "nothing"), tuple(rows), notes)
