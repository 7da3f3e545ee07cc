"""Lines for driving along, compiled with numba: nearest points, and lines sampled at a constant step.

A sampled line is a pair of arrays: points (P, 2) every `step` metres of arc length and their unwrapped headings (P,).
Constant spacing makes a look-up at arc length s a single index instead of a search. Lateral offsets are positive to
the left. Before its start and beyond its end a sampled line goes on straight.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True)
def nearest_on_line(x: float, y: float, points: np.ndarray, first: int, last: int) -> tuple[float, float, float]:
    """Distance, arc length and heading of the point of polyline points[first:last] that is nearest to (x, y)."""
    best, best_s, best_heading, s = np.inf, 0.0, 0.0, 0.0
    for i in range(first, last - 1):
        ax, ay = points[i, 0], points[i, 1]
        dx, dy = points[i + 1, 0] - ax, points[i + 1, 1] - ay
        norm = dx * dx + dy * dy
        if norm == 0.0:
            continue
        t = min(1.0, max(0.0, ((x - ax) * dx + (y - ay) * dy) / norm))
        length = math.sqrt(norm)
        gap = (x - ax - t * dx) ** 2 + (y - ay - t * dy) ** 2
        if gap < best:
            best, best_s, best_heading = gap, s + t * length, math.atan2(dy, dx)
        s += length
    return math.sqrt(best), best_s, best_heading


def sample_line(points: np.ndarray, step: float) -> tuple[np.ndarray, np.ndarray]:
    """Polyline (V, 2) -> points (P, 2) every `step` metres, headings (P,) by central differences, unwrapped."""
    stretch = np.hypot(*np.diff(points, axis=0).T)
    keep = np.concatenate(([True], stretch > 1e-6))
    points = points[keep]
    s = np.concatenate(([0.0], np.cumsum(stretch[keep[1:]])))
    grid = np.arange(0.0, max(s[-1], step) + 0.5 * step, step)
    sampled = np.stack([np.interp(grid, s, points[:, axis]) for axis in range(2)], -1)
    if grid[-1] > s[-1]:
        sampled[-1] = points[-1] + (grid[-1] - s[-1]) * (points[-1] - points[-2]) / (s[-1] - s[-2])
    slope = np.gradient(sampled, axis=0)
    return sampled, np.unwrap(np.arctan2(slope[:, 1], slope[:, 0]))


@njit(cache=True, inline="always")
def line_pose(s: float, points: np.ndarray, headings: np.ndarray, step: float) -> tuple[float, float, float]:
    """x, y, heading of a sampled line at arc length s."""
    last = points.shape[0] - 1
    if s <= 0.0 or s >= last * step:
        i = 0 if s <= 0.0 else last
        over = s - i * step
        heading = headings[i]
        return points[i, 0] + over * math.cos(heading), points[i, 1] + over * math.sin(heading), heading
    i = min(int(s / step), last - 1)
    t = s / step - i
    return (
        points[i, 0] + t * (points[i + 1, 0] - points[i, 0]),
        points[i, 1] + t * (points[i + 1, 1] - points[i, 1]),
        headings[i] + t * (headings[i + 1] - headings[i]),
    )


@njit(cache=True, inline="always")
def line_curvature(s: float, headings: np.ndarray, step: float) -> float:
    """Curvature [1/m] of a sampled line at arc length s, positive to the left, over two steps."""
    last = headings.shape[0] - 1
    i = int(s / step)
    if i < 1 or i >= last:
        return 0.0
    return (headings[i + 1] - headings[i - 1]) / (2.0 * step)


@njit(cache=True)
def line_project(
    x: float, y: float, points: np.ndarray, headings: np.ndarray, step: float, near: int, reach: int
) -> tuple[float, float]:
    """Arc length and lateral offset of (x, y) on a sampled line; searched `reach` samples around sample `near`.

    A negative `near` searches the whole line.
    """
    last = points.shape[0] - 1
    lo, hi = 0, last
    if near >= 0:
        near = min(near, last)
        lo, hi = max(0, near - reach), min(last, near + reach)
    best, k = np.inf, lo
    for i in range(lo, hi + 1):
        gap = (x - points[i, 0]) ** 2 + (y - points[i, 1]) ** 2
        if gap < best:
            best, k = gap, i
    heading = headings[k]
    dx, dy = x - points[k, 0], y - points[k, 1]
    c, s = math.cos(heading), math.sin(heading)
    along, lateral = dx * c + dy * s, -dx * s + dy * c
    if 0 < k < last:
        # First-order correction for the turn of the line between two samples.
        bend = (headings[k + 1] - headings[k - 1]) / (2.0 * step)
        along /= max(0.2, 1.0 - bend * lateral)
        along = min(step, max(-step, along))
    return k * step + along, lateral


@njit(cache=True)
def line_refine(
    x: float, y: float, s: float, points: np.ndarray, headings: np.ndarray, step: float
) -> tuple[float, float, float]:
    """Arc length, lateral offset and line heading at the foot of (x, y), by Newton's method from a guess of s."""
    lateral = heading = 0.0
    for _ in range(3):
        px, py, heading = line_pose(s, points, headings, step)
        c, sn = math.cos(heading), math.sin(heading)
        along, lateral = (x - px) * c + (y - py) * sn, (y - py) * c - (x - px) * sn
        move = along / max(0.3, 1.0 - line_curvature(s, headings, step) * lateral)
        s += min(10.0, max(-10.0, move))
        if abs(move) < 0.02:
            break
    return s, lateral, heading


@njit(cache=True)
def line_coarse(x: float, y: float, points: np.ndarray, first: int, last: int, stride: int) -> tuple[int, float]:
    """Nearest of every `stride`-th sample first..last of a line, and its distance: a guess for `line_refine`."""
    best, k = np.inf, first
    for i in range(first, last + 1, stride):
        gap = (x - points[i, 0]) ** 2 + (y - points[i, 1]) ** 2
        if gap < best:
            best, k = gap, i
    return k, math.sqrt(best)
