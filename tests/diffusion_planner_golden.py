"""Reads a golden file of the published planner: weights, scenes and arrays by name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from radp.model.checkpoint import from_published
from radp.model.config import NUPLAN
from radp.model.network import DiffusionModel
from radp.scene.scene import FUTURE_FIELDS, INPUT_FIELDS, Scene

PATTERN = "golden/diffusion_planner/*.npz"


@dataclass(frozen=True)
class GoldenFile:
    arrays: dict[str, np.ndarray]

    def __getitem__(self, name: str) -> Tensor:
        return torch.from_numpy(self.arrays[name])

    def scene(self, prefix: str = "in/", futures: bool = False) -> Scene:
        names = INPUT_FIELDS + (FUTURE_FIELDS if futures else ())
        return Scene(**{name: self[prefix + name] for name in names})

    def published_state(self) -> dict[str, Tensor]:
        return {name[2:]: self[name].float() for name in self.arrays if name.startswith("w/")}

    def model(self, **changes: object) -> DiffusionModel:
        model = DiffusionModel(replace(NUPLAN, **changes))
        model.load_state_dict(from_published(self.published_state(), model, "golden"))
        return model.eval()


@lru_cache(maxsize=1)
def read_golden(path: Path) -> GoldenFile:
    with np.load(path, allow_pickle=False) as arrays:
        return GoldenFile({name: arrays[name] for name in arrays.files})
