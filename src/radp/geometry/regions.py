"""Areas bounded by rings, compiled: do two share a point, and how far are they apart.

A ring is an (n, 2) array, not closed, of either direction; a point belongs to its area when the winding number is
not 0. Bounds are (4,): min x, min y, max x, max y.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def ring_bounds(ring: np.ndarray, bounds: np.ndarray) -> None:
    """Widen `bounds` so that they hold the ring."""
    for i in range(len(ring)):
        x, y = ring[i, 0], ring[i, 1]
        bounds[0], bounds[1] = min(bounds[0], x), min(bounds[1], y)
        bounds[2], bounds[3] = max(bounds[2], x), max(bounds[3], y)


@njit(cache=True, nogil=True, inline="always")
def bounds_gap(a: np.ndarray, b: np.ndarray) -> float:
    """Distance between two bounding boxes; 0 when they share a point."""
    dx = max(0.0, max(a[0] - b[2], b[0] - a[2]))
    dy = max(0.0, max(a[1] - b[3], b[1] - a[3]))
    return math.sqrt(dx * dx + dy * dy)


@njit(cache=True, nogil=True)
def winding_contains(ring: np.ndarray, x: float, y: float) -> bool:
    """Whether a point lies in the area of a ring (nonzero winding number)."""
    winding = 0
    j = len(ring) - 1
    for i in range(len(ring)):
        if (ring[j, 1] <= y) != (ring[i, 1] <= y):
            side = (ring[i, 0] - ring[j, 0]) * (y - ring[j, 1]) - (ring[i, 1] - ring[j, 1]) * (x - ring[j, 0])
            if ring[i, 1] > ring[j, 1]:
                winding += 1 if side > 0.0 else 0
            else:
                winding -= 1 if side < 0.0 else 0
        j = i
    return winding != 0


@njit(cache=True, nogil=True, inline="always")
def _point_segment_square(px: float, py: float, ax: float, ay: float, dx: float, dy: float, norm: float) -> float:
    """Squared distance from a point to the segment from a along d (squared length `norm`)."""
    t = 0.0 if norm == 0.0 else ((px - ax) * dx + (py - ay) * dy) / norm
    t = min(1.0, max(0.0, t))
    ex, ey = px - (ax + t * dx), py - (ay + t * dy)
    return ex * ex + ey * ey


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def ring_distance(a: np.ndarray, b: np.ndarray, limit: float) -> float:
    """Distance between the areas of two rings, 0 when they share a point; `limit` when they are further apart."""
    if len(a) == 0 or len(b) == 0:
        return limit
    bounds = np.array((np.inf, np.inf, -np.inf, -np.inf))
    ring_bounds(b, bounds)
    best = limit * limit
    i0 = len(a) - 1
    for i in range(len(a)):
        ax, ay, bx, by = a[i0, 0], a[i0, 1], a[i, 0], a[i, 1]
        i0 = i
        low_x, high_x, low_y, high_y = min(ax, bx), max(ax, bx), min(ay, by), max(ay, by)
        gx = max(0.0, max(low_x - bounds[2], bounds[0] - high_x))
        gy = max(0.0, max(low_y - bounds[3], bounds[1] - high_y))
        if gx * gx + gy * gy >= best:
            continue
        j0 = len(b) - 1
        for j in range(len(b)):
            cx, cy, dx, dy = b[j0, 0], b[j0, 1], b[j, 0], b[j, 1]
            j0 = j
            gx = max(0.0, max(low_x - max(cx, dx), min(cx, dx) - high_x))
            gy = max(0.0, max(low_y - max(cy, dy), min(cy, dy) - high_y))
            if gx * gx + gy * gy >= best:
                continue
            best = min(best, segments_square(ax, ay, bx, by, cx, cy, dx, dy))
            if best == 0.0:
                return 0.0
    if winding_contains(a, b[0, 0], b[0, 1]) or winding_contains(b, a[0, 0], a[0, 1]):
        return 0.0
    return math.sqrt(best)


@njit(cache=True, nogil=True)
def rings_touch(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether the areas of two rings share a point (touching within 1e-12 m counts)."""
    return ring_distance(a, b, 1e-12) < 1e-12


@njit(cache=True, nogil=True)
def ring_crosses_rectangle(
    ring: np.ndarray, x: float, y: float, ux: float, uy: float, length: float, half: float
) -> bool:
    """Whether a ring's line meets the rectangle from (x, y) along the unit direction u, `half` wide to both sides.

    The rectangle's border counts; a rectangle inside the ring's area is not met by the ring's line.
    """
    j = len(ring) - 1
    s0 = (ring[j, 0] - x) * ux + (ring[j, 1] - y) * uy
    d0 = (ring[j, 1] - y) * ux - (ring[j, 0] - x) * uy
    for i in range(len(ring)):
        s1 = (ring[i, 0] - x) * ux + (ring[i, 1] - y) * uy
        d1 = (ring[i, 1] - y) * ux - (ring[i, 0] - x) * uy
        if not (
            (s0 < 0.0 and s1 < 0.0)
            or (s0 > length and s1 > length)
            or (d0 < -half and d1 < -half)
            or (d0 > half and d1 > half)
        ) and _clips(s0, d0, s1, d1, length, half):
            return True
        s0, d0 = s1, d1
    return False


@njit(cache=True, nogil=True)
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
