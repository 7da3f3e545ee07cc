"""Rows of different length in two flat arrays: what maps are made of, and what compiled kernels can read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from radp.geometry.limits import REACH, array_fault, size_fault


@dataclass(frozen=True)
class Ragged:
    """values (V, ...), offsets (N+1,): row i is values[offsets[i]:offsets[i+1]]."""

    values: np.ndarray
    offsets: np.ndarray

    @classmethod
    def from_rows(cls, rows: Sequence[ArrayLike], dtype: type = np.float64, width: int | None = None) -> Ragged:
        """Stack rows; `width` is the size of the second axis (None: rows are 1-D)."""
        tail = () if width is None else (width,)
        arrays = [np.asarray(row, dtype=dtype).reshape((-1, *tail)) for row in rows]
        offsets = np.zeros(len(arrays) + 1, dtype=np.int64)
        np.cumsum([len(a) for a in arrays], out=offsets[1:])
        values = np.concatenate(arrays) if arrays else np.zeros((0, *tail), dtype=dtype)
        return cls(np.ascontiguousarray(values), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int | np.integer) -> np.ndarray:
        return self.values[self.offsets[i] : self.offsets[i + 1]]

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[i] for i in range(len(self)))

    def fault(self, dtype: type, width: int | None = None) -> str:
        """What is wrong with types, shapes and offsets, in words that go behind its name; nothing if all is right."""
        shape = (None,) if width is None else (None, width)
        return array_fault(self.values, dtype, shape) or offsets_fault(self.offsets, len(self.values))


@dataclass(frozen=True)
class Polygons:
    """N areas of one or more rings. rings: Ragged of (P, 2) points, not closed; offsets (N+1,) into the rings.

    A point is inside by the even-odd rule over all rings of an area: holes and parts need no extra flags.
    """

    rings: Ragged
    offsets: np.ndarray

    @classmethod
    def from_exteriors(cls, exteriors: Sequence[ArrayLike]) -> Polygons:
        """One ring per area."""
        return cls.from_rings([[exterior] for exterior in exteriors])

    @classmethod
    def from_rings(cls, areas: Sequence[Sequence[ArrayLike]]) -> Polygons:
        """Several rings per area; a closing point equal to the first one is dropped."""
        flat = [_open_ring(ring) for rings in areas for ring in rings]
        offsets = np.zeros(len(areas) + 1, dtype=np.int64)
        np.cumsum([len(rings) for rings in areas], out=offsets[1:])
        return cls(Ragged.from_rows(flat, width=2), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> list[np.ndarray]:
        return [self.rings[j] for j in range(self.offsets[i], self.offsets[i + 1])]

    def fault(self) -> str:
        """What is wrong with types, shapes, offsets and points; nothing if all is right."""
        fault = self.rings.fault(np.float64, 2) or offsets_fault(self.offsets, len(self.rings))
        return fault or size_fault(self.rings.values, REACH)

    @cached_property
    def bounds(self) -> np.ndarray:
        """(N, 4): min x, min y, max x, max y of each area; an empty area has inverted (infinite) bounds."""
        out = np.full((len(self), 4), np.inf)
        out[:, 2:] = -np.inf
        edges = self.rings.offsets[self.offsets]
        some = edges[1:] > edges[:-1]
        if some.any():
            points, first = self.rings.values[: edges[-1]], edges[:-1][some]
            out[some, :2] = np.minimum.reduceat(points, first)
            out[some, 2:] = np.maximum.reduceat(points, first)
        return out


def offsets_fault(offsets: np.ndarray, count: int) -> str:
    """Whether offsets (N+1,) cut a list of `count` into N rows."""
    if fault := array_fault(offsets, np.int64, (None,)):
        return f"offsets: {fault}"
    if len(offsets) and offsets[0] == 0 and offsets[-1] == count and (offsets[1:] >= offsets[:-1]).all():
        return ""
    return f"has offsets that do not cut {count} values into rows"


def _open_ring(ring: ArrayLike) -> np.ndarray:
    points = np.asarray(ring, dtype=np.float64).reshape(-1, 2)
    if len(points) > 1 and np.array_equal(points[0], points[-1]):
        points = points[:-1]
    return points
