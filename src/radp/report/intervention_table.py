"""The intervention test as tables."""

from __future__ import annotations

from collections.abc import Sequence

from radp.evaluation.endpoints import ENDPOINTS
from radp.evaluation.intervention import HIGH, LEFT_OUT, Intervention, contrasts
from radp.report.alignment_tables import TITLES
from radp.report.table import Table
from radp.statistics.estimate import LEGEND, difference

CONTROLS = {"down": "down", "up": "up (control)", "random": "random (control)"}


def intervention_tables(found: Sequence[Intervention], where: str) -> list[Table]:
    """Change of every risk, then the controls against the way down."""
    return [_changes(found, where), *([_contrasts(found, where)] if contrasts(found) else [])]


def _changes(found: Sequence[Intervention], where: str) -> Table:
    """The matched risks in brackets."""
    rows = []
    for one in found:
        cells = []
        for endpoint, change in zip(ENDPOINTS, one.change):
            text = difference(change)
            cells.append(f"[{text}]" if endpoint.channel == one.rule else text)
        rows.append((one.rule, CONTROLS[one.way], str(one.scenarios), str(one.frames), *cells))
    notes = (
        f"Wherever the pressure of the rule in the row is above its {HIGH:.0%} quantile, accelerations along and "
        "across the path (collision: along only, unless it may swerve), on knots a second apart, are added to the "
        "plan: down the gradient of the rule's cost, as strongly as halves it (at most 2 m/s²), or as strongly up, or "
        "as strongly in a random direction. They begin without a jump and are kept over the window of the risk. "
        "Figures are changes of the risk over the frames where the plain drive had that pressure, paired, with 95% "
        "intervals over scenarios; [matched risk]. Negative = the risk falls.",
        f"Left out: {' and '.join(LEFT_OUT)}: {next(iter(LEFT_OUT.values()))}.",
        "Units: " + "; ".join(f"{TITLES[e.name]}: {e.severity}" for e in ENDPOINTS) + ".",
        LEGEND,
    )
    header = ("rule", "way", "scenarios", "frames", *TITLES.values())
    return Table(f"Intervention in control space, {where}", header, tuple(rows), notes)


def _contrasts(found: Sequence[Intervention], where: str) -> Table:
    rows = tuple(
        (one.rule, TITLES[one.endpoint], f"{one.control} minus down", difference(one.difference), f"{one.higher}",
         f"{one.lower}")
        for one in contrasts(found)
    )  # fmt: skip
    note = (
        "The matched risk under a control minus the same risk down the gradient, paired by scenario. Above 0: the "
        "gradient points the right way; the random control says whether it is more than a push of that size."
    )
    header = ("rule", "risk", "contrast", "difference", "control higher in", "lower in")
    return Table(f"Controls against the way down, {where}", header, rows, (note, LEGEND))
