"""Features of PDM-Open and PDM-Offset: two seconds of the ego and the centre line of its way."""

from __future__ import annotations

import heapq
from functools import cache

import numpy as np
import shapely
from scipy.signal import savgol_filter

from radp.planners.zoo.batch import Sample
from radp.planners.zoo.pdm_open import LINE, PAST, POSE_STEP, POSES
from radp.planners.zoo.places import route_lanes, shapes_of, to_frame, vertex_headings, wrap
from radp.planners.zoo.view import WorldView
from radp.road.map_memory import remember
from radp.road.road_map import RoadMap
from radp.road.route import correct_route
from radp.scenario import PACIFICA, Ego

SEARCHED_BLOCKS = 30
EVERY = 2  # frames between samples of the past
DECIMALS = 8


def pdm_sample(view: WorldView, plan: np.ndarray | None = None) -> Sample:
    """plan (n, 4): seconds from now, x, y, heading of PDM-Closed's plan in the world, where the network corrects it."""
    sample = ego_history(view)
    line = centre_line(view)
    sample["planner_centerline"] = poses_ahead(line, view.pose)
    if plan is not None:
        at = POSE_STEP * np.arange(1, POSES + 1)
        heading = np.unwrap(plan[:, 3])
        world = np.stack([np.interp(at, plan[:, 0], column) for column in (plan[:, 1], plan[:, 2], heading)], 1)
        sample["planner_trajectory"] = relative(world, view.pose)
    return sample


def pdm_target(view: WorldView) -> np.ndarray:
    """(16, 3): where the ego was every 0.5 s after now."""
    every = round(POSE_STEP / 0.1)
    return relative(view.future_ego[every - 1 : every * POSES : every, :3], view.pose)


def relative(poses: np.ndarray, origin: np.ndarray) -> np.ndarray:
    """(n, 3) poses of the world -> (n, 3) in the frame of a pose (3,), headings wrapped."""
    return np.column_stack((to_frame(poses[:, :2], origin), wrap(poses[:, 2] - origin[2])))


def ego_history(view: WorldView) -> Sample:
    """ego_position, ego_velocity, ego_acceleration (11, 3), oldest first; velocity and acceleration at the centre."""
    rows = np.arange(-1 - EVERY * (PAST - 1), 0, EVERY)
    ego, time = view.ego[rows], view.time_us[rows] * 1e-6
    ahead, rate, accel = PACIFICA.rear_axle_to_center, ego[:, Ego.YAW_RATE], ego[:, Ego.YAW_ACCEL]
    step, heading = float(np.mean(np.diff(time))), np.unwrap(ego[:, Ego.HEADING])
    velocity = np.stack((ego[:, Ego.VX], ego[:, Ego.VY] + ahead * rate, _derivative(heading, 2, 1, step)), 1)
    centre = np.stack((ego[:, Ego.AX] + ahead * (rate**2 + accel), ego[:, Ego.AY]), 1)
    smooth = np.round(_smoother(8, 2, 0) @ centre, DECIMALS)
    return {
        "ego_position": relative(ego[:, :3], view.pose).astype(np.float32),
        "ego_velocity": velocity,
        "ego_acceleration": np.column_stack((smooth, _derivative(heading, 3, 2, step))),
    }


def _derivative(values: np.ndarray, order: int, times: int, step: float) -> np.ndarray:
    return np.round(_smoother(5, order, times) @ values / step**times, DECIMALS)


@cache
def _smoother(window: int, order: int, times: int) -> np.ndarray:
    """(11, 11): the Savitzky-Golay filter over the past, which is linear, as a matrix; for steps of 1."""
    return np.asarray(savgol_filter(np.eye(PAST), window, order, deriv=times, axis=0))


def centre_line(view: WorldView) -> np.ndarray:
    """(n, 3) x, y, unwrapped heading: the raw vertices of the lanes to drive, from the begin of the first one."""
    blocks = corrected_route(view)
    start = starting_lane(view, blocks)
    if start < 0:
        ahead = np.array([np.cos(view.pose[2]), np.sin(view.pose[2]), 0.0])
        return np.stack((view.pose, view.pose + ahead))
    lanes = remember(view.road, ("pdm lanes", tuple(blocks), start), lambda: lane_sequence(view.road, blocks, start))
    lines = [view.road.centerlines[lane] for lane in lanes]
    heading = np.unwrap(np.concatenate([vertex_headings(line) for line in lines]))
    return np.column_stack((np.concatenate(lines), heading))


