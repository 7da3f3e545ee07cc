"""Models by name or path."""

from __future__ import annotations

from pathlib import Path

from radp import zoo
from radp.runs.errors import BadInput


def model_path(name_or_path: str | Path) -> Path:
    """The folder (or file) of a model: a packaged name, else an existing path."""
    if str(name_or_path) in zoo.list_models():
        return zoo.MODELS / str(name_or_path)
    path = Path(name_or_path)
    if path.exists():
        return path
    known = ", ".join(zoo.list_models()) or "none"
    raise BadInput(f"{str(name_or_path)!r} is neither a packaged model ({known}) nor a path that exists")
