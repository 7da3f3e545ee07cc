"""For mkdocs: files outside docs/ that pages link to (README, model cards ...) become pages of the site."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
OUTSIDE = {
    "README.md": "readme.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "src/radp/zoo/models/diffusion-planner-mini/CARD.md": "card-diffusion-planner-mini.md",
    "src/radp/zoo/models/diffusion-planner-mini-v2/CARD.md": "card-diffusion-planner-mini-v2.md",
    "src/radp/zoo/models/diffusion-planner-mini-v1/CARD.md": "card-diffusion-planner-mini-v1.md",
    "src/radp/zoo/models/radp-mini/CARD.md": "card-radp-mini.md",
    "src/radp/zoo/models/radp-mini-next/CARD.md": "card-radp-mini-next.md",
    "src/radp/zoo/models/radp-mini-v2/CARD.md": "card-radp-mini-v2.md",
    "src/radp/zoo/models/radp-mini-v1/CARD.md": "card-radp-mini-v1.md",
}
SHIM = re.compile(r'<script src="https://[^"]*iframe-worker[^"]*"[^>]*></script>')
LINK = re.compile(r"(\]\()([^)#\s:]+)(#[^)\s]*)?(\))")


def on_files(files: Files, config: Any) -> Files:
    """Add them to what mkdocs found."""
    for source, name in OUTSIDE.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Links as they are in the repository, turned to where things are in the site."""
    sources = {name: source for source, name in OUTSIDE.items()}
    place = sources.get(page.file.src_uri, f"docs/{page.file.src_uri}")

    def turned(match: re.Match[str]) -> str:
        before, link, anchor, after = match[1], match[2], match[3] or "", match[4]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(place), link))
        if target in OUTSIDE:
            return f"{before}{OUTSIDE[target]}{anchor}{after}"
        if target.startswith("docs/"):
            return f"{before}{target.removeprefix('docs/')}{anchor}{after}"
        return match[0] if link.startswith(("http", "mailto")) else f"{before}#{after}"

    return LINK.sub(turned, markdown)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """No page asks the network for anything: the theme would load a helper of its search from there."""
    return SHIM.sub("", output)


def on_post_template(output: str, template_name: str, config: Any) -> str:
    """The same for pages that come from no Markdown."""
    return SHIM.sub("", output)
