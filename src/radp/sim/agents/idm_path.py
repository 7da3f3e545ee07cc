"""The path of a reactive agent: vertices with headings and progress, cut and prolonged as the agent drives.

A path is path[at : at + count] of an array (V, 4) with the columns x, y, heading (continuous, not wrapped) and
progress [m]; several paths share the array.
"""

from __future__ import annotations

import math

import numpy as np

from radp.geometry.compiled import kernel
from radp.geometry.kernels import wrap_angle

X, Y, HEADING, PROGRESS = 0, 1, 2, 3
SAME_VERTEX = 1e-8  # m


@kernel
def path_end(path: np.ndarray, at: int, count: int) -> float:
    """Progress of the last vertex."""
    return path[at + count - 1, PROGRESS]


@kernel
def clamp_progress(path: np.ndarray, at: int, count: int, s: float) -> float:
    return max(path[at, PROGRESS], min(s, path[at + count - 1, PROGRESS]))


@kernel
def first_after(path: np.ndarray, at: int, count: int, s: float) -> int:
    """How many vertices come before the first one with a progress greater than s; count when there is none."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if path[at + middle, PROGRESS] > s:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def pose_at(path: np.ndarray, at: int, count: int, s: float) -> tuple[float, float, float]:
    """x, y, heading (not wrapped) at progress s, which lies on the path."""
    i = at + min(max(first_after(path, at, count, s), 1), count - 1)
    t = (s - path[i - 1, PROGRESS]) / (path[i, PROGRESS] - path[i - 1, PROGRESS])
    return (
        path[i - 1, X] + t * (path[i, X] - path[i - 1, X]),
        path[i - 1, Y] + t * (path[i, Y] - path[i - 1, Y]),
        path[i - 1, HEADING] + t * (path[i, HEADING] - path[i - 1, HEADING]),
    )


@kernel
def _set_vertex(path: np.ndarray, i: int, x: float, y: float, heading: float, progress: float) -> None:
    path[i, X], path[i, Y], path[i, HEADING], path[i, PROGRESS] = x, y, heading, progress


@kernel
def _measure(path: np.ndarray, at: int, count: int) -> int:
    """Set progress and continuous headings of `count` vertices; returns how many of them are left.

    A vertex that coincides with its follower goes, and so does always the last one, unless fewer than two would remain.
    """
    kept, s, last = at, 0.0, at + count - 1
    end_x, end_y, end_heading = path[last, X], path[last, Y], path[last, HEADING]
    for i in range(at, last):
        x, y, heading = path[i, X], path[i, Y], path[i, HEADING]
        dx, dy = path[i + 1, X] - x, path[i + 1, Y] - y
        step = math.sqrt(dx * dx + dy * dy)
        if step > SAME_VERTEX:
            _set_vertex(path, kept, x, y, heading, s)
            kept += 1
        s += step
    if kept < at + 2:
        _set_vertex(path, kept, end_x, end_y, end_heading, s)
        kept += 1
    for i in range(at + 1, kept):
        path[i, HEADING] = path[i - 1, HEADING] + wrap_angle(path[i, HEADING] - path[i - 1, HEADING])
    return kept - at


@kernel
def start_path(path: np.ndarray, at: int, vertex: np.ndarray, first: int, last: int) -> int:
    """The path along the centre line vertex[first:last] (x, y, heading); returns its number of vertices."""
    for k in range(last - first):
        _set_vertex(path, at + k, vertex[first + k, 0], vertex[first + k, 1], vertex[first + k, 2], 0.0)
    return _measure(path, at, last - first)


@kernel
def prolong_path(path: np.ndarray, at: int, count: int, s: float, vertex: np.ndarray, first: int, last: int) -> int:
    """Cut the path at progress s and put a centre line behind the rest; returns its number of vertices.

    At its end the rest of a path is its last two vertices, so that an agent waiting there jumps back by one of them.
    """
    s = clamp_progress(path, at, count, s)
    cut = first_after(path, at, count, s)
    if cut == count:
        cut = count - 1
        x, y, heading = path[at + cut - 1, X], path[at + cut - 1, Y], path[at + cut - 1, HEADING]
    else:
        x, y, heading = pose_at(path, at, count, s)
    _set_vertex(path, at, x, y, heading, 0.0)
    size = 1
    for i in range(at + cut, at + count):
        _set_vertex(path, at + size, path[i, X], path[i, Y], path[i, HEADING], 0.0)
        size += 1
    for k in range(first, last):
        _set_vertex(path, at + size, vertex[k, 0], vertex[k, 1], vertex[k, 2], 0.0)
        size += 1
    return _measure(path, at, size)


@kernel
def line_between(path: np.ndarray, at: int, count: int, start: float, end: float, line: np.ndarray) -> int:
    """Points of the path from progress `start` to `end` into line (>= count + 1, 2); returns their number.

    Where the path ends before `start` or begins behind `end`, it is the two vertices at that end of the path.
    """
    i = first_after(path, at, count, start)
    if i == count or not path[at, PROGRESS] < end:
        i = count - 2 if i == count else 0
        for k in range(2):
            line[k, 0], line[k, 1] = path[at + i + k, X], path[at + i + k, Y]
        return 2
    line[0, 0], line[0, 1], _ = pose_at(path, at, count, start)
    size = 1
    while i < count and path[at + i, PROGRESS] < end:
        line[size, 0], line[size, 1] = path[at + i, X], path[at + i, Y]
        size, i = size + 1, i + 1
    line[size, 0], line[size, 1], _ = pose_at(path, at, count, end)
    return size + 1


@kernel
def line_after(path: np.ndarray, at: int, count: int, start: float, line: np.ndarray) -> int:
    """Points of the path from progress `start` on into line (>= count + 1, 2); at its end its last two vertices."""
    i, size = first_after(path, at, count, start), 0
    if i == count:
        i = count - 2
    else:
        line[0, 0], line[0, 1], _ = pose_at(path, at, count, start)
        size = 1
    for k in range(at + i, at + count):
        line[size, 0], line[size, 1] = path[k, X], path[k, Y]
        size += 1
    return size
