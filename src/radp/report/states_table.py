"""The watch over states as a table: contact on focus states against metres moved on ordinary ones."""

from __future__ import annotations

from collections.abc import Sequence

from radp.evaluation.states import StateRow
from radp.report.table import Table
from radp.rules.contact import MARGIN, WITHIN
from radp.statistics.estimate import Estimate

SHARES = {"overlap": "overlap", "near": f"within {MARGIN} m", "near_miss": "short TTC", "off_road": "off the road"}
HEADER = ("planner", "states", *(f"{words} %" for words in SHARES.values()), "moved m", "shorter m")


def states_table(rows: Sequence[StateRow]) -> Table:
    """Rows in the order that they were measured."""
    lines = []
    for row in rows:
        shares = [_share(row.means[name], row.differences.get(name)) for name in SHARES]
        metres = [_plain(row.means[name], 2) if row.differences else "" for name in ("moved", "shorter")]
        lines.append((row.planner, f"{row.kind}: {row.states} of {row.drives} drives", *shares, *metres))
    notes = (
        f"Share of the plans that within {WITHIN:.0f} s meet somebody as that one really moved, would if all "
        "went straight on for 0.95 s (short TTC), or leave the road; in round brackets "
        "the paired difference to the first planner with the same noise.",
        "Moved: mean distance to the first planner's plan. Intervals: 95%, 10,000 resamples of drives. Avoidance is "
        "fewer overlaps on focus states and little moved on ordinary ones.",
    )
    return Table("Plans on held-out states", HEADER, tuple(lines), notes)


def _share(mean: Estimate, difference: Estimate | None) -> str:
    text = _plain(mean, 1, 100.0)
    return text if difference is None else f"{text} ({_plain(difference, 1, 100.0, '+')})"


def _plain(estimate: Estimate, digits: int, times: float = 1.0, sign: str = "") -> str:
    value, low, high = (f"{times * v:{sign}.{digits}f}" for v in (estimate.value, estimate.low, estimate.high))
    return f"{value} [{low}, {high}]"
