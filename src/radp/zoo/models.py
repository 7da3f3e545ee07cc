"""Packaged models by name."""

from __future__ import annotations

from pathlib import Path

from radp.runs.errors import BadInput

MODELS = Path(__file__).parent / "models"


def list_models() -> list[str]:
    """Names of the packaged models, sorted."""
    found = {file.parent.name for name in ("config.json", "planner.json") for file in MODELS.glob(f"*/{name}")}
    return sorted(found)


def model_path(name_or_path: str | Path) -> Path:
    """The folder (or file) of a model: a packaged name, else an existing path."""
    if str(name_or_path) in list_models():
        return MODELS / str(name_or_path)
    path = Path(name_or_path)
    if path.exists():
        return path
    known = ", ".join(list_models()) or "none"
    raise BadInput(f"{str(name_or_path)!r} is neither a packaged model ({known}) nor a path that exists")
