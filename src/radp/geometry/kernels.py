"""Scalar geometry compiled with numba: what the simulator, the agents and the metrics call in their inner loops.

Conventions: points are rows (x, y) of float64 arrays; a box is (centre x, centre y, heading, length, width);
corners come front-left, rear-left, rear-right, front-right; polygons are rings that are not closed.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True, inline="always")
def wrap_angle(angle: float) -> float:
    """Wrap to [-pi, pi)."""
    return (angle + math.pi) % (2.0 * math.pi) - math.pi


@njit(cache=True)
def box_corners(x: float, y: float, heading: float, length: float, width: float, out: np.ndarray) -> None:
    """Write the (4, 2) corners of a box into `out`."""
    c, s = math.cos(heading), math.sin(heading)
    fx, fy, lx, ly = c * length / 2.0, s * length / 2.0, -s * width / 2.0, c * width / 2.0
    out[0, 0], out[0, 1] = x + fx + lx, y + fy + ly
    out[1, 0], out[1, 1] = x - fx + lx, y - fy + ly
    out[2, 0], out[2, 1] = x - fx - lx, y - fy - ly
    out[3, 0], out[3, 1] = x + fx - lx, y + fy - ly


@njit(cache=True)
def quads_intersect(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two convex quadrilaterals (4, 2) share a point; touching counts (separating axes)."""
    for k in range(2):
        p, q = (a, b) if k == 0 else (b, a)
        for i in range(4):
            j = (i + 1) % 4
            nx, ny = p[j, 1] - p[i, 1], p[i, 0] - p[j, 0]
            p_min = q_min = np.inf
            p_max = q_max = -np.inf
            for m in range(4):
                dp = nx * p[m, 0] + ny * p[m, 1]
                dq = nx * q[m, 0] + ny * q[m, 1]
                p_min, p_max = min(p_min, dp), max(p_max, dp)
                q_min, q_max = min(q_min, dq), max(q_max, dq)
            if p_max < q_min or q_max < p_min:
                return False
    return True


@njit(cache=True, inline="always")
def point_segment_distance(px: float, py: float, ax: float, ay: float, bx: float, by: float) -> float:
    """Distance from a point to a segment."""
    dx, dy = bx - ax, by - ay
    norm = dx * dx + dy * dy
    t = 0.0 if norm == 0.0 else ((px - ax) * dx + (py - ay) * dy) / norm
    t = min(1.0, max(0.0, t))
    return math.hypot(px - (ax + t * dx), py - (ay + t * dy))


@njit(cache=True)
def quad_distance(a: np.ndarray, b: np.ndarray) -> float:
    """Distance between two convex quadrilaterals (4, 2); 0 when they share a point."""
    if quads_intersect(a, b):
        return 0.0
    best = np.inf
    for i in range(4):
        for j in range(4):
            k = (j + 1) % 4
            best = min(best, point_segment_distance(a[i, 0], a[i, 1], b[j, 0], b[j, 1], b[k, 0], b[k, 1]))
            best = min(best, point_segment_distance(b[i, 0], b[i, 1], a[j, 0], a[j, 1], a[k, 0], a[k, 1]))
    return best


@njit(cache=True, inline="always")
def _side(ax: float, ay: float, bx: float, by: float, px: float, py: float) -> float:
    return (bx - ax) * (py - ay) - (by - ay) * (px - ax)


@njit(cache=True)
def segment_intersects_quad(ax: float, ay: float, bx: float, by: float, quad: np.ndarray) -> bool:
    """Whether a segment shares a point with a convex quadrilateral (4, 2); touching counts."""
    # Separating axes of a segment and a convex polygon: the segment's normal and the polygon's edge normals.
    low, high = np.inf, -np.inf
    for m in range(4):
        side = _side(ax, ay, bx, by, quad[m, 0], quad[m, 1])
        low, high = min(low, side), max(high, side)
    if low > 0.0 or high < 0.0:
        return False
    for i in range(4):
        j = (i + 1) % 4
        nx, ny = quad[j, 1] - quad[i, 1], quad[i, 0] - quad[j, 0]
        da, db = nx * ax + ny * ay, nx * bx + ny * by
        q_min, q_max = np.inf, -np.inf
        for m in range(4):
            d = nx * quad[m, 0] + ny * quad[m, 1]
            q_min, q_max = min(q_min, d), max(q_max, d)
        if max(da, db) < q_min or q_max < min(da, db):
            return False
    return True


@njit(cache=True, inline="always")
def _edge_side(x: float, y: float, ax: float, ay: float, bx: float, by: float) -> int:
    """What an edge says of a point: 1 = the ray from it towards +x crosses the edge, -1 = it is on the edge, else 0."""
    if (ay > y and by > y) or (ay < y and by < y):  # most edges: wholly above or below the point
        return 0
    cross = _side(ax, ay, bx, by, x, y)
    if cross == 0.0 and min(ax, bx) <= x <= max(ax, bx) and min(ay, by) <= y <= max(ay, by):
        return -1
    return 1 if (ay > y) != (by > y) and (cross > 0.0) == (by > ay) else 0


