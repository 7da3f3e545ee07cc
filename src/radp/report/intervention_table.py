"""The intervention test as a table."""

from __future__ import annotations

from collections.abc import Sequence

from radp.evaluation.endpoints import ENDPOINTS
from radp.evaluation.intervention import HIGH, Intervention
from radp.report.alignment_tables import TITLES
from radp.report.table import Table
from radp.statistics.estimate import LEGEND, difference


def intervention_table(found: Sequence[Intervention], step: float, where: str) -> Table:
    """Change of every risk; the matched risks in brackets."""
    rows = []
    for one in found:
        cells = []
        for endpoint, change in zip(ENDPOINTS, one.change):
            text = difference(change)
            cells.append(f"[{text}]" if endpoint.channel == one.rule else text)
        way = "down" if one.sign < 0 else "up (control)"
        rows.append((one.rule, way, str(one.scenarios), str(one.frames), *cells))
    notes = (
        f"Wherever the pressure of the rule in the row is above its {HIGH:.0%} quantile, the plan is moved at most "
        f"{step:g} m along minus (down) or plus (up) its gradient, and driven. Figures are changes of the risk over "
        "the frames where the plain drive had that pressure, paired, with 95% intervals over scenarios; [matched "
        "risk]. Negative = the risk falls.",
        "Units: " + "; ".join(f"{TITLES[e.name]}: {e.severity}" for e in ENDPOINTS) + ".",
        LEGEND,
    )
    header = ("rule", "gradient", "scenarios", "frames", *TITLES.values())
    return Table(f"Intervention along the gradient, {where}", header, tuple(rows), notes)
