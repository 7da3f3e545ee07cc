"""Where lanes meet crosswalks: worked out once for each map and length of lanes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import shapely

from radp.road.lane_lines import lane_table
from radp.road.map_memory import remember
from radp.road.road_map import RoadMap


class Crossings(NamedTuple):
    """C places where a row of the lane table enters a crosswalk, and the K crosswalks of the map."""

    row: np.ndarray  # (C,) row of the lane table
    walk: np.ndarray  # (C,) crosswalk
    entry: np.ndarray  # (C, 2) where its centre line first touches the crosswalk, world frame
    walks: list[shapely.Geometry]  # K


def lane_crossings(road_map: RoadMap, lane_length: float | None) -> Crossings:
    """Those of `lane_table(road_map, lane_length)`."""
    return remember(road_map, ("crossings", lane_length), lambda: _crossings(road_map, lane_length))


def _crossings(road_map: RoadMap, lane_length: float | None) -> Crossings:
    polygons = road_map.crosswalks.polygons
    rings = [polygons[i][0] for i in range(len(polygons))]
    walks = [shapely.make_valid(shapely.Polygon(ring if len(ring) > 2 else None)) for ring in rings]
    lines = shapely.linestrings(lane_table(road_map, lane_length).lines[:, :, :2]) if len(road_map) else []
    rows, chosen, entries = [], [], []
    if len(walks) and len(lines):
        near_walk, near_row = shapely.STRtree(lines).query(walks, predicate="intersects")
        for walk, row in sorted(zip(near_walk.tolist(), near_row.tolist())):
            inside = lines[row].intersection(walks[walk])
            first = min(lines[row].project(shapely.Point(xy)) for xy in shapely.get_coordinates(inside))
            rows.append(row)
            chosen.append(walk)
            entries.append(lines[row].interpolate(first).coords[0])
    entry = np.array(entries, dtype=np.float64).reshape(-1, 2)
    if walks:
        shapely.prepare(walks)
    return Crossings(np.array(rows, np.int64), np.array(chosen, np.int64), entry, walks)
