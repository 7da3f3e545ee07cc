"""Polylines brought to a fixed number of points, compiled with numba."""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def resample_lines(points: np.ndarray, offsets: np.ndarray, count: int) -> np.ndarray:
    """points (V, 2) of N lines points[offsets[i]:offsets[i+1]] -> (N, count, 2), even in arc length, both ends kept.

    A line without points gives zeros; one without length gives its first point `count` times.
    """
    lines = len(offsets) - 1
    out = np.zeros((lines, count, 2))
    for i in range(lines):
        first, last = offsets[i], offsets[i + 1]
        if last == first:
            continue
        total = 0.0
        for j in range(first, last - 1):
            total += math.hypot(points[j + 1, 0] - points[j, 0], points[j + 1, 1] - points[j, 1])
        segment, passed = first, 0.0  # `passed` is the arc length where the segment begins
        for k in range(count):
            target = total * k / (count - 1)
            length = 0.0
            while segment < last - 1:
                dx, dy = points[segment + 1, 0] - points[segment, 0], points[segment + 1, 1] - points[segment, 1]
                length = math.hypot(dx, dy)
                if target <= passed + length or segment == last - 2:
                    break
                passed += length
                segment += 1
            part = 0.0 if length == 0.0 else min(1.0, max(0.0, (target - passed) / length))
            after = min(segment + 1, last - 1)
            for axis in range(2):
                out[i, k, axis] = points[segment, axis] + part * (points[after, axis] - points[segment, axis])
        out[i, count - 1] = points[last - 1]
    return out
