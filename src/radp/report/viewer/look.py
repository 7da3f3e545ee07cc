"""radp.view: a page of a drive, in a notebook or as a file."""

from __future__ import annotations

import html
import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from radp.attribution.afterwards import judge_drive
from radp.attribution.calibration import Calibration
from radp.attribution.online import LEVELS_OF, calibration_of
from radp.report.viewer.drive import DriveReport
from radp.report.viewer.explain import Explanation, explain_drive
from radp.report.viewer.scenario_page import scenario_page
from radp.rules.sets import V2
from radp.runs.files import write_atomically
from radp.sim.rollout import Rollout

NO_LINKS: dict[str, str | None] = {"index": None, "before": None, "after": None}


@dataclass(frozen=True)
class Look:
    """Pages that were written, one for each scenario; a notebook shows the first.

    >>> (rollout,) = radp.simulate(radp.load_planner("log_replay"), radp.open_split("sumo14-val")[:1], "nonreactive")
    >>> len(radp.view(rollout).pages)
    1
    """

    pages: tuple[Path, ...]

    def __repr__(self) -> str:
        return f"Look({', '.join(str(page) for page in self.pages)})"

    def _repr_html_(self) -> str:
        page = html.escape(self.pages[0].read_text(encoding="utf-8"), quote=True)
        return f'<iframe srcdoc="{page}" style="width:100%;height:720px;border:0"></iframe>'


def view(
    rollouts: Rollout | Iterable[Rollout],
    out: Path | str | None = None,
    calibration: Calibration | str | None = LEVELS_OF,
    verify: bool = False,
    rules: str = "",
) -> Look:
    """Pages of drives; two drives of one scenario are shown side by side.

    `out`: the folder, a temporary one if not given. `verify` looks for what would have avoided each incident, as
    `radp.explain` does. `rules`: the rule set that judges, such as road-v2; v2 if not given.

    >>> (rollout,) = radp.simulate(radp.load_planner("log_replay"), radp.open_split("sumo14-val")[:1], "nonreactive")
    >>> radp.view(rollout).pages[0].suffix
    '.html'
    """
    levels = calibration_of(None, calibration, rules or V2) if isinstance(calibration, str) else calibration
    folder = Path(tempfile.mkdtemp(prefix="radp-view-")) if out is None else Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    grouped: dict[str, list[Rollout]] = {}
    for rollout in [rollouts] if isinstance(rollouts, Rollout) else rollouts:
        grouped.setdefault(rollout.scenario.token, []).append(rollout)
    pages: list[Path] = []
    for token, drives in grouped.items():
        for first in range(0, len(drives), 2):
            pages.append(folder / f"{len(pages) + 1:04d}-{re.sub(r'[^A-Za-z0-9_-]+', '-', token)[:60]}.html")
            write_atomically(pages[-1], _page(drives[first : first + 2], levels, verify, rules).encode())
    if not pages:
        raise ValueError("no drive to look at")
    return Look(tuple(pages))


def _page(drives: Sequence[Rollout], levels: Calibration | None, verify: bool, rules: str = "") -> str:
    reports = [report_rollout(drive, levels, rules, 0.0 if verify else None) for drive in drives]
    return scenario_page(reports, NO_LINKS, levels is not None)[0]


def report_rollout(
    rollout: Rollout, levels: Calibration | None, rules: str = "", verify: float | None = None
) -> DriveReport:
    """A drive with everything that its page says; `rules`: the rule set, that of the levels (or v2) if not given."""
    judged = judge_drive(rollout, levels, rules)
    why = explain_drive(rollout, levels) if judged is None else Explanation.of(rollout, judged)
    return DriveReport.of(rollout, why, judged, verify)
