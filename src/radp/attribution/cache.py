"""The cache: what the frozen planner computed in its last denoising call, and what the teacher says about the plan.

cache.json                     what it was made from; a hash of planner, rules, calibration and code decides if it fits
part-00000.safetensors         samples in order; a part is whole or not there, so a killed run just goes on
"""

from __future__ import annotations

import hashlib
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from radp.attribution.calibration import Calibration
from radp.attribution.states import PlannerState, compute_states, sample_seeds
from radp.model.network import DiffusionModel
from radp.runs.errors import BadInput
from radp.runs.files import remove_temporaries, write_json_atomically
from radp.runs.parallel import parallel_map
from radp.scene.samples import Samples
from radp.storage.arrays import map_arrays, write_arrays

MANIFEST = "cache.json"
FORMAT = 1
PART = 256  # samples
BATCH = 64


def fingerprint(model: DiffusionModel, calibration: Calibration) -> str:
    """Changes when the planner's weights or settings, the rules, the features or the calibration change."""
    digest = hashlib.sha256(f"format {FORMAT}".encode())
    for name, value in sorted(model.state_dict().items()):
        digest.update(name.encode() + value.detach().cpu().numpy().tobytes())
    digest.update(json.dumps(model.config.to_json(), sort_keys=True).encode())
    digest.update(json.dumps([calibration.rules, calibration.kappa]).encode())
    code = Path(__file__).parents[1]
    for file in (*sorted((code / "rules").glob("*.py")), code / "model" / "features.py"):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def write_cache(
    path: Path | str,
    model: DiffusionModel,
    samples: Samples,
    rule_samples: Samples,
    calibration: Calibration,
    rows: np.ndarray,
    seed: int = 0,
    workers: int = 1,
) -> Cache:
    """Cache the samples `rows`; parts that are there are kept, and a cache of something else is refused."""
    path = Path(path)
    path.mkdir(parents=True, exist_ok=True)
    remove_temporaries(path)
    about = {
        "format": FORMAT,
        "fingerprint": fingerprint(model, calibration),
        "rules": list(calibration.rules),
        "samples": len(rows),
        "rows": hashlib.sha256(np.ascontiguousarray(rows, dtype=np.int64).tobytes()).hexdigest(),
        "seed": seed,
    }
    check_manifest(path, about)
    write_json_atomically(path / MANIFEST, about)
    parts = range(-(-len(rows) // PART))
    missing = [part for part in parts if not (path / part_name(part)).exists()]
    work = partial(_write_part, path, model, samples, rule_samples, calibration, rows, seed)
    outcome = parallel_map(work, missing, workers=workers, label="cache")
    if outcome.failures:
        raise BadInput(f"{path}: part {outcome.failures[0].piece} failed: {outcome.failures[0].reason}")
    return Cache(path)


def part_name(part: int) -> str:
    return f"part-{part:05d}.safetensors"


def check_manifest(path: Path, about: dict[str, Any]) -> None:
    """Refuse, in one sentence, a folder that holds a cache of something else."""
    if not (path / MANIFEST).exists():
        return
    found = json.loads((path / MANIFEST).read_bytes())
    for key, value in about.items():
        if found.get(key) != value:
            what = "planner, rules or calibration" if key == "fingerprint" else key
            raise BadInput(f"{path} is a stale cache: its {what} differ from what is asked for; choose another folder")


def _write_part(
    path: Path,
    model: DiffusionModel,
    samples: Samples,
    rule_samples: Samples,
    calibration: Calibration,
    rows: np.ndarray,
    seed: int,
    part: int,
) -> None:
    mine = rows[part * PART : (part + 1) * PART]
    pieces = []
    for first in range(0, len(mine), BATCH):
        chosen = mine[first : first + BATCH]
        seeds = sample_seeds(seed, part * PART + first, len(chosen))
        pieces.append(compute_states(model, samples.read(chosen), rule_samples.read(chosen), calibration, seeds))
    arrays = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
    write_arrays(path / part_name(part), {**arrays, "row": mine.astype(np.int64)})


class Cache:
    """N cached samples, memory-mapped."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        try:
            self.about = json.loads((self.path / MANIFEST).read_bytes())
        except (OSError, ValueError) as error:
            raise BadInput(f"{self.path} holds no cache ({error})") from None
        count = -(-self.about["samples"] // PART)
        missing = [part for part in range(count) if not (self.path / part_name(part)).exists()]
        if missing:
            raise BadInput(f"{self.path} is not complete: {len(missing)} of {count} parts are missing")
        self._parts = [map_arrays(self.path / part_name(part))[0] for part in range(count)]
        self.pressure = self._whole("pressure")

    def _whole(self, name: str) -> np.ndarray:
        return np.concatenate([part[name] for part in self._parts]) if self._parts else np.zeros((0, 0))

    def __len__(self) -> int:
        return len(self.pressure)

    @property
    def rules(self) -> tuple[str, ...]:
        return tuple(self.about["rules"])

    def read(self, rows: np.ndarray) -> tuple[PlannerState, torch.Tensor]:
        """Rows (B,) -> what the head sees, and the teacher's pressures (B, M)."""
        where = np.stack((rows // PART, rows % PART), 1)

        def gather(name: str) -> torch.Tensor:
            picked = np.stack([self._parts[part][name][k] for part, k in where])
            return torch.from_numpy(picked).to(torch.bool if picked.dtype == bool else torch.float32)

        state = PlannerState(gather("tokens")[:, 0], gather("features"), gather("scene"), gather("padded"))
        return state, torch.from_numpy(self.pressure[rows])
