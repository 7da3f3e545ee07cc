"""How a road user moves after it was changed: somewhere else, faster, slower, or new. Boxes (T, 5), columns Box."""

from __future__ import annotations

import numpy as np

from radp.road.arrays import road_arrays
from radp.road.headings import courses
from radp.road.lane_lines import lane_line, lane_lines, straight_on
from radp.road.match import match_lanes
from radp.scenario import Box, RoadMap

REACH = 500.0  # m that a path is known before and behind what was logged
STANDING = 0.5  # m/s below which a car stands: its logged way says nothing about how it would drive
NOISE = 0.02  # m between two logged places that count as one
MOST_LANES = 64


def moved(states: np.ndarray, now: int, pose: np.ndarray) -> np.ndarray:
    """The same motion, turned and shifted as a whole so that it is at `pose` (3,) in frame `now`."""
    x, y, heading = states[now, : Box.HEADING + 1]
    turn = pose[2] - heading
    c, s = np.cos(turn), np.sin(turn)
    turned = np.array([[c, s], [-s, c]])
    out = states.copy()
    out[:, : Box.HEADING] = (states[:, : Box.HEADING] - (x, y)) @ turned + pose[:2]
    out[:, Box.HEADING] += turn
    out[:, Box.VX :] = states[:, Box.VX :] @ turned
    return out


def at_speed(
    states: np.ndarray, valid: np.ndarray, seconds: np.ndarray, now: int, speed: float, onward: np.ndarray
) -> np.ndarray:
    """The same way (T, 5) at another speed [m/s] in frame `now`; `onward` (P, 3) is where it goes after its log.

    All speeds of the log grow or shrink by one factor. Who stands now drives evenly from now on, and did before.
    """
    known = np.flatnonzero(valid)
    way, poses = _path(states[known, : Box.HEADING + 1], onward)
    driven = np.hypot(*states[known, Box.VX :].T)
    here = int(np.searchsorted(known, now))
    present = np.hypot(*states[now, Box.VX :])
    if present >= STANDING:
        factor = speed / present
        station = np.concatenate(([0.0], np.cumsum(_steps(states[known, : Box.HEADING]))))
        places, speeds = station[here] + factor * (station - station[here]), factor * driven
    else:
        at = float(np.cumsum(_steps(states[known, : Box.HEADING]))[here - 1]) if here else 0.0
        places, speeds = at + speed * (seconds[known] - seconds[now]), np.full(len(known), speed)
    out = np.zeros_like(states)
    out[known] = _states_at(way, poses, places, speeds)
    return out


def new_motion(pose: np.ndarray, speed: float, seconds: np.ndarray, now: int, onward: np.ndarray) -> np.ndarray:
    """States (T, 5) of somebody who is at `pose` (3,) in frame `now`, came straight, and goes on along `onward`."""
    way, poses = _path(pose[None], onward)
    return _states_at(way, poses, speed * (seconds - seconds[now]), np.full(len(seconds), speed))


def onward_path(road_map: RoadMap, pose: np.ndarray) -> np.ndarray:
    """(P, 3) poses ahead of `pose` (3,) along its lane and those straight on, as far beside their centre as now.

    Straight ahead where there is no lane.
    """
    found = match_lanes(road_arrays(road_map), pose[None])
    ahead = _lanes_ahead(road_map, int(found[0])) if len(found) else np.zeros((0, 2))
    if len(ahead) > 1:
        course = courses(ahead)
        nearest = int(np.argmin(np.hypot(*(ahead - pose[:2]).T)))
        left = np.stack((-np.sin(course), np.cos(course)), -1)
        beside = float((pose[:2] - ahead[nearest]) @ left[nearest])
        line = np.column_stack((ahead + beside * left, np.unwrap(course)))[nearest:]
        forward = (line[:, :2] - pose[:2]) @ (np.cos(pose[2]), np.sin(pose[2])) > 1.0
        if forward.any():
            line = line[int(np.argmax(forward)) :]
            return np.concatenate((line, straight_path(line[-1])))
    return straight_path(pose)


def _lanes_ahead(road_map: RoadMap, lane: int) -> np.ndarray:
    """Centre points (P, 2) of a lane and of those straight on, for REACH metres at most."""
    graph, lines = road_arrays(road_map).graph, lane_lines(road_map)
    parts: list[np.ndarray] = []
    length = 0.0
    while lane >= 0 and length < REACH and len(parts) < MOST_LANES:
        parts.append(lane_line(lines, lane)[:, :2])
        length += float(lines.length[lane])
        lane = int(straight_on(graph, lines, lane))
    points = np.concatenate(parts)
    return points[np.concatenate(([True], _steps(points) > NOISE))]


def straight_path(pose: np.ndarray) -> np.ndarray:
    """(1, 3): the pose REACH metres straight ahead of `pose` (3,)."""
    x, y, heading = pose
    return np.array([[x + REACH * np.cos(heading), y + REACH * np.sin(heading), heading]])


def _path(poses: np.ndarray, onward: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Stations (P,) and poses (P, 3): straight to the first of `poses` (station 0), along them, then `onward`."""
    x, y, heading = poses[0]
    before = [[x - REACH * np.cos(heading), y - REACH * np.sin(heading), heading]]
    whole = np.concatenate((before, poses, onward))
    steps = _steps(whole[:, :2])
    kept = np.concatenate(([True], steps > NOISE))
    kept[1] = True  # station 0
    way = np.concatenate(([0.0], np.cumsum(steps))) - steps[0]
    whole[:, 2] = np.unwrap(whole[:, 2])
    return way[kept], whole[kept]


def _states_at(way: np.ndarray, poses: np.ndarray, places: np.ndarray, speeds: np.ndarray) -> np.ndarray:
    """States (K, 5) at stations `places` (K,) of a path; velocity points along it."""
    x, y, heading = (np.interp(places, way, column) for column in poses.T)
    piece = np.clip(np.searchsorted(way, places, side="right") - 1, 0, len(way) - 2)
    course = courses(poses[:, :2])[piece]
    return np.stack((x, y, heading, speeds * np.cos(course), speeds * np.sin(course)), -1)


def _steps(points: np.ndarray) -> np.ndarray:
    return np.hypot(*np.diff(points, axis=0).T)
