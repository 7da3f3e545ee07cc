"""What is packaged: splits of scenarios (splits/NAME, a store), models (models/NAME, with config.json), demo pages."""

from __future__ import annotations

from pathlib import Path

SPLITS = Path(__file__).parent / "splits"
MODELS = Path(__file__).parent / "models"
DEMO = Path(__file__).parent / "demo"


def list_splits() -> list[str]:
    """Names of the packaged splits, sorted."""
    return sorted(manifest.parent.name for manifest in SPLITS.glob("*/manifest.json"))


def list_models() -> list[str]:
    """Names of the packaged models, sorted."""
    found = {file.parent.name for name in ("config.json", "planner.json") for file in MODELS.glob(f"*/{name}")}
    return sorted(found)
