"""Pieces of line, plain numpy: a piece is (4,), from x, y to x, y."""

from __future__ import annotations

import numpy as np


def distances_to_segments(point: np.ndarray, pieces: np.ndarray) -> np.ndarray:
    """point (2,), pieces (M, 4) -> (M,) metres to each."""
    start, step = pieces[:, :2], pieces[:, 2:] - pieces[:, :2]
    square = np.maximum((step * step).sum(1), 1e-12)
    share = np.clip(((point - start) * step).sum(1) / square, 0.0, 1.0)
    return np.linalg.norm(point - start - share[:, None] * step, axis=1)
