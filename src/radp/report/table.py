"""One kind of table for screen, Markdown and HTML, and how plain numbers are written in it."""

from __future__ import annotations

import html
from dataclasses import dataclass

import numpy as np

from radp.statistics.estimate import NONE


@dataclass(frozen=True)
class Table:
    """`notes` stand under the table, one line each."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def markdown(self) -> str:
        lines = [f"### {self.title}", "", _line(self.header), f"|{'---|' * len(self.header)}"]
        lines += [_line(row) for row in self.rows]
        return "\n".join([*lines, "", *(f"{note}  " for note in self.notes)]).rstrip()

    def to_json(self) -> dict[str, object]:
        return {"title": self.title, "header": self.header, "rows": self.rows, "notes": self.notes}

    def html(self) -> str:
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in self.header)
        body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>\n" for row in self.rows)
        notes = "".join(f"<p class=note>{html.escape(note)}</p>\n" for note in self.notes)
        title = f"<h3>{html.escape(self.title)}</h3>\n"
        table = f"<table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>"
        return f"{title}<div class=wide>{table}</div>\n{notes}"


def _line(cells: tuple[str, ...]) -> str:
    escaped = [cell.replace("|", "\\|") for cell in cells]
    return f"| {' | '.join(escaped)} |"


def number(value: float, digits: int = 3) -> str:
    return NONE if np.isnan(value) else f"{value:.{digits}f}"


def percent(value: float) -> str:
    """Small shares keep their digits: 0.013%."""
    if np.isnan(value):
        return NONE
    return f"{100 * value:.2f}%" if value == 0 or value >= 0.001 else f"{100 * value:.3f}%"
