"""The border of the drivable area: pieces of line with the road on their left, made once for each map."""

from __future__ import annotations

import numpy as np
import shapely
from shapely.geometry.polygon import orient

from radp.geometry.ragged import Polygons
from radp.road.map_memory import remember
from radp.road.road_map import RoadMap

SLIT = 0.1  # m: gaps between areas that are no gaps of the road
SIMPLE = 0.05  # m by which the border may be simplified


def drivable_border(road_map: RoadMap) -> np.ndarray:
    """(M, 4) from x, y to x, y of lanes, intersections and drivable areas together.

    Empty where the map does not know what is drivable beside its lanes: there, leaving a lane says nothing.
    """
    return remember(road_map, "border", lambda: _border(road_map))


def _border(road_map: RoadMap) -> np.ndarray:
    if not len(road_map.drivable):
        return np.zeros((0, 4))
    kinds = (road_map.lane_polygons, road_map.intersections.polygons, road_map.drivable.polygons)
    whole = shapely.union_all([shape for polygons in kinds for shape in _shapes(polygons)])
    closed = whole.buffer(SLIT / 2, join_style="mitre").buffer(-SLIT / 2, join_style="mitre").simplify(SIMPLE)
    pieces = [np.zeros((0, 4))]
    for part in shapely.get_parts(closed):
        if not isinstance(part, shapely.Polygon) or part.is_empty:
            continue
        turned = orient(part)  # counter-clockwise outside, clockwise inside: the road is on the left of both
        for ring in (turned.exterior, *turned.interiors):
            points = np.asarray(ring.coords)[:, :2]
            pieces.append(np.concatenate((points[:-1], points[1:]), 1))
    return np.ascontiguousarray(np.concatenate(pieces))


def _shapes(polygons: Polygons) -> list[shapely.Geometry]:
    """Areas as shapely sees them, by the even-odd rule over their rings."""
    shapes = []
    for i in range(len(polygons)):
        rings = [shapely.make_valid(shapely.Polygon(ring)) for ring in polygons[i] if len(ring) > 2]
        if rings:
            shapes.append(shapely.symmetric_difference_all(rings) if len(rings) > 1 else rings[0])
    return shapes