@njit(cache=True)
def point_in_rings(x: float, y: float, points: np.ndarray, ring_offsets: np.ndarray, first: int, last: int) -> bool:
    """Whether a point lies strictly inside the area made of rings first..last-1 (even-odd; the border is outside)."""
    inside = False
    for r in range(first, last):
        lo, hi = ring_offsets[r], ring_offsets[r + 1]
        if hi == lo:
            continue
        bx, by = points[hi - 1, 0], points[hi - 1, 1]
        for i in range(lo, hi):
            ax, ay = points[i, 0], points[i, 1]
            side = _edge_side(x, y, ax, ay, bx, by)
            if side < 0:
                return False
            if side > 0:
                inside = not inside
            bx, by = ax, ay
    return inside


@njit(cache=True)
def edges_for_points(
    x_min: float, y_min: float, y_max: float, points: np.ndarray, lo: int, hi: int, edges: np.ndarray, used: int
) -> int:
    """Write the edges of the ring points[lo:hi] that matter to points right of x_min and between y_min and y_max.

    edges (E, 4): ax, ay, bx, by from row `used` on; returns the new number of rows. For `point_in_edges`.
    """
    if hi == lo:
        return used
    bx, by = points[hi - 1, 0], points[hi - 1, 1]
    for i in range(lo, hi):
        ax, ay = points[i, 0], points[i, 1]
        if max(ax, bx) >= x_min and max(ay, by) >= y_min and min(ay, by) <= y_max:
            edges[used, 0], edges[used, 1], edges[used, 2], edges[used, 3] = ax, ay, bx, by
            used += 1
        bx, by = ax, ay
    return used


@njit(cache=True)
def point_in_edges(x: float, y: float, edges: np.ndarray, count: int) -> bool:
    """As `point_in_rings`, for the first `count` edges (E, 4) gathered by `edges_for_points`."""
    inside = False
    for i in range(count):
        side = _edge_side(x, y, edges[i, 0], edges[i, 1], edges[i, 2], edges[i, 3])
        if side < 0:
            return False
        if side > 0:
            inside = not inside
    return inside


@njit(cache=True)
def point_in_area(
    x: float,
    y: float,
    i: int,
    points: np.ndarray,
    ring_offsets: np.ndarray,
    offsets: np.ndarray,
    bounds: np.ndarray,
) -> bool:
    """Whether a point lies strictly inside area i of a `Polygons` (its arrays are the last four arguments)."""
    if x < bounds[i, 0] or y < bounds[i, 1] or x > bounds[i, 2] or y > bounds[i, 3]:
        return False
    return point_in_rings(x, y, points, ring_offsets, offsets[i], offsets[i + 1])


@njit(cache=True)
def distance_to_rings(x: float, y: float, points: np.ndarray, ring_offsets: np.ndarray, first: int, last: int) -> float:
    """Distance from a point to the area of rings first..last-1; 0 inside, infinite when there is no ring."""
    if point_in_rings(x, y, points, ring_offsets, first, last):
        return 0.0
    best = np.inf
    for r in range(first, last):
        lo, hi = ring_offsets[r], ring_offsets[r + 1]
        j = hi - 1
        for i in range(lo, hi):
            best = min(best, point_segment_distance(x, y, points[i, 0], points[i, 1], points[j, 0], points[j, 1]))
            j = i
    return best


@njit(cache=True)
def project_on_line(x: float, y: float, points: np.ndarray, first: int, last: int) -> float:
    """Arc length of the point of the polyline points[first:last] nearest to (x, y); the first one among equals."""
    best, best_s, s = np.inf, 0.0, 0.0
    for i in range(first, last - 1):
        ax, ay = points[i, 0], points[i, 1]
        dx, dy = points[i + 1, 0] - ax, points[i + 1, 1] - ay
        norm = dx * dx + dy * dy
        length = math.sqrt(norm)
        t = 0.0 if norm == 0.0 else ((x - ax) * dx + (y - ay) * dy) / norm
        t = min(1.0, max(0.0, t))
        gx, gy = x - (ax + t * dx), y - (ay + t * dy)
        gap = gx * gx + gy * gy
        if gap < best:
            best, best_s = gap, s + t * length
        s += length
    return best_s


@njit(cache=True)
def line_length(points: np.ndarray, first: int, last: int) -> float:
    """Length of the polyline points[first:last]."""
    s = 0.0
    for i in range(first, last - 1):
        s += math.hypot(points[i + 1, 0] - points[i, 0], points[i + 1, 1] - points[i, 1])
    return s


@njit(cache=True)
def point_on_line(s: float, points: np.ndarray, first: int, last: int) -> tuple[float, float]:
    """Point of the polyline points[first:last] at arc length s, held at both ends."""
    if s <= 0.0:
        return points[first, 0], points[first, 1]
    for i in range(first, last - 1):
        length = math.hypot(points[i + 1, 0] - points[i, 0], points[i + 1, 1] - points[i, 1])
        if s <= length and length > 0.0:
            t = s / length
            return (
                points[i, 0] + t * (points[i + 1, 0] - points[i, 0]),
                points[i, 1] + t * (points[i + 1, 1] - points[i, 1]),
            )
        s -= length
    return points[last - 1, 0], points[last - 1, 1]
