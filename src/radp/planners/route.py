"""The route as a line to drive along: which lanes lead to its end, and what lies on them.

Roadblocks say only which roads to take. A `RouteGuide` knows for every lane of the route how far it is to the end and
how many lane changes that takes, so that from any place the lanes to follow and the lane change due are one look-up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import njit

from radp.geometry.kernels import wrap_angle
from radp.geometry.line_kernels import nearest_on_line, sample_line
from radp.metrics.drive import map_arrays
from radp.metrics.lanes import areas_at
from radp.planners.margins import SPACING, lane_margins
from radp.road.route import correct_route
from radp.scenario import Briefing, LightState, RoadMap
from radp.sim.observation import Observation

STEP = 0.5  # m between the samples of a line
REACH = 15.0  # m beyond the end of a line's first lane in which the ego may be found
AHEAD = 350.0  # m of line beyond the end of its first lane
CHANGE_COST = 100.0  # m of detour that a lane change is worth
BEND_COST = 30.0  # m of detour that a radian of bending to and fro is worth
MATCH_REACH = 4.0  # m from the ego to a lane's area
ON_ROUTE_BONUS, MAIN_BONUS = 2.0, 0.75  # m by which such a lane may lie further off and still be matched
HEADING_METRES = 4.0  # m of offset that a radian of heading error counts for
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
    light: np.ndarray  # (M,) column of the lane in the scenario's lights, -1 without one
    first_end: float  # arc length at which the first lane ends
    change_to: int  # neighbour lane that the route asks for while on the first lane, -1 when none
    must_change: bool  # whether the first lane leaves the route at its end


@dataclass(frozen=True)
class Verge:
    """What lies beside and under the P samples of a line."""

    margins: np.ndarray  # (3, 2, P) m, see radp.planners.margins
    crossing: np.ndarray  # (P,) bool: inside an intersection


class RouteGuide:
    """Lanes to follow in one scenario. Lines are made once for each lane that the ego gets to."""

    def __init__(self, briefing: Briefing) -> None:
        self.briefing = briefing
        self.map = briefing.map
        self.route = correct_route(self.map, briefing.route, briefing.pose)
        self.lengths = _lengths(self.map)
        self._effort = self.lengths + BEND_COST * np.array([_bending(line) for line in self.map.centerlines])
        self._cost, self._change = _cost_to_go(self.map, self.route, self._effort)
        self._bonus = np.where(np.isfinite(self._cost), ON_ROUTE_BONUS, 0.0)
        self._lines: dict[int, RouteLine] = {}
        self._verges: dict[int, Verge] = {}
        self._margins: dict[int, np.ndarray] = {}
        self._bonus[self.line(self.lane_at(briefing.pose)).lanes] += MAIN_BONUS

    def lane_at(self, pose: np.ndarray) -> int:
        """Lane of a rear-axle pose (3,): near, in the same direction, on the route rather than beside it."""
        lines, bounds = self.map.centerlines, self.map.lane_polygons.bounds
        return match_lane(pose[0], pose[1], pose[2], lines.values, lines.offsets, bounds, self._bonus)

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
        road = map_arrays(self.map)
        along = np.arange(len(line.points)) * STEP
        member = np.maximum(np.searchsorted(line.starts, along, "right") - 1, 0)
        margins = np.empty((3, 2, len(along)))
        for k, lane in enumerate(line.lanes.tolist()):
            if lane not in self._margins:
                self._margins[lane] = lane_margins(lane, road)
            here = member == k
            place = ((along[here] - line.starts[k]) / SPACING).astype(int)
            measured = self._margins[lane]
            margins[..., here] = measured[..., np.minimum(place, measured.shape[-1] - 1)]
        return Verge(margins, areas_at(line.points, road.intersections).size > 0)

    def _make_line(self, lane: int) -> RouteLine:
        lanes, length = [lane], 0.0
        while length < AHEAD and (after := self._follower(lanes[-1])) >= 0 and after not in lanes:
            lanes.append(after)
            length += self.lengths[after]
        points = np.concatenate([self.map.centerlines[i] for i in lanes])
        ends = np.cumsum(self.lengths[lanes])
        starts = np.concatenate(([0.0], ends[:-1]))
        sampled, headings = sample_line(points, STEP)
        member = np.searchsorted(ends, np.arange(len(sampled)) * STEP, "right")
        limits = np.array([_limit(self.map, i) for i in lanes])[np.minimum(member, len(lanes) - 1)]
        column = {int(lit): i for i, lit in enumerate(self.briefing.light_lanes)}
        own_way = self._follower(lane)
        return RouteLine(
            lanes=np.array(lanes),
            starts=starts,
            points=sampled,
            headings=headings,
            limits=limits,
            speeds=_comfortable_speeds(headings, limits),
            light=np.array([column.get(i, -1) for i in lanes]),
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


def stop_points(line: RouteLine, observation: Observation, world: int) -> tuple[np.ndarray, np.ndarray]:
    """Arc lengths (K,) of the lights on a line that are red or yellow now, and whether (K,) they are yellow."""
    lit = line.light >= 0
    if not lit.any():
        return np.zeros(0), np.zeros(0, dtype=np.bool_)
    state = observation.lights(world)[1][line.light[lit]]
    closed = (state == LightState.RED) | (state == LightState.YELLOW)
    return line.starts[lit][closed], state[closed] == LightState.YELLOW


@njit(cache=True)
def match_lane(
    x: float, y: float, heading: float, points: np.ndarray, offsets: np.ndarray, bounds: np.ndarray, bonus: np.ndarray
) -> int:
    """Lane whose centre line fits a pose best: metres off + 4 m for each radian of heading error - bonus (L,) metres.

    Lanes within 4 m of the pose come first, then any lane.
    """
    best, lane = np.inf, -1
    for attempt in range(2):
        reach = MATCH_REACH if attempt == 0 else np.inf
        for i in range(bonus.shape[0]):
            if x < bounds[i, 0] - reach or y < bounds[i, 1] - reach:
                continue
            if x > bounds[i, 2] + reach or y > bounds[i, 3] + reach:
                continue
            gap, _, direction = nearest_on_line(x, y, points, offsets[i], offsets[i + 1])
            error = abs(wrap_angle(direction - heading))
            cost = gap + HEADING_METRES * error - bonus[i]
            if gap < reach + 2.0 and cost < best:
                best, lane = cost, i
        if lane >= 0:
            return lane
    return lane


def _lengths(road_map: RoadMap) -> np.ndarray:
    """(L,) length of each centre line [m]."""
    steps = np.hypot(*np.diff(road_map.centerlines.values, axis=0).T)
    total = np.concatenate(([0.0], np.cumsum(steps)))
    offsets = road_map.centerlines.offsets
    return total[offsets[1:] - 1] - total[offsets[:-1]]


def _cost_to_go(road_map: RoadMap, route: tuple[str, ...], effort: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(L,) effort from a lane's end to the route's end, lane changes counted in; (L,) neighbour to change to, or -1."""
    cost = np.full(len(road_map), np.inf)
    change = np.full(len(road_map), -1, dtype=np.int64)
    blocks = [road_map.lanes_of_roadblock[road_map.roadblocks.index[block]] for block in route]
    for position in range(len(blocks) - 1, -1, -1):
        lanes = blocks[position]
        ahead = set() if position + 1 == len(blocks) else {int(i) for block in blocks[position + 1 :] for i in block}
        for lane in lanes:
            onward = [i for i in road_map.successors[lane] if int(i) in ahead]
            cost[lane] = min((cost[i] + effort[i] for i in onward), default=0.0 if not ahead else np.inf)
        for _ in lanes:
            for lane in lanes:
                for side in (road_map.left_neighbor[lane], road_map.right_neighbor[lane]):
                    if side >= 0 and cost[side] + CHANGE_COST < cost[lane]:
                        cost[lane], change[lane] = cost[side] + CHANGE_COST, side
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


def _comfortable_speeds(headings: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """(P,) speeds that keep limit, lateral acceleration and yaw rate, lowered early at a gentle deceleration."""
    window = 4  # samples: bends shorter than a car are kinks of the map
    padded = np.pad(headings, window, mode="edge")
    bend = np.abs(padded[2 * window :] - padded[: -2 * window]) / (2 * window * STEP)
    bend = np.maximum(bend, 1e-4)
    speeds = np.minimum(np.sqrt(LATERAL_ACCEL / bend), YAW_RATE / bend)
    speeds = np.minimum(speeds, np.where(limits > 0.0, limits, np.inf))
    for i in range(len(speeds) - 2, -1, -1):
        speeds[i] = min(speeds[i], math.sqrt(speeds[i + 1] ** 2 + 2 * GENTLE_BRAKE * STEP))
    return speeds
