"""The report as two files: REPORT.md, and report.html with the figures inside it."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from radp.report.table import Table
from radp.runs.files import write_atomically

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 88rem; margin: 2rem auto; padding: 0 1rem; color: #1d2025;
       background: #fff; }
h1, h2, h3 { line-height: 1.2; } h2 { margin-top: 2.5rem; border-bottom: 1px solid #ccc; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: 13px; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #ddd; text-align: left; vertical-align: top;
         min-width: 4.5rem; }
thead th { border-bottom: 2px solid #888; } tr:hover td { background: #f3f5f7; }
.note { font-size: 13px; color: #555; margin: .3rem 0; max-width: 60rem; } img { max-width: 100%; height: auto; }
@media (prefers-color-scheme: dark) { body { background: #16181c; color: #e6e6e6; } .note { color: #aaa; }
  th, td { border-color: #333; } tr:hover td { background: #22262c; } img { background: #fff; } }
"""


@dataclass(frozen=True)
class Picture:
    """A figure that lies beside the report as NAME.svg and NAME.png."""

    name: str
    title: str
    words: str


@dataclass(frozen=True)
class Section:
    """A heading, what is said under it, tables and pictures."""

    title: str
    words: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()


def write_report(out: Path, title: str, lead: Sequence[str], sections: Sequence[Section]) -> tuple[Path, Path]:
    """REPORT.md and report.html in the folder `out`, whose figures/ holds the pictures."""
    out.mkdir(parents=True, exist_ok=True)
    markdown, page = out / "REPORT.md", out / "report.html"
    write_atomically(markdown, as_markdown(title, lead, sections).encode())
    write_atomically(page, as_html(title, lead, sections, out / "figures").encode())
    return markdown, page


def as_markdown(title: str, lead: Sequence[str], sections: Sequence[Section]) -> str:
    parts = [f"# {title}", *lead]
    for section in sections:
        parts += [f"## {section.title}", *section.words, *(table.markdown() for table in section.tables)]
        for picture in section.pictures:
            parts += [f"### {picture.title}", f"![{picture.title}](figures/{picture.name}.png)", picture.words]
    return "\n\n".join(parts) + "\n"


def as_html(title: str, lead: Sequence[str], sections: Sequence[Section], figures: Path) -> str:
    parts = [f"<h1>{html.escape(title)}</h1>", *(f"<p>{html.escape(line)}</p>" for line in lead)]
    for section in sections:
        parts.append(f"<h2>{html.escape(section.title)}</h2>")
        parts += [f"<p>{html.escape(line)}</p>" for line in section.words]
        parts += [table.html() for table in section.tables]
        for picture in section.pictures:
            data = base64.b64encode((figures / f"{picture.name}.png").read_bytes()).decode()
            parts.append(f"<h3>{html.escape(picture.title)}</h3>")
            parts.append(f'<img alt="{html.escape(picture.title)}" src="data:image/png;base64,{data}">')
            parts.append(f"<p class=note>{html.escape(picture.words)}</p>")
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{STYLE}</style>'
    return f"<!doctype html><html lang=en><head>{head}</head><body>\n" + "\n".join(parts) + "\n</body></html>\n"
