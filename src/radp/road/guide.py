"""The route as a line to drive along: which lanes lead to its end, and what lies on them.

Roadblocks say only which roads to take. A `RouteGuide` knows for every lane of the route how far it is to the end and
how many lane changes that takes, so that from any place the lanes to follow and the lane change due are one look-up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import njit

from radp.geometry.areas import areas_at
from radp.geometry.line_kernels import sample_line
from radp.road.arrays import LaneGraph, road_arrays
from radp.road.map_memory import remember
from radp.road.margins import MARGIN_SPACING, lane_margins
from radp.road.places import best_lane
from radp.road.road_map import RoadMap

GUIDE_SPACING = 0.5  # m between the samples of a line
OVERRUN = 15.0  # m beyond the end of a line's first lane in which the ego may be found
AHEAD = 350.0  # m of line beyond the end of its first lane
CHANGE_COST = 100.0  # m of detour that a lane change is worth
BEND_COST = 30.0  # m of detour that a radian of bending to and fro is worth
ON_ROUTE_BONUS, MAIN_BONUS = 2.0, 0.75  # m by which such a lane may lie further off and still be matched
LATERAL_ACCEL, YAW_RATE = 2.8, 0.6  # m/s2, rad/s: how fast bends are taken
GENTLE_BRAKE = 1.2  # m/s2: how early slower stretches are noticed


@dataclass(frozen=True)
class RouteLine:
    """The centre line of M lanes that follow each other, P samples 0.5 m apart, world frame, metres, m/s.

    Beyond its end the line goes on straight, but there is no road any more.
    """

    lanes: np.ndarray  # (M,) lane indices
    starts: np.ndarray  # (M,) arc length at which each lane begins
    points: np.ndarray  # (P, 2)
    headings: np.ndarray  # (P,) rad, unwrapped
    limits: np.ndarray  # (P,) speed limit of the lane there, 0 where there is none
    speeds: np.ndarray  # (P,) as the limits, lowered in bends and early before slower stretches; inf without limit
    light: np.ndarray  # (M,) position of the lane among those with lights, -1 without one
    first_end: float  # arc length at which the first lane ends
    change_to: int  # neighbour lane that the route asks for while on the first lane, -1 when none
    must_change: bool  # whether the first lane leaves the route at its end


@dataclass(frozen=True)
class Verge:
    """What lies beside and under the P samples of a line."""

    margins: np.ndarray  # (3, 2, P) m, see radp.road.margins
    crossing: np.ndarray  # (P,) bool: inside an intersection


class RouteGuide:
    """Lanes to follow along a route. Lines are made once for each lane that the ego gets to."""

    def __init__(
        self, road_map: RoadMap, route: np.ndarray, pose: np.ndarray, light_lanes: np.ndarray, bends: float = 1.0
    ) -> None:
        """route (m,) roadblocks that hang together, pose (3,) at the start, light_lanes (C,) that have lights; `bends`:
        share of the usual speed at which bends are taken.
        """
        self.bends = bends
        self.map, self.road = road_map, road_arrays(road_map)
        self.lengths, self._effort = remember(road_map, "efforts", lambda: _efforts(road_map))
        self._column = {int(lane): i for i, lane in enumerate(light_lanes)}
        self._cost, self._change = _cost_to_go(self.road.graph, route, self._effort)
        self._bonus = np.where(np.isfinite(self._cost), ON_ROUTE_BONUS, 0.0)
        self._lines: dict[int, RouteLine] = {}
        self._verges: dict[int, Verge] = {}
        self._bonus[self.line(self.lane_at(pose)).lanes] += MAIN_BONUS

    def lane_at(self, pose: np.ndarray) -> int:
        """Lane of a rear-axle pose (3,): near, in the same direction, on the route rather than beside it."""
        return best_lane(pose[0], pose[1], pose[2], self.road.lanes.bounds, self.road.centre, self._bonus)

    def line(self, lane: int) -> RouteLine:
        """The line that starts at the beginning of a lane and follows the route without changing lanes."""
        if lane not in self._lines:
            self._lines[lane] = self._make_line(lane)
        return self._lines[lane]

    def verge(self, line: RouteLine) -> Verge:
        """Lane borders, road borders and intersections along a line of this guide."""
        first = int(line.lanes[0])
        if first not in self._verges:
            self._verges[first] = self._make_verge(line)
        return self._verges[first]

    def _make_verge(self, line: RouteLine) -> Verge:
        along = np.arange(len(line.points)) * GUIDE_SPACING
        member = np.maximum(np.searchsorted(line.starts, along, "right") - 1, 0)
        margins = np.empty((3, 2, len(along)))
        for k, lane in enumerate(line.lanes.tolist()):
            here, measured = member == k, lane_margins(self.map, lane)
            place = ((along[here] - line.starts[k]) / MARGIN_SPACING).astype(int)
            margins[..., here] = measured[..., np.minimum(place, measured.shape[-1] - 1)]
        return Verge(margins, areas_at(line.points, self.road.intersections).size > 0)

    def _make_line(self, lane: int) -> RouteLine:
        lanes, length = [lane], 0.0
        while length < AHEAD and (after := self._follower(lanes[-1])) >= 0 and after not in lanes:
            lanes.append(after)
            length += self.lengths[after]
        points = np.concatenate([self.map.centerlines[i] for i in lanes])
        ends = np.cumsum(self.lengths[lanes])
        starts = np.concatenate(([0.0], ends[:-1]))
        sampled, headings = sample_line(points, GUIDE_SPACING)
        member = np.searchsorted(ends, np.arange(len(sampled)) * GUIDE_SPACING, "right")
        limits = np.array([_limit(self.map, i) for i in lanes])[np.minimum(member, len(lanes) - 1)]
        own_way = self._follower(lane)
        return RouteLine(
            lanes=np.array(lanes),
            starts=starts,
            points=sampled,
            headings=headings,
            limits=limits,
            speeds=_comfortable_speeds(headings, limits, self.bends),
            light=np.array([self._column.get(i, -1) for i in lanes]),
            first_end=float(self.lengths[lane]),
            change_to=int(self._change[lane]),
            must_change=bool(self._change[lane] >= 0 and (own_way < 0 or not np.isfinite(self._cost[own_way]))),
        )

    def _follower(self, lane: int) -> int:
        """The successor with the cheapest way to the route's end; off the route the straightest; -1 at a road's end."""
        after = self.map.successors[lane]
        if not len(after):
            return -1
        cost = self._cost[after] + self._effort[after]
        if np.isfinite(cost).any():
            return int(after[int(np.argmin(cost))])
        return int(after[int(np.argmin([abs(_turn(self.map.centerlines[i])) for i in after]))])


def _efforts(road_map: RoadMap) -> tuple[np.ndarray, np.ndarray]:
    """(L,) length of each lane, and (L,) effort to drive it [m].

    Lengths are differences of one running sum over all lanes. They differ from `LaneLines.length` by rounding alone,
    but drives that were published stand on these.
    """
    lines = road_map.centerlines
    total = np.concatenate(([0.0], np.cumsum(np.hypot(*np.diff(lines.values, axis=0).T))))
    lengths = total[lines.offsets[1:] - 1] - total[lines.offsets[:-1]]
    return lengths, lengths + BEND_COST * np.array([_bending(line) for line in lines])


@njit(cache=True, nogil=True)
def _cost_to_go(graph: LaneGraph, route: np.ndarray, effort: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(L,) effort from a lane's end to the route's end, lane changes counted in; (L,) neighbour to change to, or -1."""
    cost, change = np.full(len(effort), np.inf), np.full(len(effort), -1)
    ahead = np.zeros(len(effort), np.bool_)
    for position in range(len(route) - 1, -1, -1):
        lanes = graph.members[graph.member_offsets[route[position]] : graph.member_offsets[route[position] + 1]]
        for lane in lanes:
            least = np.inf if ahead.any() else 0.0
            for k in range(graph.successor_offsets[lane], graph.successor_offsets[lane + 1]):
                after = graph.successors[k]
                if ahead[after]:
                    least = min(least, cost[after] + effort[after])
            cost[lane] = least
        for _ in lanes:
            for lane in lanes:
                for side in graph.neighbors[lane]:
                    if side >= 0 and cost[side] + CHANGE_COST < cost[lane]:
                        cost[lane], change[lane] = cost[side] + CHANGE_COST, side
        ahead[lanes] = True
    return cost, change


