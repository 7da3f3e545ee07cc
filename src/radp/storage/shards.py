"""Rows of arrays in numbered files: made in parallel, each whole or not there, memory-mapped when they are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from radp.runs.claim import claimed
from radp.runs.errors import BadInput
from radp.runs.files import remove_temporaries
from radp.runs.parallel import parallel_map
from radp.storage.arrays import map_arrays, write_arrays
from radp.storage.errors import StoreError

Arrays = Mapping[str, np.ndarray]
MOST_SHARDS = 100_000  # that a manifest may name: each is looked for


@dataclass(frozen=True)
class ShardFiles:
    """The shards of a folder; `name` is a pattern for their numbers."""

    path: Path
    name: str = "shard-{:05d}.safetensors"

    def file(self, number: int) -> Path:
        return self.path / self.name.format(number)

    def missing(self, count: int) -> list[int]:
        return [number for number in range(count) if not self.file(number).exists()]

    def open(self, count: int) -> list[tuple[dict[str, np.ndarray], Any]]:
        """Arrays and note of each; StoreError if one is missing or cut short."""
        if not isinstance(count, int) or not 0 <= count <= MOST_SHARDS:
            raise StoreError(f"{self.path} is damaged: its number of shards is {count!r}")
        if missing := self.missing(count):
            raise StoreError(f"{self.path} is not complete: {len(missing)} of {count} shards are missing")
        return [map_arrays(self.file(number)) for number in range(count)]

    def fill(self, count: int, make: Callable[[int], tuple[Arrays, Any]], workers: int, label: str = "shards") -> None:
        """Make those that are missing: `make` gives arrays and note of a number; importable, or a partial of such."""
        with claimed(self.path):
            remove_temporaries(self.path)
            work, missing = partial(_make, self, make), self.missing(count)
            outcome = parallel_map(work, missing, workers=workers, label=label, folder=self.path)
            remove_temporaries(self.path)  # of workers that were killed on the way
        if outcome.failures:
            failure = outcome.failures[0]
            raise BadInput(f"{self.path}: shard {failure.piece} was not written: {failure.reason}")


def _make(shards: ShardFiles, make: Callable[[int], tuple[Arrays, Any]], number: int) -> None:
    if not shards.file(number).exists():  # another worker may have made it, and died
        write_arrays(shards.file(number), *make(number))


def check_alike(path: Path, parts: Sequence[Arrays], names: Sequence[str], counts: Sequence[int] | None = None) -> None:
    """StoreError unless each part has the arrays `names`, equally long (`counts`), of the same types and row shapes."""
    for number, part in enumerate(parts):
        if missing := [name for name in names if name not in part]:
            raise StoreError(f"{path}: shard {number} has no {missing[0]!r}")
        for name in names:
            array, like = part[name], parts[0][name]
            rows = len(part[names[0]]) if counts is None else counts[number]
            if array.dtype != like.dtype or array.shape != (rows, *like.shape[1:]):
                found, wanted = f"{array.dtype}{array.shape}", f"{like.dtype}{(rows, *like.shape[1:])}"
                raise StoreError(f"{path}: {name} of shard {number} is {found}, expected {wanted}")


class ShardRows:
    """N rows that lie in several mapped files, by one running number; the array `counted` has a row of each."""

    def __init__(self, parts: Sequence[Arrays], counted: str) -> None:
        self.parts = parts
        if any(counted not in part or part[counted].ndim == 0 for part in parts):
            raise StoreError(f"a shard has no rows of {counted!r}")
        self.starts = np.concatenate(([0], np.cumsum([len(part[counted]) for part in parts]))).astype(np.int64)

    def __len__(self) -> int:
        return int(self.starts[-1])

    def places(self, rows: Sequence[int] | np.ndarray) -> list[tuple[Arrays, int]]:
        """The file of each row, and its place there; IndexError names the first that is not there."""
        wanted = check_rows(rows, len(self))
        where = np.searchsorted(self.starts, wanted, "right") - 1
        return [(self.parts[p], k) for p, k in zip(where.tolist(), (wanted - self.starts[where]).tolist())]

    def gather(self, names: Sequence[str], rows: Sequence[int] | np.ndarray) -> dict[str, np.ndarray]:
        """name -> (B, ...), copied out of the files: the page cache serves what was read before."""
        if not self.parts:
            raise StoreError("there are no rows to read")
        places, found = self.places(rows), {}
        for name in names:
            like = self.parts[0][name]
            found[name] = out = np.empty((len(places), *like.shape[1:]), dtype=like.dtype)
            for k, (part, row) in enumerate(places):
                out[k] = part[name][row]
        return found

    def whole(self, name: str, dtype: Any = np.float32) -> np.ndarray:
        """(N, ...) all rows; without any file an empty array."""
        return np.concatenate([part[name] for part in self.parts]) if self.parts else np.zeros(0, dtype)


def check_rows(indices: Sequence[int] | np.ndarray, count: int) -> np.ndarray:
    """Positions as an array; IndexError names the first that is not there."""
    rows = np.asarray(indices, dtype=np.int64)
    wrong = (rows < 0) | (rows >= count)
    if wrong.any():
        raise IndexError(f"sample {int(rows[wrong][0])} of a store of {count}")
    return rows
