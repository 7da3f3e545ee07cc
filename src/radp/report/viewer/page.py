"""HTML out of templates: styles, scripts and data go into the page itself, and nothing is fetched."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

from radp.runs.json_text import json_text

MARK = re.compile(r"\{\{(\w+)\}\}")


def render(template: str, title: str, data: dict[str, Any], styles: Sequence[str], scripts: Sequence[str]) -> str:
    """A page of its own. `title` and `data` may hold anything: they are escaped here, and the scripts never make HTML
    of data. The page's own policy forbids every other script and every connection."""
    script = "\n".join(static(name) for name in scripts)
    digest = base64.b64encode(hashlib.sha256(f"\n{script}\n".encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
    parts = {
        "title": html.escape(title),
        "policy": html.escape(policy),
        "style": "\n".join(static(name) for name in styles),
        "data": json_in_html(data),
        "script": script,
    }
    return MARK.sub(lambda mark: parts[mark[1]], static("head.html") + static(template))


def json_in_html(data: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json_text(data, indent=None, separators=(",", ":"))  # ASCII only: no line separators either
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def static(name: str) -> str:
    """A file of the folder `static`."""
    return (resources.files("radp.report.viewer") / "static" / name).read_text(encoding="utf-8")
