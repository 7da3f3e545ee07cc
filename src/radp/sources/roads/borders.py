"""Lane borders, neighbours and the road's surface, where a source has only centres, painted lines and road edges.

Everything is read from rays that leave each lane's centre to both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import median_filter

from radp.geometry.lines import offset, resample, tangents
from radp.geometry.rays import Hits, Segments, nearest_hit, ray_hits, segments_of

SPACING = 1.5  # m between the points of a lane
HALF_WIDTH = 1.85  # m from centre to border where nothing tells
LEAST_HALF, MOST_HALF = 1.2, 2.6  # m; lines nearer or farther than this are not the border of the lane
BESIDE = 6.5  # m to the centre of a neighbouring lane, at most
LEAST_BESIDE = 2.2
PARALLEL = np.cos(np.radians(25.0))
SURFACE_REACH = 15.0  # m from a lane's centre to the edge of the road, at most
SHARE = 0.6  # of the points of both lanes that must see each other for neighbours
MEDIAN = 7  # points over which a border is smoothed


@dataclass(frozen=True)
class Sides:
    """L lanes, V points in all (rows by `first`). Side 0 = left, 1 = right; distances in metres along the normal."""

    points: np.ndarray  # (V, 2)
    first: np.ndarray  # (L+1,)
    border: np.ndarray  # (V, 2) distance to a parallel painted line or road edge; NaN = none
    edge: np.ndarray  # (V, 2) distance to the first road edge; infinite = none within reach
    beside: np.ndarray  # (V, 2) distance to the centre of the nearest parallel lane; infinite = none
    lane_beside: np.ndarray  # (V, 2) that lane if it runs in the same direction, else -1


def look_aside(centers: Sequence[np.ndarray], lines: Sequence[np.ndarray], edges: Sequence[np.ndarray]) -> Sides:
    """Rays from every point of every centre, resampled at 1.5 m."""
    rows = [resample(center, SPACING) for center in centers]
    first = np.concatenate(([0], np.cumsum([len(row) for row in rows])))
    points, along = np.concatenate(rows), np.concatenate([tangents(row) for row in rows])
    lane = np.repeat(np.arange(len(rows)), np.diff(first))
    normal = np.stack((-along[:, 1], along[:, 0]), axis=1)
    count = len(points)
    marks, ends, middles = segments_of([*lines, *edges]), segments_of(edges), segments_of(rows)
    border, edge, beside = np.full((count, 2), np.nan), np.full((count, 2), np.inf), np.full((count, 2), np.inf)
    lane_beside = np.full((count, 2), -1, dtype=np.int64)
    for side, direction in enumerate((normal, -normal)):
        hits = ray_hits(points, direction, MOST_HALF, marks)
        close = (np.abs(_cosine(hits, marks, along)) > PARALLEL) & (hits.distance >= LEAST_HALF)
        distance, _ = nearest_hit(hits, count, close)
        border[:, side] = np.where(np.isfinite(distance), distance, np.nan)
        edge[:, side], _ = nearest_hit(ray_hits(points, direction, SURFACE_REACH, ends), count)
        hits = ray_hits(points, direction, BESIDE, middles)
        cosine = _cosine(hits, middles, along)
        others = (middles.line[hits.segment] != lane[hits.ray]) & (hits.distance > LEAST_BESIDE)
        beside[:, side], segment = nearest_hit(hits, count, others & (np.abs(cosine) > PARALLEL))
        beside[beside[:, side] > edge[:, side], side] = np.inf  # beyond the end of the road
        same = (segment >= 0) & np.isfinite(beside[:, side])
        forward = (_direction(middles)[segment] * along).sum(axis=1) > 0
        lane_beside[:, side] = np.where(same & forward, middles.line[segment] if len(middles.line) else -1, -1)
    return Sides(points, first, border, edge, beside, lane_beside)


def _direction(segments: Segments) -> np.ndarray:
    if not len(segments.start):
        return np.zeros((1, 2))
    along = segments.end - segments.start
    return along / np.maximum(np.hypot(*along.T), 1e-9)[:, None]


def _cosine(hits: Hits, segments: Segments, along: np.ndarray) -> np.ndarray:
    """(H,) cosine between each segment met and the direction of the lane that the ray left."""
    return (_direction(segments)[hits.segment] * along[hits.ray]).sum(axis=1)


def borders_of(sides: Sides, lane: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Centre, left, right (P, 2) of a lane.

    Where no mark is seen the border lies in the middle between parallel lanes, else 1.85 m aside; then it is smoothed.
    """
    rows = slice(sides.first[lane], sides.first[lane + 1])
    center = sides.points[rows]
    halves = []
    for side in range(2):
        middle = np.clip(sides.beside[rows, side] / 2, LEAST_HALF, MOST_HALF)
        usual = np.where(np.isfinite(sides.beside[rows, side]), middle, HALF_WIDTH)
        usual = np.minimum(usual, np.maximum(sides.edge[rows, side], LEAST_HALF))
        half = np.where(np.isnan(sides.border[rows, side]), usual, sides.border[rows, side])
        halves.append(median_filter(half, size=min(MEDIAN, len(half)), mode="nearest"))
    return center, offset(center, halves[0]), offset(center, -halves[1])


def surface_of(sides: Sides, lane: int, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Ring of all that lies between the first road edges on both sides of a lane; the lane where there is no edge."""
    rows = slice(sides.first[lane], sides.first[lane + 1])
    center, rims = sides.points[rows], []
    for side, border in enumerate((left, right)):
        at_least = np.hypot(*(border - center).T)
        reach = np.where(np.isfinite(sides.edge[rows, side]), sides.edge[rows, side], at_least)
        normal = (border - center) / np.maximum(at_least, 1e-9)[:, None]
        rims.append(center + normal * np.maximum(reach, 0.0)[:, None])
    return np.concatenate((rims[0], rims[1][::-1]))


def neighbors_by_sight(sides: Sides, usable: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Left and right neighbour (L,) of each usable lane, -1 = none: lanes that see each other along 60% of both."""
    count = len(sides.first) - 1
    favourite = np.full((count, 2), -1, dtype=np.int64)
    for lane in np.flatnonzero(usable):
        rows = slice(sides.first[lane], sides.first[lane + 1])
        for side in range(2):
            names, times = np.unique(sides.lane_beside[rows, side], return_counts=True)
            best = int(np.argmax(times))
            if names[best] >= 0 and usable[names[best]] and times[best] >= SHARE * (rows.stop - rows.start):
                favourite[lane, side] = names[best]
    left, right = np.full(count, -1, dtype=np.int64), np.full(count, -1, dtype=np.int64)
    for i in range(count):
        other = int(favourite[i, 0])
        if other >= 0 and favourite[other, 1] == i:
            left[i], right[other] = other, i
    return left, right
