"""The area swept by driving along a line: a line widened to both sides, with flat ends and round joints, as one ring.

The ring is what GEOS (and so shapely's `buffer` with flat caps and 16 segments per quadrant) makes of the line: joints
on the outer side of a bend are arcs of chords of about pi/32, borders on the inner side meet where they cross.
Distances to it therefore agree with shapely to rounding. Where inner borders miss each other the ring crosses itself;
everything with a winding number other than 0 belongs to the area.
"""

from __future__ import annotations

import math

import numpy as np

from radp.geometry.compiled import kernel
from radp.geometry.regions import (
    ring_bounds,
    ring_comes_within,
    ring_crosses_rectangle,
    rings_touch,
    winding_contains,
)

ARC_STEP = math.pi / 32  # angle of one chord of a round joint
SAME_CORNER = 1e-3  # joints whose two corners are closer than this part of the half width get one corner
SPIKE = 80.0  # where inner borders miss each other, the ring turns back by 1/81 of the way to the line


@kernel
def _push(ring: np.ndarray, size: int, x: float, y: float) -> int:
    if size < len(ring):
        ring[size, 0], ring[size, 1] = x, y
    return size + 1


@kernel
def outer_joint(ring: np.ndarray, size: int, x: float, y: float, ax: float, ay: float, bx: float, by: float) -> int:
    """Append the round joint about (x, y), clockwise from corner a to corner b; returns the new size."""
    half = math.hypot(ax - x, ay - y)
    if math.hypot(bx - ax, by - ay) < half * SAME_CORNER:
        return _push(ring, size, ax, ay)
    start, end = math.atan2(ay - y, ax - x), math.atan2(by - y, bx - x)
    if start <= end:
        start += 2.0 * math.pi
    pieces = int((start - end) / ARC_STEP + 0.5)
    size = _push(ring, size, ax, ay)
    for i in range(1, pieces):
        angle = start - i * (start - end) / pieces
        size = _push(ring, size, x + half * math.cos(angle), y + half * math.sin(angle))
    return _push(ring, size, bx, by)


@kernel
def _inner_joint(
    ring: np.ndarray, size: int, x: float, y: float, ax: float, ay: float, bx: float, by: float,
    ux: float, uy: float, ul: float, wx: float, wy: float, wl: float,
) -> int:  # fmt: skip
    """Joint about (x, y) where the border ending in a (direction u, length ul) meets the one starting in b (w, wl)."""
    cross = ux * wy - uy * wx
    back = ((bx - ax) * wy - (by - ay) * wx) / cross  # along u from a
    ahead = ((bx - ax) * uy - (by - ay) * ux) / cross  # along w from b
    if -ul <= back <= 0.0 and 0.0 <= ahead <= wl:
        return _push(ring, size, ax + back * ux, ay + back * uy)
    if math.hypot(bx - ax, by - ay) < math.hypot(ax - x, ay - y) * SAME_CORNER:
        return _push(ring, size, ax, ay)
    size = _push(ring, size, ax, ay)
    size = _push(ring, size, (SPIKE * ax + x) / (SPIKE + 1.0), (SPIKE * ay + y) / (SPIKE + 1.0))
    size = _push(ring, size, (SPIKE * bx + x) / (SPIKE + 1.0), (SPIKE * by + y) / (SPIKE + 1.0))
    return _push(ring, size, bx, by)


@kernel
def _left_border(line: np.ndarray, count: int, half: float, backwards: bool, ring: np.ndarray, size: int) -> int:
    """Append the left border of a line (of the reversed line when `backwards`) and the two corners of its end."""
    started = False
    first = count - 1 if backwards else 0
    px, py = line[first, 0], line[first, 1]
    ux = uy = ul = 0.0
    for k in range(1, count):
        i = count - 1 - k if backwards else k
        x, y = line[i, 0], line[i, 1]
        length = math.hypot(x - px, y - py)
        if length == 0.0:
            continue
        wx, wy = (x - px) / length, (y - py) / length
        bx, by = px - half * wy, py + half * wx
        if not started:
            size = _push(ring, size, bx, by)
            started = True
        else:
            bend = ux * wy - uy * wx
            ax, ay = px - half * uy, py + half * ux
            if bend > 0.0:
                size = _inner_joint(ring, size, px, py, ax, ay, bx, by, ux, uy, ul, wx, wy, length)
            elif bend < 0.0 or ux * wx + uy * wy < 0.0:
                size = outer_joint(ring, size, px, py, ax, ay, bx, by)
        px, py, ux, uy, ul = x, y, wx, wy, length
    if started:
        size = _push(ring, size, px - half * uy, py + half * ux)
        size = _push(ring, size, px + half * uy, py - half * ux)
    return size


