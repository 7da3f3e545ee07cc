"""The studio's page: its own scripts and the viewer's drawing code, in one file that fetches nothing but answers."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources

from radp.report.viewer.page import MARK, static

VIEWER_SCRIPTS = ("theme.js", "decode.js", "player.js", "overlays.js", "scene.js", "curves.js", "card.js")
OWN_SCRIPTS = ("server.js", "editor.js", "panel.js", "studio.js")


def studio_page() -> tuple[bytes, str]:
    """HTML, and the policy that allows its script alone, and no connection but to the studio itself."""
    script = "\n".join([*(static(name) for name in VIEWER_SCRIPTS), *(_own(name) for name in OWN_SCRIPTS)])
    digest = base64.b64encode(hashlib.sha256(f"\n{script}\n".encode()).digest()).decode()
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; base-uri 'none'; "
        f"form-action 'none'; frame-ancestors 'none'; script-src 'sha256-{digest}'"
    )
    styles = "\n".join((static("base.css"), static("scenario.css"), _own("studio.css")))
    parts = {"style": styles, "script": script}
    return MARK.sub(lambda mark: parts[mark[1]], _own("studio.html")).encode(), policy


def _own(name: str) -> str:
    return (resources.files("radp.studio") / "static" / name).read_text(encoding="utf-8")
