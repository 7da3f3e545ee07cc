"""What an exported planner says of itself: manifest.json, checked against the files beside it.

The version is "major.minor": another major number means other inputs or outputs, and is refused; a higher minor one
only adds.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from radp.runs.errors import BadInput, one_line, reading_file

FORMAT, VERSION = "radp-onnx", "1.1"  # 1.1: heads that are given the geometry of a plan
MANIFEST, GOLDEN = "manifest.json", "golden.npz"
NEEDED = ("encoder", "step")
GEOMETRIES = ("", "cheap")  # that a head may look at
LARGEST = 1 << 31  # bytes of one file
MOST_CALLS = 1000


@dataclass(frozen=True)
class Schedule:
    """times (n + 1,) of the denoising calls; keep, take, more (n,): x <- keep x + take (D + more (D - D before))."""

    times: np.ndarray
    keep: np.ndarray
    take: np.ndarray
    more: np.ndarray


@dataclass(frozen=True)
class ExportManifest:
    """An exported planner: where its graphs are, and the numbers that the program around them needs."""

    folder: Path
    values: Mapping[str, Any]  # all of manifest.json
    graphs: Mapping[str, Path]
    schedule: Schedule
    mean: np.ndarray  # (P, 1, 4) of the state normaliser
    deviation: np.ndarray  # (P, 1, 4)

    @property
    def size(self) -> Mapping[str, Any]:
        """The settings of the model."""
        return self.values["model"]

    @property
    def predicted(self) -> int:
        return 1 + int(self.size["neighbours"])

    @property
    def horizon(self) -> int:
        return int(self.size["horizon"])

    @property
    def rules(self) -> tuple[str, ...]:
        return tuple(self.values.get("rules") or ())

    @property
    def geometry(self) -> str:
        """The kind of geometry of a plan that the head looks at; none without a name."""
        return (self.values.get("head") or {}).get("geometry", "")

    @property
    def temperature(self) -> float:
        return float(self.values["temperature"])

    def inputs(self, graph: str) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Name -> dtype and shape without the batch, of what a graph is given."""
        entries = self.values["graphs"][graph]["inputs"]
        return {entry["name"]: (entry["dtype"], tuple(entry["shape"][1:])) for entry in entries}

    def outputs(self, graph: str) -> list[str]:
        return [entry["name"] for entry in self.values["graphs"][graph]["outputs"]]


def read_manifest(folder: Path | str) -> ExportManifest:
    """BadInput, one sentence, if the folder holds no export, one of another kind, or files that were changed or cut."""
    folder = Path(folder)
    path = folder / MANIFEST
    if not path.is_file():
        raise BadInput(f"{folder} holds no exported planner: {MANIFEST} is missing; radp export onnx makes one")
    with reading_file(path, "manifest of an exported planner"):
        values = json.loads(path.read_bytes())
        if not isinstance(values, dict) or values.get("format") != FORMAT:
            raise BadInput(f"{path}: expected a JSON object whose format is {FORMAT!r}")
        if str(values["version"]).partition(".")[0] != VERSION.partition(".")[0]:
            raise BadInput(
                f"{path}: version {values['version']!r} has other inputs than {VERSION}, which this radp runs"
            )
        graphs = {name: _checked_file(folder, entry) for name, entry in values["graphs"].items()}
        if missing := [name for name in NEEDED if name not in graphs]:
            raise BadInput(f"{path}: it names no graph {missing[0]!r}")
        _checked_file(folder, values["golden"])
        manifest = ExportManifest(folder, values, graphs, _schedule(values["schedule"]), *_moments(values))
        if manifest.mean.shape != (manifest.predicted, 1, 4) or not 0.0 <= manifest.temperature < 100.0:
            raise BadInput(f"{path}: the normaliser or the temperature does not fit the model")
        if manifest.geometry not in GEOMETRIES:
            named = one_line(repr(manifest.geometry), 60)
            raise BadInput(f"{path}: its head looks at the geometry {named}, which this radp cannot compute")
    return manifest


def _checked_file(folder: Path, entry: Mapping[str, Any]) -> Path:
    """The file that an entry names, which must lie in the folder and have the hash that the entry says."""
    name = str(entry["file"])
    path = folder / name
    if name != Path(name).name or path.is_symlink():
        raise BadInput(f"{folder / MANIFEST}: {name!r} is no plain file name")
    if not path.is_file():
        raise BadInput(f"{path} is missing, although {MANIFEST} names it")
    if path.stat().st_size > LARGEST:
        raise BadInput(f"{path} is larger than any exported planner")
    if hashlib.sha256(path.read_bytes()).hexdigest() != entry["sha256"]:
        raise BadInput(f"{path} is not the file that was exported: its hash differs from the one in {MANIFEST}")
    return path


def _schedule(values: Mapping[str, Any]) -> Schedule:
    times, keep, take, more = (np.asarray(values[name], np.float32) for name in ("times", "keep", "take", "more"))
    steps = len(keep)
    fits = times.shape == (steps + 1,) and keep.shape == take.shape == more.shape == (steps,)
    if (
        not fits
        or not 1 <= steps <= MOST_CALLS
        or not all(np.isfinite(part).all() for part in (times, keep, take, more))
    ):
        raise ValueError("its schedule cannot be used")
    return Schedule(times, keep, take, more)


def _moments(values: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    state = values["normaliser"]["state_normalizer"]
    mean, deviation = (np.asarray(state[name], np.float32) for name in ("mean", "std"))
    if not (np.isfinite(mean).all() and np.isfinite(deviation).all() and (deviation > 0).all()):
        raise ValueError("its normaliser cannot be used")
    return mean, deviation
