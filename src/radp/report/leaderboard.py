"""The leaderboard: runs that were checked, one table for each split and kind of traffic, best first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from radp.evaluation.planners import COLUMNS, Row
from radp.evaluation.submission import Submission
from radp.report.document import Section, as_html, as_markdown
from radp.report.table import Table
from radp.runs.files import write_atomically, write_json_atomically
from radp.statistics.estimate import LEGEND, interval

TITLE = "sumo14 leaderboard"
LEAD = (
    "Score x100 with 95 % intervals over scenarios. Every score was computed again from the drives of its run, and "
    "reactive traffic was driven again along the ego's path.",
)


def leaderboard_sections(submissions: Sequence[Submission]) -> list[Section]:
    """A section for each split and kind of traffic, and one for runs that are not shown."""
    accepted = [(one, one.row) for one in submissions if one.row is not None]
    groups = sorted({(row.split, row.agents) for _, row in accepted})
    sections = []
    for split, agents in groups:
        entries = [(one, row) for one, row in accepted if (row.split, row.agents) == (split, agents)]
        sections.append(Section(f"{split}, {agents} traffic", tables=(_table(entries),)))
    refused = [one for one in submissions if one.row is None]
    if refused:
        words = tuple(f"{one.path}: {'; '.join(one.problems[:3])}." for one in refused)
        sections.append(Section("Not shown", words))
    return sections


def _table(entries: Sequence[tuple[Submission, Row]]) -> Table:
    ordered = sorted(entries, key=lambda entry: (-_score(entry[1]), entry[1].planner))
    rows = []
    for place, (one, row) in enumerate(ordered):
        cells = [interval(estimate, 1, 100) for estimate in row.estimates().values()]
        rows.append((str(place + 1), one.about.get("name", row.planner), one.about.get("authors", ""), *cells))
    split = ordered[0][1].split
    return Table(f"{split}: {len(ordered)} runs", ("", "planner", "by", *COLUMNS.values()), tuple(rows), (LEGEND,))


def _score(row: Row) -> float:
    return float(row.values["score"].mean())


def leaderboard_json(submissions: Sequence[Submission]) -> list[dict[str, Any]]:
    """JSON-ready, in the order in which the runs were given."""
    found = []
    for one in submissions:
        entry: dict[str, Any] = {"run": str(one.path), "accepted": one.row is not None, "problems": list(one.problems)}
        if one.row is not None:
            row = one.row
            entry |= {"split": row.split, "agents": row.agents, "planner": row.planner, "about": one.about}
            entry |= {"facts": one.facts, "scenarios": len(row.values["score"])}
            entry["means"] = {metric: estimate.to_json() for metric, estimate in row.estimates().items()}
        found.append(entry)
    return found


def write_leaderboard(submissions: Sequence[Submission], out: Path) -> Path:
    """leaderboard.html, leaderboard.md and leaderboard.json in a folder -> the page."""
    sections, page = leaderboard_sections(submissions), out / "leaderboard.html"
    write_atomically(page, as_html(TITLE, LEAD, sections, out).encode())
    write_atomically(out / "leaderboard.md", as_markdown(TITLE, LEAD, sections).encode())
    write_json_atomically(out / "leaderboard.json", leaderboard_json(submissions))
    return page
