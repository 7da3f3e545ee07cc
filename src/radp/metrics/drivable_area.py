"""drivable_area_compliance: no corner of the ego leaves the drivable area by 0.3 m or more."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from radp.geometry.areas import Rows, distance_to_area, in_any_area, nearest_area
from radp.metrics.drive import Drive
from radp.metrics.metric import NO_VALUE, Metric
from radp.road.arrays import RoadArrays

TOLERANCE = 0.3  # m


@dataclass(frozen=True)
class DrivableResult:
    """metric; inside (S,) bool: all corners on the road; outside (S,) m: how far the worst violating corner is off
    (infinite without any drivable polygon), 0 where none violates."""

    metric: Metric
    inside: np.ndarray
    outside: np.ndarray


def drivable_area(drive: Drive, route: Rows, has_lane: np.ndarray, road: RoadArrays) -> DrivableResult:
    """has_lane (S, 4): corners that are in a lane. A map that does not know what is drivable beside its lanes gives no
    value: there, leaving a lane says nothing."""
    inside, outside = drivable_series(drive.corners, route, has_lane, road)
    if len(road.drivable.offsets) <= 1:
        return DrivableResult(NO_VALUE, inside, outside)
    return DrivableResult(Metric(float(not np.any(outside > 0.0))), inside, outside)


@njit(cache=True, nogil=True)
def drivable_series(
    corners: np.ndarray, route: Rows, has_lane: np.ndarray, road: RoadArrays
) -> tuple[np.ndarray, np.ndarray]:
    """(S,) all corners inside, (S,) distance of the worst corner that violates the tolerance."""
    samples = len(corners)
    inside, outside = np.ones(samples, np.bool_), np.zeros(samples)
    for i in range(samples):
        for c in range(4):
            x, y = corners[i, c, 0], corners[i, c, 1]
            if has_lane[i, c] or in_any_area(x, y, road.intersections) or in_any_area(x, y, road.drivable):
                continue
            inside[i] = False
            near_lane = False
            for k in range(route.start[i], route.start[i] + route.size[i]):
                near_lane = near_lane or distance_to_area(x, y, route.members[k], road.lanes) < TOLERANCE
            if not near_lane:
                gap = min(nearest_area(x, y, road.intersections)[1], nearest_area(x, y, road.drivable)[1])
                if gap >= TOLERANCE:
                    outside[i] = max(outside[i], gap)
    return inside, outside
