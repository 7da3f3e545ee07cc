"""What a notebook shows of an object: a small table."""

from __future__ import annotations

import html
from collections.abc import Mapping


def html_card(title: str, rows: Mapping[str, object]) -> str:
    """A titled table of two columns; everything is escaped."""
    lines = "".join(
        f"<tr><td style='text-align:left'>{html.escape(name)}</td><td>{html.escape(str(value))}</td></tr>"
        for name, value in rows.items()
    )
    return f"<table><caption style='text-align:left'><b>{html.escape(title)}</b></caption>{lines}</table>"
