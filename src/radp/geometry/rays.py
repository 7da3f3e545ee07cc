"""Rays against many short segments: what lies beside a line, and how far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import shapely

MOST_AT_ONCE = 500_000_000  # pairs of rays and segments that one question may be about
MOST_PAIRS = 20_000_000  # whose boxes overlap; a junction of a city has 200,000


@dataclass(frozen=True)
class Segments:
    """S segments of K lines: start (S, 2), end (S, 2), line (S,) index of the line each belongs to."""

    start: np.ndarray
    end: np.ndarray
    line: np.ndarray

    @cached_property
    def tree(self) -> shapely.STRtree:
        """Their index in space, built when it is first asked for."""
        return shapely.STRtree(shapely.linestrings(np.stack((self.start, self.end), axis=1)))


class Hits(NamedTuple):
    """H meetings of rays and segments, by ray and then by distance."""

    ray: np.ndarray  # (H,)
    segment: np.ndarray  # (H,)
    distance: np.ndarray  # (H,) m


def segments_of(lines: Sequence[np.ndarray]) -> Segments:
    """K lines (P, 2) -> their segments."""
    some = [(k, line) for k, line in enumerate(lines) if len(line) > 1]
    if not some:
        return Segments(np.zeros((0, 2)), np.zeros((0, 2)), np.zeros(0, dtype=np.int64))
    return Segments(
        np.concatenate([line[:-1] for _, line in some]),
        np.concatenate([line[1:] for _, line in some]),
        np.concatenate([np.full(len(line) - 1, k) for k, line in some]),
    )


def ray_hits(origin: np.ndarray, direction: np.ndarray, reach: float, segments: Segments) -> Hits:
    """origin (R, 2), direction (R, 2) unit -> all meetings at distances 0..reach."""
    empty = Hits(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))
    if not len(segments.start) or not len(origin):
        return empty
    rays = shapely.linestrings(np.stack((origin, origin + reach * direction), axis=1))
    ray, segment = _candidates(rays, segments)
    along = segments.end[segment] - segments.start[segment]
    gap = segments.start[segment] - origin[ray]
    d = direction[ray]
    cross = d[:, 0] * along[:, 1] - d[:, 1] * along[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = (gap[:, 0] * along[:, 1] - gap[:, 1] * along[:, 0]) / cross
        part = (gap[:, 0] * d[:, 1] - gap[:, 1] * d[:, 0]) / cross
    meets = (np.abs(cross) > 1e-12) & (distance >= 0) & (distance <= reach) & (part >= 0) & (part <= 1)
    ray, segment, distance = ray[meets], segment[meets], distance[meets]
    order = np.lexsort((distance, ray))
    return Hits(ray[order], segment[order], distance[order])


def _candidates(rays: np.ndarray, segments: Segments) -> tuple[np.ndarray, np.ndarray]:
    """Pairs whose boxes overlap, asked for in parts, so that lines on top of each other do not fill the memory."""
    step = max(1, MOST_AT_ONCE // len(segments.start))
    found, total = [], 0
    for first in range(0, len(rays), step):
        ray, segment = segments.tree.query(rays[first : first + step])
        found.append((ray + first, segment))
        total += len(ray)
        if total > MOST_PAIRS:
            raise ValueError(f"more than {MOST_PAIRS} pairs of rays and segments lie on top of each other")
    return np.concatenate([ray for ray, _ in found]), np.concatenate([segment for _, segment in found])


def nearest_hit(hits: Hits, rays: int, keep: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Per ray (R,) the distance of its first meeting (infinite = none) and the segment met (-1); `keep` (H,) bool."""
    distance, segment = np.full(rays, np.inf), np.full(rays, -1, dtype=np.int64)
    chosen = np.flatnonzero(keep) if keep is not None else np.arange(len(hits.ray))
    ray, first = np.unique(hits.ray[chosen], return_index=True)
    distance[ray], segment[ray] = hits.distance[chosen[first]], hits.segment[chosen[first]]
    return distance, segment
