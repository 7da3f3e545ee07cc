"""Written rules that a built network must obey; SUMO's generators make a few broken joints."""

from __future__ import annotations

import numpy as np
import shapely

from radp.geometry.lines import headings, largest_curvature
from radp.sources.sumo.road import SumoRoad

SHORTEST_LANE = 3.0  # [m]
LARGEST_KINK = np.radians(10)  # between a lane and its connector
SMALLEST_RADIUS = 3.5  # [m] of a connector
LARGEST_OVERLAP = 0.5  # [m^2] of two lanes


def unsound(road: SumoRoad) -> str:
    """Why a network is not used, by the first rule it breaks; empty when it is fine."""
    if not road.fringe_in or not road.fringe_out:
        return "traffic cannot enter or leave"
    for i in range(road.first_connector):
        if np.hypot(*np.diff(road.map.centerlines[i], axis=0).T).sum() < SHORTEST_LANE:
            return f"lane {road.map.lane_ids[i]} is too short"
    bad = broken_connectors(road)
    if bad:
        return f"connector {road.map.lane_ids[bad[0]]} is too tight or has a kink"
    return _overlapping_lanes(road)


def broken_connectors(road: SumoRoad) -> list[int]:
    """Places in the map of connectors that no car could follow."""
    return [i for i in range(road.first_connector, len(road.map)) if _is_broken(road, i)]


def _is_broken(road: SumoRoad, connector: int) -> bool:
    lines = road.map.centerlines
    if largest_curvature(lines[connector], 2.0) > 1 / SMALLEST_RADIUS:
        return True
    chain = [
        headings(lines[i]) for i in (road.map.predecessors[connector][0], connector, road.map.successors[connector][0])
    ]
    kinks = np.array([chain[1][0] - chain[0][-1], chain[2][0] - chain[1][-1]])
    return bool((np.abs((kinks + np.pi) % (2 * np.pi) - np.pi) > LARGEST_KINK).any())


def _overlapping_lanes(road: SumoRoad) -> str:
    """A point must lie in one lane only, or no metric can say where it is."""
    shapes = [shapely.Polygon(road.map.lane_polygons[i][0]) for i in range(road.first_connector)]
    for i, shape in enumerate(shapes):
        if not shape.is_valid:
            return f"lane {road.map.lane_ids[i]} crosses itself"
    tree = shapely.STRtree(shapes)
    for i, j in tree.query(shapes, predicate="intersects").T:
        if i < j and shapes[i].intersection(shapes[j]).area > LARGEST_OVERLAP:
            return f"lanes {road.map.lane_ids[i]} and {road.map.lane_ids[j]} overlap"
    return ""
