"""Polylines brought to a fixed number of points, or cut, compiled with numba where it counts."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def resample_line(points: np.ndarray, first: int, last: int, out: np.ndarray) -> None:
    """Polyline points[first:last] -> out (n, 2): even in arc length, both ends kept.

    A line without points gives zeros; one without length gives its points as they come.
    """
    count = len(out)
    out[:] = 0.0
    if last == first:
        return
    total = 0.0
    for j in range(first, last - 1):
        total += math.hypot(points[j + 1, 0] - points[j, 0], points[j + 1, 1] - points[j, 1])
    segment, passed = first, 0.0  # `passed` is the arc length where the segment begins
    for k in range(count - 1):
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
            out[k, axis] = points[segment, axis] + part * (points[after, axis] - points[segment, axis])
    out[count - 1] = points[last - 1, :2]


@njit(cache=True, nogil=True)
def resample_lines(points: np.ndarray, offsets: np.ndarray, out: np.ndarray, out_offsets: np.ndarray) -> None:
    """N lines points[offsets[i]:offsets[i+1]] -> out[out_offsets[i]:out_offsets[i+1]], each by `resample_line`."""
    for i in range(len(offsets) - 1):
        resample_line(points, offsets[i], offsets[i + 1], out[out_offsets[i] : out_offsets[i + 1]])


def line_lengths(points: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """N lines points[offsets[i]:offsets[i+1]] -> (N,) lengths."""
    steps = np.hypot(*np.diff(points, axis=0).T)
    return np.array([steps[lo : max(lo, hi - 1)].sum() for lo, hi in pairwise(offsets)])


def cut_line(points: np.ndarray, begin: float, end: float) -> np.ndarray:
    """(P, 2) -> (n, 2): the part between two fractions of the arc length, 0 <= begin < end <= 1."""
    s = np.concatenate(([0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))))
    lo, hi = begin * s[-1], end * s[-1]
    ends = np.stack([np.interp((lo, hi), s, points[:, axis]) for axis in range(2)], 1)
    return np.concatenate((ends[:1], points[(s > lo) & (s < hi)], ends[1:]))
