"""What PLUTO sees beside planTF's inputs: reference lines along the route and static objects on the road."""

from __future__ import annotations

import numpy as np
import shapely

from radp.planners.zoo.batch import Sample
from radp.planners.zoo.places import meets, shapes_of, square, vertex_headings, wrap
from radp.planners.zoo.vector_features import PLUTO_REACH, to_ego_frame, world_sample
from radp.planners.zoo.view import WorldView
from radp.road.road_map import RoadMap
from radp.road.route import correct_route
from radp.scenario import Box, Ego, ObjectType

LENGTH, POINTS = 120.0, 120  # m of a reference line, and its points
EVERY = 4  # vertices: a metre on nuPlan's maps
START_REACH, SHORTEST = 3.0, 2.0  # m: square in which lines may start, and length that a lane must have
MOST_LANES = 15
LONG_SHARE = 0.8  # of the length: where some lines are that long, the others are dropped
SAME = 0.5  # m by which lines must differ
SECONDS = 8
ROAD_REACH = 60.0  # m, half the square in which the road counts for static objects
ROAD_REACH_TRAINING = 50.0
STATIC = {
    ObjectType.CZONE_SIGN: 0, ObjectType.BARRIER: 1, ObjectType.TRAFFIC_CONE: 2, ObjectType.GENERIC_OBJECT: 3,
}  # fmt: skip


def pluto_sample(view: WorldView) -> Sample:
    """All inputs of PLUTO for one moment; with a future also the targets."""
    sample = world_sample(view, PLUTO_REACH)
    training = len(view.future_ego) > 0
    if not training:  # in closed loop the state is known, in a log it is not
        sample["current_state"][5:7] = view.ego[-1, [Ego.STEERING, Ego.YAW_RATE]]
    sample |= static_objects(view, ROAD_REACH_TRAINING if training else ROAD_REACH) | reference_features(view)
    return to_ego_frame(sample, PLUTO_REACH.radius)


def static_objects(view: WorldView, road_reach: float) -> Sample:
    """Static objects of now within 120 m that stand on a lane."""
    there = np.flatnonzero(np.isin(view.types, list(STATIC)) & view.valid[-1])
    states = view.agents[-1, there]
    near = np.hypot(*(states[:, :2] - view.centre).T) <= PLUTO_REACH.radius
    there, states = there[near], states[near]
    on_road = np.zeros(len(there), dtype=bool)
    if len(there):
        lanes = shapes_of(view.road).lanes
        lanes = lanes[meets(lanes, square(view.centre, road_reach))]
        boxes = np.array([_box(state, size) for state, size in zip(states, view.sizes[there])], dtype=object)
        on_road = shapely.intersects(boxes[:, None], lanes).any(1)
    there, states = there[on_road], states[on_road]
    return {
        "static_objects/position": states[:, :2],
        "static_objects/heading": states[:, Box.HEADING],
        "static_objects/shape": view.sizes[there, 1::-1],
        "static_objects/category": np.array([STATIC[ObjectType(t)] for t in view.types[there]], dtype=np.int8),
        "static_objects/valid_mask": np.ones(len(there), dtype=bool),
    }


def _box(state: np.ndarray, size: np.ndarray) -> shapely.Geometry:
    ahead = np.array([np.cos(state[2]), np.sin(state[2])]) * size[0] / 2
    aside = np.array([-np.sin(state[2]), np.cos(state[2])]) * size[1] / 2
    return shapely.Polygon([state[:2] + a * ahead + b * aside for a, b in ((1, 1), (-1, 1), (-1, -1), (1, -1))])


def reference_features(view: WorldView) -> Sample:
    """R lines of 120 points in the world: position, vector (R, 120, 2), orientation, valid_mask (R, 120), and
    future_projection (R, 8, 2): how far along and beside each line the ego was after 1 ... 8 s."""
    lines = reference_lines(view)
    count = len(lines)
    position, vector = np.zeros((count, POINTS, 2)), np.zeros((count, POINTS, 2))
    orientation, valid = np.zeros((count, POINTS)), np.zeros((count, POINTS), dtype=bool)
    projection = np.zeros((count, SECONDS, 2))
    places = shapely.points(view.future_ego[9 : 10 * SECONDS : 10, :2])
    for r, line in enumerate(lines):
        rows = line[::EVERY][: POINTS + 1]
        n = len(rows) - 1
        position[r, :n], vector[r, :n] = rows[:-1, :2], np.diff(rows[:, :2], axis=0)
        orientation[r, :n], valid[r, :n] = rows[:-1, 2], True
        if len(places):
            curve = shapely.LineString(line[:, :2])
            projection[r] = np.stack((shapely.line_locate_point(curve, places), shapely.distance(curve, places)), 1)
    return {
        "reference_line/position": position,
        "reference_line/vector": vector,
        "reference_line/orientation": orientation,
        "reference_line/valid_mask": valid,
        "reference_line/future_projection": projection,
    }


