"""The route as roadblocks: where on it the ego stands, and how to mend a route that the ego is not on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
import shapely

from radp.geometry.kernels import distance_to_rings
from radp.geometry.line_kernels import nearest_on_line
from radp.geometry.ragged import Ragged
from radp.road.road_map import RoadMap

NEAR = 1.0  # m from the ego to a roadblock that it may stand on
MAX_HEADING_ERROR = math.pi / 4
MAX_OFFSET = 3.0  # m to the centre line
BACKWARD_DEPTH, FORWARD_DEPTH = 15, 30  # roadblocks
ENTRIES = 3  # first blocks of the route that a search may aim at
LOOP_OVERLAP = 1.0  # m2 by which two connectors of a route may overlap


def correct_route(road_map: RoadMap, route_ids: Sequence[str], ego_pose: np.ndarray) -> tuple[str, ...]:
    """Roadblock ids and rear-axle pose (3,) x, y, heading -> roadblock ids that start under the ego and hang together.

    1. Ego off the route: a way from the ego's block to the first block, else to one of the first three.
    2. Neighbouring blocks without a link: the shortest way between them is put in.
    3. Loops: the route ends before a connector that overlaps an earlier one by more than 1 m2.

    Ids that the map does not have are dropped.
    """
    index = road_map.roadblocks.index
    route = [index[block] for block in route_ids if block in index]
    if not route or not len(road_map):
        return ()
    route = _start_under_ego(road_map, route, ego_pose)
    route = _link(road_map, route)
    return tuple(road_map.roadblocks.ids[block] for block in _cut_loops(road_map, route))


def current_roadblocks(road_map: RoadMap, route: Iterable[int], ego_pose: np.ndarray) -> list[int]:
    """Roadblocks the ego may stand on, best first: those of the route that fit, else all that fit, else the nearest."""
    x, y, heading = (float(v) for v in ego_pose[:3])
    on_route = set(route)
    fits: dict[int, float] = {}
    offsets: dict[int, float] = {}
    for block in _blocks_near(road_map, x, y):
        for lane in road_map.lanes_of_roadblock[block]:
            offset, _, direction = _nearest(road_map, int(lane), x, y)
            offsets[block] = min(offset, offsets.get(block, math.inf))
            error = abs((direction - heading + math.pi) % (2 * math.pi) - math.pi)
            if error < MAX_HEADING_ERROR and offset < MAX_OFFSET:
                fits[block] = min(offset, fits.get(block, math.inf))
    for choice in ({b: o for b, o in fits.items() if b in on_route}, fits, offsets):
        if choice:
            return sorted(choice, key=lambda block: (choice[block], block))
    return []


def _nearest(road_map: RoadMap, lane: int, x: float, y: float) -> tuple[float, float, float]:
    lines = road_map.centerlines
    return nearest_on_line(x, y, lines.values, lines.offsets[lane], lines.offsets[lane + 1])


def _blocks_near(road_map: RoadMap, x: float, y: float) -> list[int]:
    """Blocks within NEAR of the point; the nearest one where none is."""
    polygons = road_map.roadblocks.polygons
    bounds = polygons.bounds
    beside = np.maximum(np.maximum(bounds[:, 0] - x, x - bounds[:, 2]), 0.0)
    below = np.maximum(np.maximum(bounds[:, 1] - y, y - bounds[:, 3]), 0.0)
    at_least = np.hypot(beside, below)
    best, nearest, near = math.inf, -1, []
    for block in np.argsort(at_least, kind="stable"):
        if at_least[block] > max(NEAR, best):
            break
        first, last = polygons.offsets[block], polygons.offsets[block + 1]
        distance = distance_to_rings(x, y, polygons.rings.values, polygons.rings.offsets, first, last)
        if distance < best:
            best, nearest = distance, int(block)
        if distance <= NEAR:
            near.append(int(block))
    return near or ([nearest] if nearest >= 0 else [])


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


def _start_under_ego(road_map: RoadMap, route: list[int], ego_pose: np.ndarray) -> list[int]:
    standing = current_roadblocks(road_map, route, ego_pose)
    if not standing or standing[0] in route:
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
