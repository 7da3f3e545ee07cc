"""What the published feature builders ask a map: which objects meet a square, how far they are, their lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce

import numpy as np
import shapely

from radp.geometry.ragged import Polygons
from radp.road.map_memory import remember
from radp.road.road_map import RoadMap


@dataclass(frozen=True)
class Shapes:
    """Geometries of a map as shapely has them, in the map's order."""

    lanes: np.ndarray  # (L,) polygons
    lines: np.ndarray  # (L,) centre lines
    roadblocks: np.ndarray
    stop_lines: np.ndarray
    crosswalks: np.ndarray
    length: np.ndarray  # (L,) m of centre line


def shapes_of(road: RoadMap) -> Shapes:
    """Made once for each map."""

    def make() -> Shapes:
        lines = np.array([shapely.LineString(line) for line in road.centerlines], dtype=object)
        areas = (road.lane_polygons, road.roadblocks.polygons, road.stop_lines.polygons, road.crosswalks.polygons)
        lanes, blocks, stops, crosswalks = (_polygons(area) for area in areas)
        return Shapes(lanes, lines, blocks, stops, crosswalks, shapely.length(lines))

    return remember(road, "published feature shapes", make)


def _polygons(areas: Polygons) -> np.ndarray:
    out = np.empty(len(areas), dtype=object)
    for i in range(len(areas)):
        parts = [shapely.Polygon(ring) for ring in areas[i] if len(ring) > 2]
        # even-odd rule, as everywhere: a ring inside another one is a hole
        out[i] = parts[0] if len(parts) == 1 else reduce(shapely.symmetric_difference, parts, shapely.Polygon())
    return out


def square(centre: np.ndarray, half: float) -> shapely.Geometry:
    """Axis-parallel square of half side `half` round (2,)."""
    return shapely.box(centre[0] - half, centre[1] - half, centre[0] + half, centre[1] + half)


def meets(shapes: np.ndarray, area: shapely.Geometry) -> np.ndarray:
    """Indices of the shapes that meet or touch an area."""
    return np.flatnonzero(shapely.intersects(shapes, area)) if len(shapes) else np.zeros(0, dtype=np.int64)


def route_lanes(road: RoadMap, blocks: np.ndarray) -> np.ndarray:
    """Lanes of roadblocks in the order of the route, in a block as in the map; each once."""
    found = [lane for block in blocks for lane in road.lanes_of_roadblock[block].tolist()]
    return np.array(list(dict.fromkeys(found)), dtype=np.int64)


def route_in_square(road: RoadMap, route: tuple[str, ...], area: shapely.Geometry) -> np.ndarray:
    """Roadblocks of a route as given: from the first that meets the area up to the first that does not."""
    known = [road.roadblocks.index[name] for name in route if name in road.roadblocks.index]
    met = set(meets(shapes_of(road).roadblocks, area).tolist())
    first = next((i for i, block in enumerate(known) if block in met), len(known))
    last = next((i for i in range(first, len(known)) if known[i] not in met), len(known))
    return np.array(known[first:last], dtype=np.int64)


def by_index(line: np.ndarray, count: int) -> np.ndarray:
    """(n, 2) -> (count, 2): points at equal steps of the vertex index, not of arc length."""
    at = np.linspace(0, len(line) - 1, count)
    low = np.minimum(at.astype(int), len(line) - 2)
    return line[low] + (at - low)[:, None] * (line[low + 1] - line[low])


def by_length(line: np.ndarray, count: int) -> np.ndarray:
    """(n, 2) -> (count, 2): points at equal steps of arc length, both ends included."""
    s = np.concatenate(([0.0], np.cumsum(np.hypot(*np.diff(line, axis=0).T))))
    at = np.linspace(0, s[-1], count)
    return np.stack((np.interp(at, s, line[:, 0]), np.interp(at, s, line[:, 1])), 1)


def drawn_once(
    road: RoadMap, key: str, lines: Iterable[np.ndarray], draw: Callable[[np.ndarray, int], np.ndarray], count: int
) -> np.ndarray:
    """(n, count, 2): lines of a map as `count` points each, made once for each map and key."""
    return remember(
        road, (key, draw.__name__, count), lambda: np.array([draw(x, count) for x in lines]).reshape(-1, count, 2)
    )


def vertex_headings(line: np.ndarray) -> np.ndarray:
    """(n, 2) -> (n,): direction to the next vertex, the last one repeated."""
    step = np.diff(line, axis=0)
    heading = np.arctan2(step[:, 1], step[:, 0])
    return np.append(heading, heading[-1])


def to_frame(points: np.ndarray, pose: np.ndarray) -> np.ndarray:
    """(..., 2) of the world -> (..., 2) in the frame of a pose (3,)."""
    return turn_back(points - pose[:2], pose[2])


def turn_back(vectors: np.ndarray, angle: float | np.ndarray) -> np.ndarray:
    """(..., 2) turned clockwise by an angle."""
    c, s = np.cos(angle), np.sin(angle)
    return np.stack((c * vectors[..., 0] + s * vectors[..., 1], c * vectors[..., 1] - s * vectors[..., 0]), -1)


def wrap(angle: np.ndarray) -> np.ndarray:
    """rad -> [-pi, pi)."""
    return (angle + np.pi) % (2 * np.pi) - np.pi


def backfilled(states: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """states (k, A, n), valid (k, A), all valid in the last frame -> missing frames repeat the next later one."""
    out = states.copy()
    for frame in range(len(out) - 2, -1, -1):
        missing = ~valid[frame]
        out[frame, missing] = out[frame + 1, missing]
    return out


def yaw_rates(headings: np.ndarray, step: float) -> np.ndarray:
    """(k, A) -> (k, A): central differences [rad/s]; the first and the last are plain differences [rad], as in the
    devkit."""
    h = np.unwrap(headings, axis=0)
    rate = np.empty_like(h)
    rate[1:-1] = (h[2:] - h[:-2]) / (2 * step)
    rate[0], rate[-1] = h[1] - h[0], h[-1] - h[-2]
    return rate