def reference_lines(view: WorldView) -> list[np.ndarray]:
    """(n, 3) x, y, heading each: every way on along the route, up to 120 m, from where the ego is."""
    road = view.road
    route = set(correct_route(road, view.route, view.pose).tolist())
    ways = [way for lane in _starts(view, route) for way in _ways(view, lane, route)]
    lines = [trimmed(lane_vertices(road, way), view.pose) for way in ways]
    length = [float(np.hypot(*np.diff(line[:, :2], axis=0).T).sum()) for line in lines]
    long = [line for line, metres in zip(lines, length) if metres > LONG_SHARE * LENGTH]
    lines = long or lines
    return [line for j, line in enumerate(lines) if not any(_same(earlier, line) for earlier in lines[:j])]


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    n = min(len(a), len(b))
    return bool(np.abs(a[:n, :2] - b[:n, :2]).sum(-1).max() < SAME)


def _starts(view: WorldView, route: set[int]) -> list[int]:
    """Connectors, then lanes of the route round the ego that run its way; none that follows another one."""
    road, shapes = view.road, shapes_of(view.road)
    near = meets(np.where(road.is_connector, shapes.lines, shapes.lanes), square(view.centre, START_REACH))
    near = np.concatenate((near[road.is_connector[near]], near[~road.is_connector[near]]))
    kept = [
        int(lane)
        for lane in near
        if road.roadblock[lane] in route and shapes.length[lane] > SHORTEST and _turned(view, lane) < np.pi / 2
    ]
    following = {after for lane in kept for after in road.successors[lane].tolist()}
    return [lane for lane in kept if lane not in following]


def _turned(view: WorldView, lane: int) -> float:
    line = view.road.centerlines[lane]
    heading, thin = vertex_headings(line)[::EVERY], line[::EVERY]
    nearest = np.argmin(np.hypot(*(thin - view.pose[:2]).T))
    return float(abs(wrap(heading[nearest] - view.pose[2])))


def _ways(view: WorldView, start: int, route: set[int]) -> list[list[int]]:
    """Chains of lanes from a starting lane on, depth first."""
    road, shapes = view.road, shapes_of(view.road)
    found: list[list[int]] = []
    passed = shapely.line_locate_point(shapes.lines[start], shapely.Point(view.pose[:2]))

    def go(way: list[int], metres: float) -> None:
        metres += shapes.length[way[-1]]
        after = [lane for lane in road.successors[way[-1]].tolist() if road.roadblock[lane] in route]
        if not after or len(way) >= MOST_LANES or metres > LENGTH:
            found.append(way)
            return
        for lane in after:
            go([*way, lane], metres)

    go([start], -float(passed))
    return found


def lane_vertices(road: RoadMap, way: list[int]) -> np.ndarray:
    """(n, 3): the vertices of lanes one after the other; those followed by the same place are left out, and with them,
    as published, the very last one."""
    lines = [road.centerlines[lane] for lane in way]
    rows = np.concatenate([np.column_stack((line, vertex_headings(line))) for line in lines])
    moved = np.hypot(*np.diff(rows[:, :2], axis=0).T) > 0
    return rows[:-1][moved]


def trimmed(rows: np.ndarray, pose: np.ndarray) -> np.ndarray:
    """The part of a line (n, 3) from the projection of a pose on, 120 m or to the end; its ends are interpolated."""
    s = np.concatenate(([0.0], np.cumsum(np.hypot(*np.diff(rows[:, :2], axis=0).T))))
    begin = min(float(shapely.LineString(rows[:, :2]).project(shapely.Point(pose[:2]))), s[-1])
    end = min(begin + LENGTH, s[-1])
    if begin >= s[-1]:
        return rows[-2:]
    heading = np.unwrap(rows[:, 2])
    ends = [
        np.array([np.interp(at, s, rows[:, 0]), np.interp(at, s, rows[:, 1]), wrap(np.interp(at, s, heading))])
        for at in (begin, end)
    ]
    return np.vstack((ends[0], rows[(s > begin) & (s < end)], ends[1]))
