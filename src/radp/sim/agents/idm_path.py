"""The path of a reactive agent: vertices with headings and progress, cut and prolonged as the agent drives.

A path is path[:count] of an array (P, 4) with the columns x, y, heading (continuous, not wrapped) and progress [m].
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from radp.geometry.kernels import wrap_angle

X, Y, HEADING, PROGRESS = 0, 1, 2, 3
SAME_VERTEX = 1e-8  # m


@njit(cache=True, nogil=True, inline="always")
def clamp_progress(path: np.ndarray, count: int, s: float) -> float:
    return max(path[0, PROGRESS], min(s, path[count - 1, PROGRESS]))


@njit(cache=True, nogil=True)
def first_after(path: np.ndarray, count: int, s: float) -> int:
    """Index of the first vertex with a progress greater than s; count when there is none."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if path[middle, PROGRESS] > s:
            high = middle
        else:
            low = middle + 1
    return low


@njit(cache=True, nogil=True)
def pose_at(path: np.ndarray, count: int, s: float) -> tuple[float, float, float]:
    """x, y, heading (not wrapped) at progress s, which lies on the path."""
    i = min(max(first_after(path, count, s), 1), count - 1)
    t = (s - path[i - 1, PROGRESS]) / (path[i, PROGRESS] - path[i - 1, PROGRESS])
    return (
        path[i - 1, X] + t * (path[i, X] - path[i - 1, X]),
        path[i - 1, Y] + t * (path[i, Y] - path[i - 1, Y]),
        path[i - 1, HEADING] + t * (path[i, HEADING] - path[i - 1, HEADING]),
    )


@njit(cache=True, nogil=True)
def _measure(path: np.ndarray, count: int) -> int:
    """Set progress and continuous headings of path[:count]; returns how many vertices are left.

    A vertex that coincides with its follower goes, and so does always the last one, unless fewer than two would remain.
    """
    kept, s = 0, 0.0
    lx, ly = path[count - 1, X], path[count - 1, Y]
    last_heading = path[count - 1, HEADING]
    for i in range(count - 1):
        x, y, heading = path[i, X], path[i, Y], path[i, HEADING]
        dx, dy = path[i + 1, X] - x, path[i + 1, Y] - y
        step = math.sqrt(dx * dx + dy * dy)
        if step > SAME_VERTEX:
            path[kept, X], path[kept, Y], path[kept, HEADING], path[kept, PROGRESS] = x, y, heading, s
            kept += 1
        s += step
    if kept < 2:
        path[kept, X], path[kept, Y], path[kept, HEADING], path[kept, PROGRESS] = lx, ly, last_heading, s
        kept += 1
    for i in range(1, kept):
        path[i, HEADING] = path[i - 1, HEADING] + wrap_angle(path[i, HEADING] - path[i - 1, HEADING])
    return kept


@njit(cache=True, nogil=True)
def _append_lane(path: np.ndarray, count: int, vertex: np.ndarray, first: int, last: int) -> int:
    """Put the centre line vertex[first:last] (x, y, heading) behind path[:count] and measure the whole."""
    for i in range(first, last):
        path[count, X], path[count, Y], path[count, HEADING] = vertex[i, 0], vertex[i, 1], vertex[i, 2]
        count += 1
    return _measure(path, count)


@njit(cache=True, nogil=True)
def start_path(path: np.ndarray, vertex: np.ndarray, first: int, last: int) -> int:
    """The path along one centre line; returns its number of vertices."""
    return _append_lane(path, 0, vertex, first, last)


@njit(cache=True, nogil=True)
def prolong_path(path: np.ndarray, count: int, s: float, vertex: np.ndarray, first: int, last: int) -> int:
    """Cut the path at progress s and put a centre line behind the rest; returns its number of vertices.

    At its end the rest of a path is its last two vertices, so that an agent waiting there jumps back by one of them.
    """
    s = clamp_progress(path, count, s)
    i = first_after(path, count, s)
    if i == count:
        i = count - 1
        x, y, heading = path[i - 1, X], path[i - 1, Y], path[i - 1, HEADING]
    else:
        x, y, heading = pose_at(path, count, s)
    path[0, X], path[0, Y], path[0, HEADING] = x, y, heading
    for k in range(i, count):
        path[k - i + 1] = path[k]
    return _append_lane(path, count - i + 1, vertex, first, last)


@njit(cache=True, nogil=True)
def line_between(path: np.ndarray, count: int, start: float, end: float, line: np.ndarray) -> int:
    """Points of the path from progress `start` to `end` into line (count + 1, 2); returns their number.

    At either end of the path, where nothing is left between the two, it is the path's two vertices there.
    """
    first = first_after(path, count, start)
    if first == count:
        first, last = count - 2, count
    elif not path[0, PROGRESS] < end:
        first, last = 0, 2
    else:
        last = first
        line[0, 0], line[0, 1], _ = pose_at(path, count, start)
        size = 1
        while last < count and path[last, PROGRESS] < end:
            line[size, 0], line[size, 1] = path[last, X], path[last, Y]
            size += 1
            last += 1
        line[size, 0], line[size, 1], _ = pose_at(path, count, end)
        return size + 1
    for k in range(first, last):
        line[k - first, 0], line[k - first, 1] = path[k, X], path[k, Y]
    return 2


@njit(cache=True, nogil=True)
def line_after(path: np.ndarray, count: int, start: float, line: np.ndarray) -> int:
    """Points of the path from progress `start` on into line (count + 1, 2); its last two vertices at its end."""
    first = first_after(path, count, start)
    if first == count:
        first, size = count - 2, 0
    else:
        line[0, 0], line[0, 1], _ = pose_at(path, count, start)
        size = 1
    for k in range(first, count):
        line[size, 0], line[size, 1] = path[k, X], path[k, Y]
        size += 1
    return size
