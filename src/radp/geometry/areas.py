"""Areas as plain arrays for kernels: which of them hold a point, and how far away they are."""

# ruff: noqa: SIM110 - kernels cannot hold the generators that any() and all() want

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from radp.geometry.compiled import kernel_array
from radp.geometry.kernels import distance_to_rings, edges_for_points, point_in_area, point_in_edges
from radp.geometry.ragged import Polygons
from radp.geometry.regions import ring_bounds

CHUNK = 16  # neighbouring points that share the areas and edges near them


class AreaArrays(NamedTuple):
    """The arrays of a `Polygons`: N areas as points (V, 2), ring_offsets (R+1,), offsets (N+1,), bounds (N, 4)."""

    points: np.ndarray
    ring_offsets: np.ndarray
    offsets: np.ndarray
    bounds: np.ndarray


class Rows(NamedTuple):
    """N rows of indices: row i is members[start[i] : start[i] + size[i]]."""

    start: np.ndarray  # (N,) int64
    size: np.ndarray  # (N,) int64
    members: np.ndarray  # int64

    def row(self, i: int) -> np.ndarray:
        return self.members[self.start[i] : self.start[i] + self.size[i]]


def area_arrays(polygons: Polygons) -> AreaArrays:
    """The arrays of some polygons."""
    rings = polygons.rings
    return AreaArrays(
        kernel_array(rings.values),
        kernel_array(rings.offsets, np.int64),
        kernel_array(polygons.offsets, np.int64),
        kernel_array(polygons.bounds),
    )


@njit(cache=True, nogil=True)
def in_any_area(x: float, y: float, areas: AreaArrays) -> bool:
    """Whether a point lies strictly inside one of the areas."""
    points, ring_offsets, offsets, bounds = areas.points, areas.ring_offsets, areas.offsets, areas.bounds
    for i in range(len(bounds)):
        if point_in_area(x, y, i, points, ring_offsets, offsets, bounds):
            return True
    return False


@njit(cache=True, nogil=True)
def distance_to_area(x: float, y: float, i: int, areas: AreaArrays) -> float:
    """Distance from a point to area i, 0 inside."""
    return distance_to_rings(x, y, areas.points, areas.ring_offsets, areas.offsets[i], areas.offsets[i + 1])


@njit(cache=True, nogil=True)
def bounds_square(x: float, y: float, i: int, bounds: np.ndarray) -> float:
    """Squared distance from a point to the bounds (N, 4) of area i, 0 inside: the area itself is no nearer."""
    dx = max(bounds[i, 0] - x, 0.0, x - bounds[i, 2])
    dy = max(bounds[i, 1] - y, 0.0, y - bounds[i, 3])
    return dx * dx + dy * dy


def areas_at(points: np.ndarray, areas: AreaArrays, chunk: int = CHUNK) -> Rows:
    """For each point (P, 2) the areas that contain it strictly, in their order. Neighbouring points should be near.

    Points go in chunks: areas far from all points of a chunk are left out, and so are edges that cannot matter to them.
    """
    return _areas_at(points, areas, chunk)


@njit(cache=True, nogil=True)
def _areas_at(points: np.ndarray, areas: AreaArrays, chunk: int) -> Rows:
    vertices, ring_offsets, offsets, bounds = areas.points, areas.ring_offsets, areas.offsets, areas.bounds
    count = len(points)
    start, size = np.zeros(count, np.int64), np.zeros(count, np.int64)
    members, used = np.empty(2 * count + 16, np.int64), 0
    near, edges = np.empty(len(bounds), np.int64), np.empty((64, 4))
    inside = np.empty((len(bounds), chunk), np.bool_)
    for first in range(0, count, chunk):
        last = min(first + chunk, count)
        x_min, y_min, x_max, y_max = ring_bounds(points, first, last)
        nearby = 0
        for j in range(len(bounds)):
            if bounds[j, 0] > x_max or bounds[j, 2] < x_min or bounds[j, 1] > y_max or bounds[j, 3] < y_min:
                continue
            most = ring_offsets[offsets[j + 1]] - ring_offsets[offsets[j]]
            if most > len(edges):
                edges = np.empty((2 * most, 4))
            kept = 0
            for r in range(offsets[j], offsets[j + 1]):
                kept = edges_for_points(
                    x_min, y_min, y_max, vertices, ring_offsets[r], ring_offsets[r + 1], edges, kept
                )
            for i in range(first, last):
                x, y = points[i, 0], points[i, 1]
                within = bounds[j, 0] <= x <= bounds[j, 2] and bounds[j, 1] <= y <= bounds[j, 3]
                inside[nearby, i - first] = within and point_in_edges(x, y, edges, kept)
            near[nearby] = j
            nearby += 1
        for i in range(first, last):
            start[i] = used
            for k in range(nearby):
                if inside[k, i - first]:
                    members = room_for(members, used, 1)
                    members[used] = near[k]
                    used += 1
            size[i] = used - start[i]
    return Rows(start, size, members)


@njit(cache=True, nogil=True)
def room_for(members: np.ndarray, used: int, more: int) -> np.ndarray:
    """`members`, grown where it cannot hold `more` entries beyond the first `used`."""
    if used + more <= len(members):
        return members
    grown = np.empty(2 * (used + more), np.int64)
    grown[:used] = members[:used]
    return grown


@njit(cache=True, nogil=True)
def areas_near(x: float, y: float, areas: AreaArrays, reach: float) -> np.ndarray:
    """(n,) the areas within `reach` of a point, in their order."""
    near, count = np.empty(len(areas.bounds), np.int64), 0
    for i in range(len(areas.bounds)):
        if bounds_square(x, y, i, areas.bounds) <= reach * reach and distance_to_area(x, y, i, areas) <= reach:
            near[count] = i
            count += 1
    return near[:count]


@njit(cache=True, nogil=True)
def nearest_area(x: float, y: float, areas: AreaArrays) -> tuple[int, float]:
    """The area nearest to a point (among equals the one of the nearer bounds) and its distance; -1, inf: none."""
    nearest, best, best_square = -1, np.inf, np.inf
    for i in range(len(areas.bounds)):
        square = bounds_square(x, y, i, areas.bounds)
        if square > best * best:
            continue
        distance = distance_to_area(x, y, i, areas)
        if distance < best or (distance == best and square < best_square):
            nearest, best, best_square = i, distance, square
    return nearest, best
