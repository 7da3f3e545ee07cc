"""What a planner is, as a hash: its weights and sizes, the levels of its rules, its source file. Not its name."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from radp.planners.registry import EXPORTED, PLANNERS
from radp.runs.settings import as_json

DIGITS = 16


def planner_hash(
    model: nn.Module | None = None, head: nn.Module | None = None, levels: Any = None, source: Path | None = None,
    export: str | None = None,
) -> str | None:  # fmt: skip
    """16 hex digits that change with the values of what is given; None if nothing is.

    model: with adapters merged. head: of attribution. levels: of its rules (a calibration), as JSON knows it.
    source: the file of a planner of the user's own. export: the fingerprint of exported graphs and what runs them.
    """
    digest, known = hashlib.sha256(), False
    for name, part in (("model", model), ("head", head), ("levels", levels), ("source", source), ("export", export)):
        if part is None:
            continue
        known = True
        digest.update(f"{name}:".encode())
        if isinstance(part, nn.Module):
            _take_module(digest, part)
        else:
            digest.update(part.read_bytes() if isinstance(part, Path) else repr(as_json(part)).encode())
    return digest.hexdigest()[:DIGITS] if known else None


def identity_of(planner: object, name: str, levels: Any = None) -> str | None:
    """The hash of a planner that `load_planner(name)` gave; None if it is nothing but code of radp."""
    parts = (getattr(planner, part, None) for part in ("model", "head"))
    model, head = (part if isinstance(part, nn.Module) else None for part in parts)
    return planner_hash(model, head, levels, own_source(name), getattr(planner, "fingerprint", None))


def own_source(name: str) -> Path | None:
    """The file of a planner of the user's own, given as file.py:Class or module:Class."""
    place, colon, _ = name.rpartition(":")
    if name in PLANNERS or not colon or place.startswith("radp.") or name.startswith(EXPORTED):
        return None
    if not place.endswith(".py"):
        place = getattr(sys.modules.get(place), "__file__", None) or ""
    path = Path(place).expanduser()
    return path if path.is_file() else None


def _take_module(digest: Any, module: nn.Module) -> None:
    """Every weight, and the settings by which it is used; those at their defaults are left out, as new ones come."""
    for name, value in sorted(module.state_dict().items()):
        digest.update(f"{name}:{value.dtype}{tuple(value.shape)}:".encode())
        digest.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    if is_dataclass(config := getattr(module, "config", None)):
        chosen = {f.name: getattr(config, f.name) for f in fields(config) if getattr(config, f.name) != f.default}
        digest.update(repr(as_json(chosen)).encode())
    if (normaliser := getattr(module, "normaliser", None)) is not None:
        digest.update(repr(normaliser.to_args()).encode())