def corrected_route(view: WorldView) -> np.ndarray:
    """Roadblocks of the route, corrected where the drive began and kept from then on."""
    return correct_route(view.road, tuple(dict.fromkeys(view.route)), view.start)


def starting_lane(view: WorldView, blocks: np.ndarray) -> int:
    """The lane of the route under the rear axle that runs most as the ego looks; else the nearest one; -1: no route."""
    lanes, shapes = route_lanes(view.road, blocks), shapes_of(view.road)
    if not len(lanes):
        return -1
    here = shapely.Point(view.pose[:2])
    under = np.sort(lanes[shapely.intersects(shapes.lanes[lanes], here)])
    if len(under):
        return int(under[np.argmin([_turned(view, lane) for lane in under])])
    inside = shapely.contains(shapes.lanes[lanes], shapely.Point(view.centre))
    if inside.any():
        return int(lanes[np.argmax(inside)])
    return int(lanes[np.argmin(shapely.distance(shapes.lanes[lanes], ego_box(view)))])


def _turned(view: WorldView, lane: int) -> float:
    line = view.road.centerlines[lane]
    nearest = np.argmin(np.hypot(*(line - view.pose[:2]).T))
    return float(abs(wrap(vertex_headings(line)[nearest] - view.pose[2])))


def ego_box(view: WorldView) -> shapely.Geometry:
    ahead = np.array([np.cos(view.pose[2]), np.sin(view.pose[2])]) * PACIFICA.length / 2
    aside = np.array([-ahead[1], ahead[0]]) * PACIFICA.width / PACIFICA.length
    signs = ((1, 1), (-1, 1), (-1, -1), (1, -1))
    return shapely.Polygon([view.centre + a * ahead + b * aside for a, b in signs])


def lane_sequence(road: RoadMap, blocks: np.ndarray, start: int) -> list[int]:
    """Shortest way over lanes of the route to the 30th block from the start, or to the last one; the price of a step
    is the length of the lane entered. Where no way leads there: the deepest one found, the cheapest among equals."""
    allowed, length = set(route_lanes(road, blocks).tolist()), shapes_of(road).length
    first = int(np.argmax(blocks == road.roadblock[start])) if road.roadblock[start] in blocks else 0
    target = blocks[min(first + SEARCHED_BLOCKS, len(blocks)) - 1]
    price, before, depth = {start: 0.0}, {start: -1}, {start: 0}
    queue, count, done = [(0.0, 0, start)], 1, set()
    end = -1
    while queue:
        cost, _, lane = heapq.heappop(queue)
        if lane in done:
            continue
        done.add(lane)
        if road.roadblock[lane] == target:
            end = lane
            break
        for after in road.successors[lane].tolist():
            reached = cost + length[after]
            if after in allowed and after not in done and reached < price.get(after, np.inf):
                price[after], before[after], depth[after] = reached, lane, depth[lane] + 1
                heapq.heappush(queue, (reached, count, after))
                count += 1
    if end < 0:
        end = min(done, key=lambda lane: (-depth[lane], price[lane]))
    way = [end]
    while before[way[-1]] >= 0:
        way.append(before[way[-1]])
    return way[::-1]


def poses_ahead(line: np.ndarray, pose: np.ndarray, count: int = LINE) -> np.ndarray:
    """(count, 3): every metre along a centre line from the projection of a pose (3,), in its frame; the last pose
    repeats beyond the end."""
    s = np.concatenate(([0.0], np.cumsum(np.hypot(*np.diff(line[:, :2], axis=0).T))))
    at = shapely.LineString(line[:, :2]).project(shapely.Point(pose[:2])) + np.arange(count)
    at = np.clip(at, 1e-5, s[-1])
    return relative(np.stack([np.interp(at, s, column) for column in line.T], 1), pose)
