"""The sample store: any Scenes, as they are, in memory-mapped shards that are read in any order.

shard-00000.safetensors   fields of the first samples, one array (n, ...) each, float32 and bool: no bit is lost
manifest.json             written last: the fields, their shapes and how many samples each shard has
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import numpy as np
import torch

from radp.runs.errors import BadInput
from radp.runs.files import remove_temporaries, write_json_atomically
from radp.scene.npz import NpzFolder
from radp.scene.scene import Scene
from radp.storage.arrays import map_arrays, write_arrays

FORMAT, VERSION = "radp-samples", 1
MANIFEST = "manifest.json"
SHARD_SIZE = 512  # samples


class Samples(Protocol):
    """What training reads from."""

    def __len__(self) -> int: ...

    def read(self, indices: Sequence[int] | np.ndarray) -> Scene:
        """(B,) positions -> Scene of B samples in that order, with futures."""
        ...


def iter_batches(
    samples: Samples, batch: int, generator: torch.Generator | None = None, drop_last: bool = True
) -> Iterator[Scene]:
    """One pass over all samples in batches; shuffled by the generator, in order without one."""
    count = len(samples)
    order = np.arange(count) if generator is None else torch.randperm(count, generator=generator).numpy()
    for first in range(0, count - batch + 1 if drop_last else count, batch):
        yield samples.read(order[first : first + batch])


def check_rows(indices: Sequence[int] | np.ndarray, count: int) -> np.ndarray:
    """Positions as an array; IndexError names the first that is not there."""
    rows = np.asarray(indices, dtype=np.int64)
    wrong = (rows < 0) | (rows >= count)
    if wrong.any():
        raise IndexError(f"sample {int(rows[wrong][0])} of a store of {count}")
    return rows


class SampleStore:
    """N samples; `read` copies them out of the mapped files, so the page cache serves what was read before."""

    def __init__(self, path: Path) -> None:
        self.path = path
        manifest = read_manifest(path, FORMAT, VERSION)
        self._shards = [map_arrays(path / shard_name(i))[0] for i in range(len(manifest["shards"]))]
        self._starts = np.concatenate(([0], np.cumsum(manifest["shards"]))).astype(np.int64)
        self.fields: tuple[str, ...] = tuple(manifest["fields"])

    @classmethod
    def open(cls, path: Path | str) -> SampleStore:
        return cls(Path(path))

    def __len__(self) -> int:
        return int(self._starts[-1])

    def read(self, indices: Sequence[int] | np.ndarray) -> Scene:
        rows = check_rows(indices, len(self))
        shards = np.searchsorted(self._starts, rows, "right") - 1
        places = [(self._shards[s], r) for s, r in zip(shards.tolist(), (rows - self._starts[shards]).tolist())]
        fields = {}
        for name in self.fields:
            like = self._shards[0][name]
            out = np.empty((len(rows), *like.shape[1:]), dtype=like.dtype)
            for k, (shard, row) in enumerate(places):
                out[k] = shard[name][row]
            fields[name] = torch.from_numpy(out)
        return Scene(**fields)

    def iter_batches(
        self, batch: int, generator: torch.Generator | None = None, drop_last: bool = True
    ) -> Iterator[Scene]:
        return iter_batches(self, batch, generator, drop_last)

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process gets the path and maps the files itself."""
        return SampleStore, (self.path,)


class SampleWriter:
    """Appends Scenes to a new store; use it as a context manager.

    A shard is written when it is full. A folder whose writer was killed goes on: `len(writer)` samples are safe in it,
    append those that follow.
    """

    def __init__(self, path: Path | str, shard_size: int = SHARD_SIZE) -> None:
        self.path, self.shard_size = Path(path), shard_size
        self.path.mkdir(parents=True, exist_ok=True)
        if (self.path / MANIFEST).exists():
            raise BadInput(f"{self.path} holds a finished sample store; choose another folder")
        remove_temporaries(self.path)
        self._shards: list[int] = []
        self._shapes: dict[str, list[int]] = {}
        self._waiting: list[Scene] = []
        while (file := self.path / shard_name(len(self._shards))).exists():
            arrays = map_arrays(file)[0]
            self._shapes = {name: list(array.shape[1:]) for name, array in arrays.items()}
            self._shards.append(len(next(iter(arrays.values()))))
        if any(rows != shard_size for rows in self._shards):
            raise BadInput(f"{self.path} was begun with shards of {self._shards[0]} samples, not {shard_size}")

    def __len__(self) -> int:
        """Samples that are safe on the disk."""
        return sum(self._shards)

    def append(self, scene: Scene) -> None:
        """All samples of a scene; their fields and sizes must be those of the first."""
        shapes = {name: list(value.shape[1:]) for name, value in scene.items()}
        self._shapes = self._shapes or shapes
        if {name: tuple(shape) for name, shape in shapes.items()} != {n: tuple(s) for n, s in self._shapes.items()}:
            raise ValueError(f"this scene has fields {shapes}, the store {self._shapes}")
        self._waiting.append(scene)
        while sum(map(len, self._waiting)) >= self.shard_size:
            together = Scene.cat(self._waiting)
            self._write(together[: self.shard_size])
            self._waiting = [together[self.shard_size :]]

    def _write(self, scene: Scene) -> None:
        arrays = {name: value.cpu().numpy() for name, value in scene.items()}
        write_arrays(self.path / shard_name(len(self._shards)), arrays)
        self._shards.append(len(scene))

    def close(self) -> None:
        """Write the last, shorter shard and the manifest: the store is finished."""
        if sum(map(len, self._waiting)):
            self._write(Scene.cat(self._waiting))
        self._waiting = []
        if not self._shards:
            raise BadInput(f"{self.path}: no sample was appended")
        manifest = {"format": FORMAT, "version": VERSION, "fields": self._shapes, "shards": self._shards}
        write_json_atomically(self.path / MANIFEST, manifest)

    def __enter__(self) -> SampleWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """After an error the store stays unfinished, to be taken up again."""
        if kind is None:
            self.close()


def pack_npz(folder: Path | str, path: Path | str, index: Path | str | None = None) -> SampleStore:
    """A folder of Diffusion Planner's .npz files -> a sample store of the same samples in the same order."""
    source = NpzFolder(folder, index)
    with SampleWriter(path) as writer:
        for i in range(len(writer), len(source)):
            writer.append(source[i])
    return SampleStore.open(path)


def shard_name(number: int) -> str:
    return f"shard-{number:05d}.safetensors"


def read_manifest(path: Path, wanted: str, version: int) -> dict[str, Any]:
    """The manifest of a finished store; BadInput says what else the folder is."""
    try:
        manifest = json.loads((path / MANIFEST).read_text())
    except FileNotFoundError:
        raise BadInput(f"{path} holds no finished store: {MANIFEST} is missing") from None
    except (OSError, ValueError) as error:
        raise BadInput(f"{path / MANIFEST}: not readable ({error})") from None
    found = (manifest.get("format"), manifest.get("version")) if isinstance(manifest, dict) else None
    if found != (wanted, version):
        raise BadInput(f"{path / MANIFEST}: expected a {wanted} store of version {version}, found {found}")
    return manifest
