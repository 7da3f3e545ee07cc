"""The route of a Scene as published: those of its lanes that lie on the corrected route."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit

from radp.road.map_memory import remember
from radp.road.route import correct_route, current_roadblocks
from radp.scenario import RoadMap


def corrected_blocks(road_map: RoadMap, route_ids: Sequence[str], pose: np.ndarray) -> np.ndarray:
    """Route and rear-axle pose (3,) -> (n,) roadblock indices: `correct_route`, remembered for the ego's roadblock."""
    blocks = road_map.roadblocks.index
    route = [blocks[name] for name in route_ids if name in blocks]
    if not route or not len(road_map):
        return np.zeros(0, dtype=np.int64)
    standing = current_roadblocks(road_map, route, pose)
    # The pose matters only through the blocks under the ego, and not at all when the best of these is on the route.
    under = () if standing and standing[0] in route else tuple(standing)

    def correct() -> np.ndarray:
        return np.array([blocks[name] for name in correct_route(road_map, route_ids, pose)], dtype=np.int64)

    return remember(road_map, ("route", tuple(route), under), correct)


@njit(cache=True, nogil=True)
def route_rows(lanes: np.ndarray, roadblock: np.ndarray, route: np.ndarray, most: int) -> np.ndarray:
    """lanes (n,) of the scene, route (m,) roadblocks -> at most `most` rows of `lanes` on the route, order kept.

    Of the route only the first unbroken run of roadblocks that have a lane in the scene counts.
    """
    first, last = -1, -1
    for i in range(len(route)):
        seen = False
        for lane in lanes:
            seen = seen or roadblock[lane] == route[i]
        if seen and first < 0:
            first = i
        if not seen and first >= 0:
            break
        if seen:
            last = i
    rows, count = np.empty(most, np.int64), 0
    if first < 0:
        return rows[:0]
    for row in range(len(lanes)):
        for i in range(first, last + 1):
            if roadblock[lanes[row]] == route[i] and count < most:
                rows[count] = row
                count += 1
                break
    return rows[:count]
