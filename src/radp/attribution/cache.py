"""The cache: what the frozen planner computed in its last denoising call, and what the teacher says about the plan.

cache.json                     what it was made from: the planner (a hash), the rules, their levels, the samples
part-00000.safetensors         samples in order; a part is whole or not there, so a killed run just goes on
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from radp.attribution.calibration import Calibration
from radp.attribution.states import compute_states, sample_seeds
from radp.attribution.witness import alike, capitals, rule_constants, teacher_answers
from radp.geometry.limits import MOST, size_fault
from radp.model import cheap_geometry
from radp.model import geometry as geometry_module
from radp.model.head import HeadInputs
from radp.model.network import DiffusionModel
from radp.planners.identity import planner_hash
from radp.rules import rules_named
from radp.rules.sets import PAPER
from radp.runs.errors import reading_file
from radp.runs.manifest import Manifest
from radp.scene.samples import Samples
from radp.storage.errors import StoreError
from radp.storage.shards import ShardFiles, ShardRows, check_alike

CACHE = Manifest("cache.json", None, 2, "cache", StoreError, version_key="format", older=(1,))
FILES = "part-{:05d}.safetensors"
MADE_OF = ("format", "fingerprint", "planner", "rule_set", "rules", "levels", "constants", "geometry")
# fingerprint: of format 1
FIELDS = ("row", "pressure", "tokens", "features", "scene", "padded")
NOT_FINITE = "holds a value that is not finite"
PART = 256  # samples
BATCH = 64


def identity(model: DiffusionModel, calibration: Calibration) -> dict[str, Any]:
    """What changes the content of a cache, beside its samples and their noise."""
    rules = rules_named(calibration.rules, calibration.rule_set)
    named = {} if calibration.rule_set == PAPER else {"rule_set": calibration.rule_set}
    return {
        **named,
        "planner": planner_hash(model),
        "rules": list(calibration.rules),
        "levels": list(calibration.kappa),
        "constants": rule_constants(rules),
        "answers": teacher_answers(rules),
    }


def write_cache(
    path: Path | str,
    model: DiffusionModel,
    samples: Samples,
    calibration: Calibration,
    rows: np.ndarray,
    seed: int = 0,
    workers: int = 1,
    geometry: Sequence[str] = (),
) -> Cache:
    """Cache the samples `rows`; parts that are there are kept, and a cache of something else is refused.

    Kinds of `geometry` are kept for heads that look at them.
    """
    path = Path(path)
    about = identity(model, calibration)
    if geometry:
        about["geometry"] = {"kinds": list(geometry), **capitals(cheap_geometry), **capitals(geometry_module)}
    answers = CACHE.read(path).get("answers", []) if CACHE.is_in(path) else about["answers"]
    order = hashlib.sha256(np.ascontiguousarray(rows, dtype=np.int64).tobytes()).hexdigest()
    made = {"samples": len(rows), "part": PART, "order": order, "seed": seed}
    CACHE.begin(path, {**about, **made, "answers": answers})
    if not alike(answers, about["answers"]):
        raise StoreError(
            f"{path} holds another cache (its rules judge fixed plans otherwise than those now); choose another folder"
        )
    work = partial(_part, model, samples, calibration, rows, seed, PART, tuple(geometry))
    ShardFiles(path, FILES).fill(-(-len(rows) // PART), work, workers, "cache")
    return Cache(path)


def _part(
    model: DiffusionModel,
    samples: Samples,
    calibration: Calibration,
    rows: np.ndarray,
    seed: int,
    size: int,
    geometry: tuple[str, ...],
    part: int,
) -> tuple[dict[str, np.ndarray], None]:
    mine = rows[part * size : (part + 1) * size]
    pieces = []
    for first in range(0, len(mine), BATCH):
        chosen = mine[first : first + BATCH]
        seeds = sample_seeds(seed, part * size + first, len(chosen))
        pieces.append(compute_states(model, samples.read(chosen), calibration, seeds, geometry))
    arrays = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
    return {**arrays, "row": mine.astype(np.int64)}, None


class Cache:
    """N cached samples, memory-mapped."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.about = CACHE.read(self.path)
        with reading_file(self.path, "cache"):
            samples, part, rules = self.about.get("samples"), self.about.get("part", PART), self.about.get("rules")
            if not (type(samples) is int and type(part) is int and part > 0 and isinstance(rules, list)):
                raise StoreError(f"{self.path / CACHE.file} is damaged: samples, part or rules cannot be used")
            starts = range(0, samples, part)
            parts = [arrays for arrays, _ in ShardFiles(self.path, FILES).open(len(starts))]
            kinds = self.about.get("geometry", {}).get("kinds", [])
            check_alike(
                self.path,
                parts,
                (*FIELDS, *(f"geometry_{kind}" for kind in kinds)),
                [min(part, samples - first) for first in starts],
            )
            self.rows = ShardRows(parts, "row")
            self.pressure = self.rows.whole("pressure")
            if self.pressure.shape != (samples, len(rules)) and samples:
                raise StoreError(f"{self.path}: pressures have shape {self.pressure.shape} for {len(rules)} rules")
            if fault := size_fault(self.pressure, MOST, 0.0):
                raise StoreError(f"{self.path}: pressure {fault}")

    def __len__(self) -> int:
        return len(self.rows)

    def is_like(self, other: Cache) -> bool:
        """Whether both come from the same planner, rules and levels, as far as they say."""
        mine, theirs = ({name: cache.about.get(name) for name in MADE_OF} for cache in (self, other))
        return mine == theirs and alike(self.about.get("answers", []), other.about.get("answers", []))

    @property
    def made_of(self) -> dict[str, Any]:
        """What it was made from, without what can be looked up in cache.json."""
        return {name: value for name, value in self.about.items() if name not in ("constants", "answers")}

    @property
    def rule_set(self) -> str:
        return self.about.get("rule_set", PAPER)

    @property
    def rules(self) -> tuple[str, ...]:
        return tuple(self.about["rules"])

    def geometry(self, kind: str) -> torch.Tensor:
        """(N, G) of all samples; StoreError if the cache was made without it."""
        kinds = self.about.get("geometry", {}).get("kinds", [])
        if kind not in kinds:
            raise StoreError(f"{self.path} keeps no {kind} geometry; radp cache --geometry {kind} makes one that does")
        return torch.from_numpy(self.rows.whole(f"geometry_{kind}"))

    def read(self, rows: np.ndarray, geometry: str = "") -> tuple[HeadInputs, torch.Tensor]:
        """Rows (B,) -> what a head with that kind of geometry sees, and the teacher's pressures (B, M)."""
        extra = (f"geometry_{geometry}",) if geometry else ()
        found = self.rows.gather((*FIELDS[2:], *extra), rows)
        for name, array in found.items():
            if array.dtype != np.bool_ and not np.isfinite(array).all():
                raise StoreError(f"{self.path}: {name} {NOT_FINITE}")
        tokens, features, scene, padded, *around = (torch.from_numpy(array) for array in found.values())
        state = HeadInputs(tokens[:, 0].float(), features.float(), scene.float(), padded, *around)
        return state, torch.from_numpy(self.pressure[rows])
