"""Which way a road leads at a place."""

from __future__ import annotations

import numpy as np

from radp.road.lane_lines import lane_line, lane_lines
from radp.road.road_map import RoadMap


def heading_at(road_map: RoadMap, x: float, y: float) -> float:
    """Direction of the lane whose centre is nearest to a place; 0 on a map without lanes."""
    lines = lane_lines(road_map)
    if not len(lines.points):
        return 0.0
    nearest = int(np.argmin(np.hypot(*(lines.points[:, :2] - (x, y)).T)))
    lane = int(np.searchsorted(lines.offsets, nearest, side="right")) - 1
    return float(courses(lane_line(lines, lane)[:, :2])[nearest - lines.offsets[lane]])


def courses(points: np.ndarray) -> np.ndarray:
    """(P, 2) -> (P,) direction from each point to the next; the last as the one before it."""
    dx, dy = np.diff(points, axis=0).T
    course = np.arctan2(dy, dx)
    return np.append(course, course[-1])
