"""Weights from disk: safetensors files that may be cut, foreign, or hold values that are no numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from safetensors.torch import load_file
from torch import Tensor

from radp.runs.errors import BadInput, reading_file


def read_weights(path: Path) -> dict[str, Tensor]:
    """All tensors of a safetensors file; BadInput names the file and what is wrong."""
    with reading_file(path, "weights file"):
        return load_file(path)


def check_finite(tensors: Mapping[str, Tensor], source: Path | str) -> None:
    """BadInput names the first tensor with a value that is not finite."""
    for name, value in tensors.items():
        if not bool(value.isfinite().all()):
            raise BadInput(f"{source}: {name} holds a value that is not finite")
