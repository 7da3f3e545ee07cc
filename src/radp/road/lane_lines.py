"""The lines of a lane: its centre and its borders, all in driving direction."""

from __future__ import annotations

import math

from radp.geometry.ragged import Ragged
from radp.road.road_map import RoadMap

LANE_POINTS = 20  # points of a line where lanes are resampled

Lines = tuple[Ragged, Ragged, Ragged]  # centre, left, right


def lane_lines(road_map: RoadMap) -> Lines:
    """Centrelines and borders; a border is turned if its last point is nearer to the centre's begin than its first."""
    centre = road_map.centerlines
    return centre, _along(road_map.left, centre), _along(road_map.right, centre)


def _along(borders: Ragged, centre: Ragged) -> Ragged:
    rows = []
    for border, line in zip(borders, centre):
        turned = math.dist(border[-1], line[0]) < math.dist(border[0], line[0])
        rows.append(border[::-1] if turned else border)
    return Ragged.from_rows(rows, width=2)
