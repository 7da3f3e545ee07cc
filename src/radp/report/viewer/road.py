"""The road near a drive, cut out of the map and simplified for drawing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import shapely

from radp.evaluation.risk import polygon_of
from radp.scenario import Areas, RoadMap, Scenario

TOLERANCE = 0.05  # m that a drawn line may be off
GRID = 1e-3  # m to which areas are snapped before they are joined
PATH_TOLERANCE = 0.5  # m, of the path that everything is cut out around


@dataclass(frozen=True)
class RoadPicture:
    """Rings and lines (P, 2), world frame [m]. Rings of one list fill by the even-odd rule."""

    road: list[np.ndarray]
    route: list[np.ndarray]
    crosswalks: list[np.ndarray]
    stop_lines: list[np.ndarray]
    edges: list[np.ndarray]  # borders without a lane beside
    dividers: list[np.ndarray]  # borders between lanes of one direction
    connectors: list[np.ndarray]  # centre lines
    light_bars: np.ndarray  # (C, 4) x, y, x, y across the start of a connector with a light
    light_columns: np.ndarray  # (C,) column of the scenario's lights


def crop_road(scenario: Scenario, paths: Iterable[np.ndarray], reach: float) -> RoadPicture:
    """What lies within `reach` metres of the paths (P, 2)."""
    near = corridor(paths, reach)
    road = scenario.map
    blocks = [road.roadblocks.index[name] for name in scenario.route if name in road.roadblocks.index]
    lanes = np.flatnonzero(~road.is_connector)
    has_left, has_right = road.left_neighbor >= 0, road.right_neighbor >= 0
    bars, columns = _light_bars(scenario, near)
    return RoadPicture(
        road=_rings(_road_area(road, near)),
        route=_rings(_join(_cut_areas(road.roadblocks, near, blocks))),
        crosswalks=_rings(_join(_cut_areas(road.crosswalks, near))),
        stop_lines=_rings(_join(_cut_areas(road.stop_lines, near))),
        edges=_cut_lines(
            [road.left[i] for i in lanes if not has_left[i]] + [road.right[i] for i in lanes if not has_right[i]], near
        ),
        dividers=_cut_lines([road.left[i] for i in lanes if has_left[i]], near),
        connectors=_cut_lines([road.centerlines[i] for i in np.flatnonzero(road.is_connector)], near),
        light_bars=bars,
        light_columns=columns,
    )


def corridor(paths: Iterable[np.ndarray], reach: float) -> shapely.Geometry:
    """The area within `reach` metres of the paths."""
    lines = [shapely.LineString(path) if len(path) > 1 else shapely.Point(path[0]) for path in paths if len(path)]
    area = shapely.union_all([line.simplify(PATH_TOLERANCE).buffer(reach, quad_segs=6) for line in lines])
    shapely.prepare(area)
    return area


def _road_area(road: RoadMap, near: shapely.Geometry) -> shapely.Geometry:
    """Lanes, connectors, intersections and other drivable areas as one area."""
    lanes = Areas(road.lane_ids, road.lane_polygons)
    return _join([part for areas in (road.drivable, road.intersections, lanes) for part in _cut_areas(areas, near)])


def _cut_areas(areas: Areas, near: shapely.Geometry, which: Sequence[int] | None = None) -> list[shapely.Geometry]:
    chosen = np.arange(len(areas)) if which is None else np.unique(np.asarray(which, dtype=np.int64))
    bounds, (west, south, east, north) = areas.polygons.bounds[chosen], near.bounds
    inside = (bounds[:, 0] < east) & (bounds[:, 2] > west) & (bounds[:, 1] < north) & (bounds[:, 3] > south)
    parts = [polygon_of(areas.polygons, int(i)) for i in chosen[inside]]
    return [part.intersection(near) for part in parts if near.intersects(part)]


def _join(parts: list[shapely.Geometry]) -> shapely.Geometry:
    return shapely.union_all(parts, grid_size=GRID).simplify(TOLERANCE) if parts else shapely.Polygon()


def _rings(area: shapely.Geometry) -> list[np.ndarray]:
    """Exteriors and holes, not closed; lines and points that a cut left over are dropped."""
    parts = shapely.get_parts(area)
    rings = shapely.get_rings(parts[shapely.get_type_id(parts) == shapely.GeometryType.POLYGON])
    return [shapely.get_coordinates(ring)[:-1] for ring in rings]


def _cut_lines(lines: list[np.ndarray], near: shapely.Geometry) -> list[np.ndarray]:
    if not lines:
        return []
    whole = np.array([shapely.LineString(line) for line in lines])
    pieces = shapely.get_parts(shapely.intersection(whole[shapely.intersects(near, whole)], near))
    pieces = pieces[shapely.get_type_id(pieces) == shapely.GeometryType.LINESTRING]
    return [shapely.get_coordinates(piece) for piece in shapely.simplify(pieces, TOLERANCE)]


def _light_bars(scenario: Scenario, near: shapely.Geometry) -> tuple[np.ndarray, np.ndarray]:
    """A bar across the lane for each light; connectors that start at the same place share it, leftmost turn left."""
    road = scenario.map
    ends: dict[tuple[int, ...], list[tuple[float, int, np.ndarray, np.ndarray]]] = {}
    for column, lane in enumerate(int(i) for i in scenario.lights.lane):
        left, right, line = road.left[lane][0], road.right[lane][0], road.centerlines[lane]
        if shapely.intersects_xy(near, *line[0]):
            before, after = line[1] - line[0], line[-1] - line[-2]
            turn = np.arctan2(before[0] * after[1] - before[1] * after[0], before @ after)
            place = tuple(np.round(line[0]).astype(int).tolist())
            ends.setdefault(place, []).append((-turn, column, left, right))
    bars, columns = [], []
    for group in ends.values():
        group.sort(key=lambda entry: entry[:2])
        for k, (_, column, left, right) in enumerate(group):
            start, end = k / len(group), (k + 1) / len(group)
            bars.append(np.concatenate((left + start * (right - left), left + end * (right - left))))
            columns.append(column)
    return np.array(bars).reshape(-1, 4), np.array(columns, dtype=np.int64)
