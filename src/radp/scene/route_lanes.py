"""The route of a Scene, in one of two forms: the published choice of lanes, or one line in driving order."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numba import njit

from radp.geometry.kernels import point_segment_distance, project_on_line, wrap_angle
from radp.scenario import RoadMap
from radp.scenario.route import correct_route, current_roadblocks
from radp.scene.lanes import LANE_POINTS, LaneTable, lane_light, lane_table, write_points

MOST_STRIPS = 64  # lanes that the route line may run through
AGAINST = 1e6  # m: what a lane that runs against the ego counts as farther away


def corrected_blocks(road_map: RoadMap, route_ids: Sequence[str], pose: np.ndarray) -> np.ndarray:
    """Route and rear-axle pose (3,) -> (n,) roadblock indices: `correct_route`, remembered for the ego's roadblock."""
    blocks = road_map.roadblocks.index
    route = [blocks[name] for name in route_ids if name in blocks]
    if not route or not len(road_map):
        return np.zeros(0, dtype=np.int64)
    standing = current_roadblocks(road_map, route, pose)
    # The pose matters only through the blocks under the ego, and not at all when the best of these is on the route.
    key = (tuple(route), () if standing and standing[0] in route else tuple(standing))
    memory = lane_table(road_map).corrected_routes
    if key not in memory:
        memory[key] = np.array([blocks[name] for name in correct_route(road_map, route_ids, pose)], dtype=np.int64)
    return memory[key]


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


