"""Areas bounded by rings, compiled: do two share a point, and how far are they apart.

A ring is points[first:last] of an (n, 2) array, not closed, of either direction; a point belongs to its area when the
winding number is not 0. Rows of whole arrays are passed instead of slices, which cost more than the arithmetic here.
"""

from __future__ import annotations

import math

import numpy as np

from radp.geometry.compiled import kernel


@kernel
def ring_bounds(points: np.ndarray, first: int, last: int) -> tuple[float, float, float, float]:
    """Min x, min y, max x, max y of a ring; inverted and infinite for an empty one."""
    low_x = low_y = np.inf
    high_x = high_y = -np.inf
    for i in range(first, last):
        x, y = points[i, 0], points[i, 1]
        low_x, high_x, low_y, high_y = min(low_x, x), max(high_x, x), min(low_y, y), max(high_y, y)
    return low_x, low_y, high_x, high_y


@kernel
def bounds_gap(a: np.ndarray, i: int, b: np.ndarray, j: int) -> float:
    """Distance between the bounds a[i] and b[j] of arrays (n, 4); 0 when they share a point."""
    dx = max(0.0, max(a[i, 0] - b[j, 2], b[j, 0] - a[i, 2]))
    dy = max(0.0, max(a[i, 1] - b[j, 3], b[j, 1] - a[i, 3]))
    return math.sqrt(dx * dx + dy * dy)


@kernel
def winding_contains(points: np.ndarray, first: int, last: int, x: float, y: float) -> bool:
    """Whether a point lies in the area of a ring (nonzero winding number)."""
    winding = 0
    ax, ay = points[last - 1, 0], points[last - 1, 1]
    for i in range(first, last):
        bx, by = points[i, 0], points[i, 1]
        if (ay <= y) != (by <= y):
            side = (bx - ax) * (y - ay) - (by - ay) * (x - ax)
            if by > ay:
                winding += 1 if side > 0.0 else 0
            else:
                winding -= 1 if side < 0.0 else 0
        ax, ay = bx, by
    return winding != 0


@kernel
def _point_segment_square(px: float, py: float, ax: float, ay: float, dx: float, dy: float, norm: float) -> float:
    """Squared distance from a point to the segment from a along d (squared length `norm`)."""
    t = 0.0 if norm == 0.0 else ((px - ax) * dx + (py - ay) * dy) / norm
    t = min(1.0, max(0.0, t))
    ex, ey = px - (ax + t * dx), py - (ay + t * dy)
    return ex * ex + ey * ey


@kernel
def segments_square(ax: float, ay: float, bx: float, by: float, cx: float, cy: float, dx: float, dy: float) -> float:
    """Squared distance between the segments a-b and c-d; 0 when they share a point."""
    ux, uy, wx, wy = bx - ax, by - ay, dx - cx, dy - cy
    c_side, d_side = ux * (cy - ay) - uy * (cx - ax), ux * (dy - ay) - uy * (dx - ax)
    a_side, b_side = wx * (ay - cy) - wy * (ax - cx), wx * (by - cy) - wy * (bx - cx)
    if ((c_side > 0.0) != (d_side > 0.0)) and ((a_side > 0.0) != (b_side > 0.0)):
        return 0.0
    un, wn = ux * ux + uy * uy, wx * wx + wy * wy
    best = _point_segment_square(ax, ay, cx, cy, wx, wy, wn)
    best = min(best, _point_segment_square(bx, by, cx, cy, wx, wy, wn))
    best = min(best, _point_segment_square(cx, cy, ax, ay, ux, uy, un))
    return min(best, _point_segment_square(dx, dy, ax, ay, ux, uy, un))


