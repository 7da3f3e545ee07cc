"""Arrays as small text: whole numbers of a fixed step, little-endian, base64."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Packed = dict[str, str]
MISSING = -32768  # int16 that stands for no value
MOST = 32767
FINEST = 0.01  # m: positions are never kept finer
ANGLE_STEP = 1e-4  # rad
TYPES = {
    np.dtype(np.int8): "i1",
    np.dtype(np.int16): "i2",
    np.dtype(np.uint16): "u2",
    np.dtype(np.uint8): "u1",
    np.dtype(np.float32): "f4",
}


def pack(array: np.ndarray) -> Packed:
    """Any shape, read back as one flat typed array: t = its type, b = base64 of its little-endian bytes."""
    kind = TYPES[array.dtype]
    little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
    return {"t": kind, "b": base64.b64encode(little.tobytes()).decode()}


def whole_numbers(values: np.ndarray, step: float) -> np.ndarray:
    """Floats -> int16 multiples of `step`, at most step / 2 off; NaN -> MISSING; beyond the range: its end."""
    scaled = np.round(np.asarray(values, dtype=np.float64) / step)
    return np.where(np.isnan(scaled), MISSING, np.clip(np.nan_to_num(scaled), -MOST, MOST)).astype(np.int16)


def angles(values: np.ndarray) -> np.ndarray:
    """Radians of any size -> int16 multiples of ANGLE_STEP in [-pi, pi]; NaN -> MISSING."""
    return whole_numbers((np.asarray(values) + np.pi) % (2 * np.pi) - np.pi, ANGLE_STEP)


@dataclass(frozen=True)
class Grid:
    """Positions of one page: metres from `origin` in multiples of `step`."""

    origin: np.ndarray  # (2,) world
    step: float  # m

    @classmethod
    def around(cls, points: np.ndarray, margin: float) -> Grid:
        """The finest grid (at best 1 cm) that holds everything within `margin` metres of the points (P, 2)."""
        low, high = points.min(0), points.max(0)
        origin = np.round((low + high) / 2)
        extent = float(np.abs(points - origin).max()) + margin
        return cls(origin, max(FINEST, extent / MOST))

    def positions(self, points: np.ndarray) -> np.ndarray:
        """(..., 2) world -> int16 of the same shape; NaN -> MISSING; what lies off the grid moves to its rim."""
        return whole_numbers(np.asarray(points) - self.origin, self.step)

    def pack_lines(self, lines: Sequence[np.ndarray]) -> dict[str, Packed]:
        """Lines or rings (P, 2) of different length: n = points of each, xy = all of them."""
        points = np.concatenate(lines) if lines else np.zeros((0, 2))
        counts = np.array([len(line) for line in lines], dtype=np.uint16)
        return {"n": pack(counts), "xy": pack(self.positions(points))}