def write_route_line(
    table: LaneTable,
    route: np.ndarray,
    pose: np.ndarray,
    lights: tuple[np.ndarray, np.ndarray, np.ndarray],
    spacing: float,
    pieces: int,
    out: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    """The route as one line from the ego on: `pieces` rows of 20 points, `spacing` metres apart, in driving order.

    The line follows the lanes of the route with the fewest lane changes and goes straight on where the route ends, so
    that its length does not tell where the drive ends; points beyond the map are missing. `lights` are lanes, states
    and columns; `out` is route_lanes (R, 20, 12), speed limit (R, 1) and its flag (R, 1).
    """
    pieces = min(pieces, len(out[0]))
    entry, exit_ = _strips(
        route, pose, table.lines, table.roadblock, table.successors, table.successor_offsets, table.neighbors,
        table.members, table.member_offsets, spacing * LANE_POINTS * pieces,
    )  # fmt: skip
    line, lanes = _sample(entry, exit_, table.lines, pose, spacing, LANE_POINTS * pieces + 1)
    _write_pieces(line, lanes, pose, *lights, table.speed_limit, table.has_speed_limit, pieces, *out)


@njit(cache=True, nogil=True)
def _write_pieces(
    line: np.ndarray,
    lanes: np.ndarray,
    pose: np.ndarray,
    light_lanes: np.ndarray,
    light_states: np.ndarray,
    light_columns: np.ndarray,
    speed_limit: np.ndarray,
    has_speed_limit: np.ndarray,
    pieces: int,
    out: np.ndarray,
    out_limit: np.ndarray,
    out_has_limit: np.ndarray,
) -> None:
    """line (n, 6), lanes (n,) -> the first `pieces` rows; one point more than they hold gives the last its step."""
    rows = np.zeros((len(line), out.shape[2]), out.dtype)
    write_points(line, pose, rows)
    for k in range(min(len(line), pieces * LANE_POINTS)):
        piece, point = k // LANE_POINTS, k % LANE_POINTS
        out[piece, point] = rows[k]
        out[piece, point, lane_light(lanes[k], light_lanes, light_states, light_columns)] = 1.0
        if point == 0:
            out_limit[piece, 0], out_has_limit[piece, 0] = speed_limit[lanes[k]], has_speed_limit[lanes[k]]


@njit(cache=True, nogil=True)
def _line_direction(lines: np.ndarray, lane: int, point: int) -> float:
    """Heading of the centreline at one of its 20 points."""
    p = min(point, LANE_POINTS - 2)
    return math.atan2(lines[lane, p + 1, 1] - lines[lane, p, 1], lines[lane, p + 1, 0] - lines[lane, p, 0])


@njit(cache=True, nogil=True)
def _start_on_route(
    route: np.ndarray, pose: np.ndarray, lines: np.ndarray, members: np.ndarray, member_offsets: np.ndarray
) -> tuple[int, int]:
    """(position in the route, lane) nearest to the ego, lanes that run its way preferred; (-1, -1) without lanes."""
    position, best_lane, best = -1, -1, np.inf
    for i in range(len(route)):
        for m in range(member_offsets[route[i]], member_offsets[route[i] + 1]):
            lane = members[m]
            line = lines[lane]
            for p in range(LANE_POINTS - 1):
                ax, ay, bx, by = line[p, 0], line[p, 1], line[p + 1, 0], line[p + 1, 1]
                gap = point_segment_distance(pose[0], pose[1], ax, ay, bx, by)
                if (bx - ax) * math.cos(pose[2]) + (by - ay) * math.sin(pose[2]) <= 0.0:
                    gap += AGAINST
                if gap < best:
                    position, best_lane, best = i, lane, gap
    return position, best_lane


@njit(cache=True, nogil=True)
def _way_on(
    position: int,
    lane: int,
    route: np.ndarray,
    cost: np.ndarray,
    roadblock: np.ndarray,
    successors: np.ndarray,
    successor_offsets: np.ndarray,
    neighbors: np.ndarray,
    place: np.ndarray,
) -> tuple[float, int, int]:
    """(lane changes, exit lane, next lane) of the best way from a lane of route[position] into route[position + 1]."""
    best, best_exit, best_next = np.inf, -1, -1
    for side in range(2):
        at, changes = lane, 0
        while at >= 0 and roadblock[at] == route[position]:
            for k in range(successor_offsets[at], successor_offsets[at + 1]):
                follower = successors[k]
                if roadblock[follower] == route[position + 1]:
                    price = changes + cost[position + 1, place[follower]]
                    if price < best:
                        best, best_exit, best_next = price, at, follower
            at = neighbors[at, side]
            changes += 1
    return best, best_exit, best_next


@njit(cache=True, nogil=True)
def _strips(
    route: np.ndarray,
    pose: np.ndarray,
    lines: np.ndarray,
    roadblock: np.ndarray,
    successors: np.ndarray,
    successor_offsets: np.ndarray,
    neighbors: np.ndarray,
    members: np.ndarray,
    member_offsets: np.ndarray,
    length: float,
) -> tuple[np.ndarray, np.ndarray]:
    """The strips to drive from the ego on: entry and exit lane of each (they differ where the lane is changed)."""
    entry, exit_, count = np.empty(MOST_STRIPS, np.int64), np.empty(MOST_STRIPS, np.int64), 0
    start, lane = _start_on_route(route, pose, lines, members, member_offsets)
    if start < 0:
        return entry[:0], exit_[:0]
    end = min(len(route), start + MOST_STRIPS)
    widest = 1
    for i in range(start, end):
        widest = max(widest, member_offsets[route[i] + 1] - member_offsets[route[i]])
    place = np.empty(len(lines), np.int64)
    cost = np.zeros((end, widest))  # lane changes from a lane to the route's end, or to where it breaks
    linked = np.zeros(end, np.bool_)
    for i in range(end - 1, start - 1, -1):
        first, last = member_offsets[route[i]], member_offsets[route[i] + 1]
        for m in range(first, last):
            place[members[m]] = m - first
        if i + 1 < end:
            for m in range(first, last):
                way = _way_on(i, members[m], route, cost, roadblock, successors, successor_offsets, neighbors, place)
                cost[i, m - first] = way[0]
                linked[i] = linked[i] or way[0] < np.inf
            if not linked[i]:
                cost[i] = 0.0
    driven = -_project(lines[lane], pose)
    for i in range(start, end):
        if count == MOST_STRIPS or driven > length:
            return entry[:count], exit_[:count]
        way = (np.inf, -1, -1)
        if linked[i]:
            way = _way_on(i, lane, route, cost, roadblock, successors, successor_offsets, neighbors, place)
        entry[count], exit_[count] = lane, (lane if way[2] < 0 else way[1])
        driven += line_length(lines[exit_[count]])
        count += 1
        if way[2] < 0:
            break
        lane = way[2]
    while count < MOST_STRIPS and driven <= length:
        lane = straight_on(exit_[count - 1], lines, successors, successor_offsets)
        if lane < 0:
            break
        entry[count], exit_[count] = lane, lane
        driven += line_length(lines[lane])
        count += 1
    return entry[:count], exit_[:count]


@njit(cache=True, nogil=True)
def straight_on(lane: int, lines: np.ndarray, successors: np.ndarray, successor_offsets: np.ndarray) -> int:
    """The successor that turns least from its begin to its end, the first among equals; -1 where the map ends."""
    best, least = -1, np.inf
    heading = _line_direction(lines, lane, LANE_POINTS - 1)
    for k in range(successor_offsets[lane], successor_offsets[lane + 1]):
        turn = abs(wrap_angle(_line_direction(lines, successors[k], LANE_POINTS - 1) - heading))
        if turn < least:
            best, least = successors[k], turn
    return best


@njit(cache=True, nogil=True)
def line_length(line: np.ndarray) -> float:
    total = 0.0
    for p in range(len(line) - 1):
        total += math.hypot(line[p + 1, 0] - line[p, 0], line[p + 1, 1] - line[p, 1])
    return total


@njit(cache=True, nogil=True)
def _project(line: np.ndarray, pose: np.ndarray) -> float:
    """Arc length of the ego on the centre of a line (n, 6)."""
    return project_on_line(pose[0], pose[1], line[:, :2], 0, len(line))


@njit(cache=True, nogil=True)
def _sample(
    entry: np.ndarray, exit_: np.ndarray, lines: np.ndarray, pose: np.ndarray, spacing: float, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """(n <= count, 6) centre, left, right every `spacing` metres from the ego on, and the lane (n,) of each point.

    Where entry and exit lane differ, the line crosses from the one to the other along the strip.
    """
    joined = np.empty((len(entry) * LANE_POINTS, 6))
    for k in range(len(entry)):
        for p in range(LANE_POINTS):
            w = p / (LANE_POINTS - 1) if entry[k] != exit_[k] else 0.0
            joined[k * LANE_POINTS + p] = (1.0 - w) * lines[entry[k], p] + w * lines[exit_[k], p]
    target = _project(joined[:LANE_POINTS], pose)
    line, lanes, found = np.empty((count, 6)), np.empty(count, np.int64), 0
    passed, segment = 0.0, 0
    while found < count and segment < len(joined) - 1:
        here, there = joined[segment], joined[segment + 1]
        length = math.hypot(there[0] - here[0], there[1] - here[1])
        if target <= passed + length and length > 0.0:
            w = max(0.0, (target - passed) / length)
            line[found] = here + w * (there - here)
            strip = segment // LANE_POINTS
            lanes[found] = exit_[strip] if (segment % LANE_POINTS) * 2 >= LANE_POINTS else entry[strip]
            found += 1
            target += spacing
        else:
            passed += length
            segment += 1
    return line[:found], lanes[:found]