@kernel
def strip_ring(line: np.ndarray, count: int, half: float, ring: np.ndarray) -> int:
    """Ring (clockwise, not closed) of line[:count] widened by `half` to both sides, into ring (R, 2); returns its size.

    A size larger than R says that it did not fit; 0 that the line has no length.
    """
    size = _left_border(line, count, half, False, ring, 0)
    return _left_border(line, count, half, True, ring, size)


@kernel
def line_segments(line: np.ndarray, count: int, half: float, segment: np.ndarray) -> int:
    """Segments of line[:count] into segment (count - 1, 9); returns their number, those without length left out.

    Columns: start x, y, unit direction x, y, length; bounds (min x, min y, max x, max y) of all within `half` of it.
    """
    size = 0
    for i in range(count - 1):
        ax, ay, bx, by = line[i, 0], line[i, 1], line[i + 1, 0], line[i + 1, 1]
        length = math.sqrt((bx - ax) * (bx - ax) + (by - ay) * (by - ay))
        if length > 0.0:
            segment[size, 0], segment[size, 1], segment[size, 4] = ax, ay, length
            segment[size, 2], segment[size, 3] = (bx - ax) / length, (by - ay) / length
            segment[size, 5], segment[size, 6] = min(ax, bx) - half, min(ay, by) - half
            segment[size, 7], segment[size, 8] = max(ax, bx) + half, max(ay, by) + half
            size += 1
    return size


@kernel
def strip_meets_ring(
    segment: np.ndarray, count: int, half: float, points: np.ndarray, first: int, last: int, joint: np.ndarray
) -> bool:
    """Whether the strip of a line, given as segment[:count], shares a point with the area of points[first:last].

    The same answer as with `strip_ring`, without making it: a strip is its segments' rectangles and its outer joints.
    joint (>= 70, 2) is scratch space.
    """
    low_x, low_y, high_x, high_y = ring_bounds(points, first, last)
    near = False
    for k in range(count):
        if segment[k, 5] <= high_x and segment[k, 7] >= low_x and segment[k, 6] <= high_y and segment[k, 8] >= low_y:
            near = True
            x, y, ux, uy, length = segment[k, 0], segment[k, 1], segment[k, 2], segment[k, 3], segment[k, 4]
            if ring_crosses_rectangle(points, first, last, x, y, ux, uy, length, half):
                return True
    if not near:
        return False
    for k in range(1, count):
        x, y = segment[k, 0], segment[k, 1]
        if (
            (x - half <= high_x and x + half >= low_x and y - half <= high_y and y + half >= low_y)
            and _bends(segment, k)
            and ring_comes_within(points, first, last, x, y, half)
            and rings_touch(joint, 0, _joint_ring(segment, k, half, joint), points, first, last)
        ):
            return True
    return winding_contains(points, first, last, segment[0, 0], segment[0, 1])


@kernel
def _bends(segment: np.ndarray, k: int) -> bool:
    """Whether there is a joint to speak of between the segments k - 1 and k."""
    ux, uy, wx, wy = segment[k - 1, 2], segment[k - 1, 3], segment[k, 2], segment[k, 3]
    return abs(ux * wy - uy * wx) >= SAME_CORNER or ux * wx + uy * wy < 0.0


@kernel
def _joint_ring(segment: np.ndarray, k: int, half: float, joint: np.ndarray) -> int:
    """The fan between the segments k - 1 and k on the outer side of their bend; returns its number of points."""
    x, y = segment[k, 0], segment[k, 1]
    ux, uy, wx, wy = segment[k - 1, 2], segment[k - 1, 3], segment[k, 2], segment[k, 3]
    joint[0, 0], joint[0, 1] = x, y
    if ux * wy - uy * wx <= 0.0:
        return outer_joint(joint, 1, x, y, x - half * uy, y + half * ux, x - half * wy, y + half * wx)
    return outer_joint(joint, 1, x, y, x + half * wy, y - half * wx, x + half * uy, y - half * ux)