@kernel
def ring_distance(
    a: np.ndarray, a_first: int, a_last: int, b: np.ndarray, b_first: int, b_last: int, limit: float
) -> float:
    """Distance between the areas of two rings, 0 when they share a point; `limit` when they are further apart."""
    if a_first == a_last or b_first == b_last:
        return limit
    b_low_x, b_low_y, b_high_x, b_high_y = ring_bounds(b, b_first, b_last)
    best = limit * limit
    ax, ay = a[a_last - 1, 0], a[a_last - 1, 1]
    for i in range(a_first, a_last):
        bx, by = a[i, 0], a[i, 1]
        low_x, high_x, low_y, high_y = min(ax, bx), max(ax, bx), min(ay, by), max(ay, by)
        gx = max(0.0, max(low_x - b_high_x, b_low_x - high_x))
        gy = max(0.0, max(low_y - b_high_y, b_low_y - high_y))
        if gx * gx + gy * gy < best:
            cx, cy = b[b_last - 1, 0], b[b_last - 1, 1]
            for j in range(b_first, b_last):
                dx, dy = b[j, 0], b[j, 1]
                gx = max(0.0, max(low_x - max(cx, dx), min(cx, dx) - high_x))
                gy = max(0.0, max(low_y - max(cy, dy), min(cy, dy) - high_y))
                if gx * gx + gy * gy < best:
                    best = min(best, segments_square(ax, ay, bx, by, cx, cy, dx, dy))
                cx, cy = dx, dy
            if best == 0.0:
                return 0.0
        ax, ay = bx, by
    if winding_contains(a, a_first, a_last, b[b_first, 0], b[b_first, 1]):
        return 0.0
    if winding_contains(b, b_first, b_last, a[a_first, 0], a[a_first, 1]):
        return 0.0
    return math.sqrt(best)


@kernel
def rings_touch(a: np.ndarray, a_first: int, a_last: int, b: np.ndarray, b_first: int, b_last: int) -> bool:
    """Whether the areas of two rings share a point (touching within 1e-12 m counts)."""
    return ring_distance(a, a_first, a_last, b, b_first, b_last, 1e-12) < 1e-12


@kernel
def ring_comes_within(points: np.ndarray, first: int, last: int, x: float, y: float, reach: float) -> bool:
    """Whether a ring's line comes within `reach` of a point."""
    ax, ay = points[last - 1, 0], points[last - 1, 1]
    for i in range(first, last):
        dx, dy = points[i, 0] - ax, points[i, 1] - ay
        if _point_segment_square(x, y, ax, ay, dx, dy, dx * dx + dy * dy) <= reach * reach:
            return True
        ax, ay = points[i, 0], points[i, 1]
    return False


@kernel
def ring_crosses_rectangle(
    points: np.ndarray, first: int, last: int, x: float, y: float, ux: float, uy: float, length: float, half: float
) -> bool:
    """Whether a ring's line meets the rectangle from (x, y) along the unit direction u, `half` wide to both sides.

    The rectangle's border counts; a rectangle inside the ring's area is not met by the ring's line.
    """
    dx, dy = points[last - 1, 0] - x, points[last - 1, 1] - y
    s0, d0 = dx * ux + dy * uy, dy * ux - dx * uy
    for i in range(first, last):
        dx, dy = points[i, 0] - x, points[i, 1] - y
        s1, d1 = dx * ux + dy * uy, dy * ux - dx * uy
        if (
            max(s0, s1) >= 0.0
            and min(s0, s1) <= length
            and max(d0, d1) >= -half
            and min(d0, d1) <= half
            and _clips(s0, d0, s1, d1, length, half)
        ):
            return True
        s0, d0 = s1, d1
    return False


@kernel
def _clips(s0: float, d0: float, s1: float, d1: float, length: float, half: float) -> bool:
    """Whether the segment (s0, d0)-(s1, d1) meets [0, length] x [-half, half], by clipping."""
    low, high = 0.0, 1.0
    ds, dd = s1 - s0, d1 - d0
    if ds != 0.0:
        t0, t1 = -s0 / ds, (length - s0) / ds
        low, high = max(low, min(t0, t1)), min(high, max(t0, t1))
    elif s0 < 0.0 or s0 > length:
        return False
    if dd != 0.0:
        t0, t1 = (-half - d0) / dd, (half - d0) / dd
        low, high = max(low, min(t0, t1)), min(high, max(t0, t1))
    elif d0 < -half or d0 > half:
        return False
    return low <= high
