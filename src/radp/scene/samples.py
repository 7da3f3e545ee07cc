"""The sample store: any Scenes, as they are, in memory-mapped shards that are read in any order.

shard-00000.safetensors   fields of the first samples, one array (n, ...) each, float32 and bool: no bit is lost
manifest.json             the fields, their shapes and how many samples each shard has
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import numpy as np
import torch

from radp.runs.errors import BadInput
from radp.runs.manifest import Manifest
from radp.scene.npz import NpzFolder
from radp.scene.scene import INPUT_FIELDS, TRAILING_SHAPES, Scene
from radp.storage.arrays import write_arrays
from radp.storage.errors import StoreError
from radp.storage.growing import UNFINISHED, GrowingStore
from radp.storage.shards import ShardFiles, ShardRows, check_alike

SAMPLES = Manifest("manifest.json", "radp-samples", 1, "sample store")
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


def checked(path: Path, scene: Scene) -> Scene:
    """The scene, if it is sound; StoreError names the store that it was read from."""
    try:
        return scene.validate()
    except ValueError as error:
        raise StoreError(f"{path} holds a sample that cannot be used ({error})") from None


class SampleStore:
    """N samples in memory-mapped files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        manifest = SAMPLES.read(path)
        if manifest.get(UNFINISHED):
            raise StoreError(f"{path} is not finished: what wrote it was stopped, the same command goes on")
        fields, counts = manifest.get("fields"), manifest.get("shards")
        if not isinstance(fields, dict) or not isinstance(counts, list) or not set(INPUT_FIELDS) <= set(fields):
            raise StoreError(f"{path / SAMPLES.file} is damaged: it lacks fields of samples, or the list of shards")
        self.fields: tuple[str, ...] = tuple(name for name in TRAILING_SHAPES if name in fields)
        parts = [arrays for arrays, _ in ShardFiles(path).open(len(counts))]
        check_alike(path, parts, self.fields, counts)
        self._rows = ShardRows(parts, self.fields[0])

    @classmethod
    def open(cls, path: Path | str) -> SampleStore:
        return cls(Path(path))

    def __len__(self) -> int:
        return len(self._rows)

    def read(self, indices: Sequence[int] | np.ndarray) -> Scene:
        found = self._rows.gather(self.fields, indices)
        fields: dict[str, Any] = {name: torch.from_numpy(array) for name, array in found.items()}
        return checked(self.path, Scene(**fields))

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
        self._folder = GrowingStore(self.path, SAMPLES)
        if not self._folder.unfinished:
            self._folder.release()
            raise BadInput(f"{self.path} holds a finished sample store; choose another folder")
        self._files = ShardFiles(self.path)
        self._shards: list[int] = self._folder.content.get("shards", [])
        self._shapes: dict[str, list[int]] = self._folder.content.get("fields", {})
        self._waiting: list[Scene] = []

    def __len__(self) -> int:
        """Samples that are safe on the disk."""
        return sum(self._shards)

    def append(self, scene: Scene) -> None:
        """All samples of a scene; their fields and sizes must be those of the first."""
        shapes = {name: list(value.shape[1:]) for name, value in scene.items()}
        self._shapes = self._shapes or shapes
        if shapes != self._shapes:
            raise ValueError(f"this scene has fields {shapes}, the store {self._shapes}")
        self._waiting.append(scene)
        while sum(map(len, self._waiting)) >= self.shard_size:
            together = Scene.cat(self._waiting)
            self._write(together[: self.shard_size])
            self._waiting = [together[self.shard_size :]]

    def _write(self, scene: Scene) -> None:
        arrays = {name: value.cpu().numpy() for name, value in scene.items()}
        write_arrays(self._files.file(len(self._shards)), arrays)
        self._shards.append(len(scene))
        self._folder.write({"fields": self._shapes, "shards": self._shards}, finished=False)

    def close(self, finished: bool = True) -> None:
        """Write the last, shorter shard and finish the store; else it stays as it is, to be taken up again."""
        try:
            if finished and any(len(scene) for scene in self._waiting):
                self._write(Scene.cat(self._waiting))
            if finished and not self._shards:
                raise BadInput(f"{self.path}: no sample was appended")
            if finished:
                self._folder.write({"fields": self._shapes, "shards": self._shards}, finished=True)
        finally:
            self._waiting = []
            self._folder.release()

    def __enter__(self) -> SampleWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """After an error the store stays unfinished."""
        self.close(finished=kind is None)


def pack_npz(folder: Path | str, path: Path | str, index: Path | str | None = None) -> SampleStore:
    """A folder of Diffusion Planner's .npz files -> a sample store of the same samples in the same order."""
    source = NpzFolder(folder, index)
    with SampleWriter(path) as writer:
        for i in range(len(writer), len(source)):
            writer.append(source[i])
    return SampleStore.open(path)