def _limit(road_map: RoadMap, lane: int) -> float:
    """Speed limit of a lane; a connector without one takes the highest of the lanes around it; 0 = none."""
    if road_map.has_speed_limit[lane] or not road_map.is_connector[lane]:
        return float(road_map.speed_limit[lane])
    around = np.concatenate((road_map.predecessors[lane], road_map.successors[lane]))
    return float(road_map.speed_limit[around].max(initial=0.0))


def _bending(points: np.ndarray) -> float:
    """Sum of all turns of a line, left and right alike [rad]."""
    steps = np.diff(points, axis=0)
    return float(np.abs(np.diff(np.unwrap(np.arctan2(steps[:, 1], steps[:, 0])))).sum())


def _turn(points: np.ndarray) -> float:
    """How far a line turns from its first to its last piece [rad]."""
    first, last = points[1] - points[0], points[-1] - points[-2]
    return math.remainder(math.atan2(last[1], last[0]) - math.atan2(first[1], first[0]), 2 * math.pi)


def _comfortable_speeds(headings: np.ndarray, limits: np.ndarray, bends: float) -> np.ndarray:
    """(P,) speeds that keep limit, lateral acceleration and yaw rate, lowered early at a gentle deceleration."""
    window = 4  # samples: bends shorter than a car are kinks of the map
    padded = np.pad(headings, window, mode="edge")
    bend = np.abs(padded[2 * window :] - padded[: -2 * window]) / (2 * window * GUIDE_SPACING)
    bend = np.maximum(bend, 1e-4)
    speeds = bends * np.minimum(np.sqrt(LATERAL_ACCEL / bend), YAW_RATE / bend)
    speeds = np.minimum(speeds, np.where(limits > 0.0, limits, np.inf))
    for i in range(len(speeds) - 2, -1, -1):
        speeds[i] = min(speeds[i], math.sqrt(speeds[i + 1] ** 2 + 2 * GENTLE_BRAKE * GUIDE_SPACING))
    return speeds
