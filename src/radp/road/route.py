"""The route as roadblocks: how to mend one that the ego is not on, or that has gaps or loops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
import shapely

from radp.geometry.ragged import Ragged
from radp.road.map_memory import remember
from radp.road.places import current_roadblocks
from radp.road.road_map import RoadMap

BACKWARD_DEPTH, FORWARD_DEPTH = 15, 30  # roadblocks
ENTRIES = 3  # first blocks of the route that a search may aim at
LOOP_OVERLAP = 1.0  # m2 by which two connectors of a route may overlap


def correct_route(road_map: RoadMap, route_ids: Sequence[str], pose: np.ndarray) -> np.ndarray:
    """Roadblock ids and rear-axle pose (3,) -> (n,) indices of roadblocks that start under the ego and hang together.

    1. Ego off the route: a way from the ego's block to the first block, else to one of the first three.
    2. Neighbouring blocks without a link: the shortest way between them is put in.
    3. Loops: the route ends before a connector that overlaps an earlier one by more than 1 m2.

    Ids that the map does not have are dropped. A route is corrected once for each place that the ego comes to.
    """
    index = road_map.roadblocks.index
    route = [index[block] for block in route_ids if block in index]
    if not route or not len(road_map):
        return np.zeros(0, dtype=np.int64)
    standing = current_roadblocks(road_map, route, pose)
    # The pose matters only through the blocks under the ego, and not at all when the best of these is on the route.
    under = () if standing and standing[0] in route else tuple(standing)

    def correct() -> np.ndarray:
        linked = _link(road_map, _start_under_ego(road_map, route, under))
        return np.array(_cut_loops(road_map, linked), dtype=np.int64)

    return remember(road_map, ("route", tuple(route), under), correct)


def _search(links: Ragged, start: int, targets: Iterable[int], depth: int) -> list[int] | None:
    """Shortest chain start..target of at most `depth` links, both ends included; None when there is none."""
    wanted = set(targets)
    came_from: dict[int, int] = {start: -1}
    front = [start]
    for _ in range(depth + 1):
        for block in front:
            if block in wanted:
                chain = [block]
                while came_from[chain[-1]] >= 0:
                    chain.append(came_from[chain[-1]])
                return chain[::-1]
        further = []
        for block in front:
            for follower in links[block].tolist():
                if follower not in came_from:
                    came_from[follower] = block
                    further.append(follower)
        front = further
    return None


def _start_under_ego(road_map: RoadMap, route: list[int], standing: Sequence[int]) -> list[int]:
    if not standing:
        return route
    back = _search(road_map.roadblock_predecessors, route[0], standing, BACKWARD_DEPTH)
    if back is not None:
        return back[:0:-1] + route
    ahead = _search(road_map.roadblock_successors, standing[0], route[:ENTRIES], FORWARD_DEPTH)
    if ahead is not None:
        return ahead + route[route.index(ahead[-1]) + 1 :]
    return route


def _link(road_map: RoadMap, route: list[int]) -> list[int]:
    links = road_map.roadblock_successors
    linked = route[:1]
    for block, follower in pairwise(route):
        if follower not in links[block]:
            chain = _search(links, block, [follower], FORWARD_DEPTH)
            linked += chain[1:-1] if chain else []
        linked.append(follower)
    return linked


def _cut_loops(road_map: RoadMap, route: list[int]) -> list[int]:
    seen: list[shapely.Geometry] = []
    for position, block in enumerate(route):
        members = road_map.lanes_of_roadblock[block]
        if not road_map.is_connector[members].all():
            continue
        polygons = [shapely.make_valid(shapely.Polygon(road_map.lane_polygons[lane][0])) for lane in members]
        area = shapely.union_all(polygons)
        if any(shapely.area(shapely.intersection(area, earlier)) > LOOP_OVERLAP for earlier in seen):
            return route[:position]
        seen.append(area)
    return route
