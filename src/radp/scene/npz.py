"""Diffusion Planner's preprocessed files: one .npz a sample, and a JSON list of names as index."""

from __future__ import annotations

import json
from collections.abc import Sequence
from errno import ENOENT
from pathlib import Path
from typing import Any

import numpy as np
import torch

from radp.runs.errors import BadInput, reading_file
from radp.scene.scene import BOOL_FIELDS, FUTURE_FIELDS, TRAILING_SHAPES, Scene
from radp.storage.unpacking import read_npz_arrays


def npz_name(map_name: str, token: str) -> str:
    return f"{map_name}_{token}.npz"


def read_npz(path: str | Path) -> Scene:
    """One file -> Scene with batch size 1. Futures are read where the file has them."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(ENOENT, "there is no such sample", str(path))
    with reading_file(path, "sample of the Diffusion Planner layout"):
        arrays = read_npz_arrays(path, TRAILING_SHAPES)
        missing = [name for name in TRAILING_SHAPES if name not in arrays and name not in FUTURE_FIELDS]
        if missing:
            raise ValueError(f"arrays missing: {', '.join(missing)}")
        tensors: dict[str, Any] = {name: _tensor(name, arrays[name]) for name in TRAILING_SHAPES if name in arrays}
        return Scene(**tensors).validate()


def read_npz_batch(paths: Sequence[str | Path]) -> Scene:
    """Many files -> one Scene, batch in the order of the paths."""
    return Scene.cat([read_npz(path) for path in paths])


def write_npz(folder: str | Path, scene: Scene, map_names: Sequence[str], tokens: Sequence[str]) -> list[str]:
    """Write each sample as its own file into the folder; returns the file names, in batch order."""
    if not len(scene) == len(map_names) == len(tokens):
        raise ValueError(f"{len(scene)} samples, but {len(map_names)} map names and {len(tokens)} tokens")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    names = [npz_name(map_name, token) for map_name, token in zip(map_names, tokens)]
    for row, name in enumerate(names):
        if Path(name).name != name:
            raise ValueError(f"map name and token give no plain file name: {name}")
        arrays: dict[str, Any] = {field: value[row].cpu().numpy() for field, value in scene.items()}
        np.savez(folder / name, map_name=np.array(map_names[row]), token=np.array(tokens[row]), **arrays)
    return names


def read_index(path: str | Path) -> list[str]:
    """The JSON list of file names that makes up a dataset."""
    with reading_file(path, "JSON list of file names"):
        names = json.loads(Path(path).read_bytes())
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise BadInput(f"{path}: expected a JSON list of file names")
    if outside := next((name for name in names if name in ("", ".", "..") or Path(name).name != name), None):
        raise BadInput(f"{path}: {outside!a} is no plain file name")
    return names


class NpzFolder(torch.utils.data.Dataset[Scene]):
    """A preprocessed folder as a map-style dataset; item i is a Scene with batch size 1.

    `index` is the published JSON list; without it, every .npz in the folder in name order.
    """

    def __init__(self, folder: str | Path, index: str | Path | None = None) -> None:
        self.folder = Path(folder)
        self.names = read_index(index) if index else sorted(path.name for path in self.folder.glob("*.npz"))
        if not self.names:
            raise BadInput(f"{self.folder}: no .npz samples")

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: int) -> Scene:
        return read_npz(self.folder / self.names[index])

    def batch(self, indices: Sequence[int] | np.ndarray) -> Scene:
        return read_npz_batch([self.folder / self.names[index] for index in indices])

    read = batch  # the name under which training reads from every kind of samples


def _tensor(name: str, array: np.ndarray) -> torch.Tensor:
    wanted = bool if name in BOOL_FIELDS else np.float32
    return torch.from_numpy(np.ascontiguousarray(array, dtype=wanted)).unsqueeze(0)
