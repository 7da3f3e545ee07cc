"""Planning problems of a CommonRoad file as scenarios: a start, a goal, and nobody who drove between them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from xml.etree.ElementTree import Element

import numpy as np

from radp.road.arrays import road_arrays
from radp.road.headings import courses, heading_at
from radp.road.lane_lines import lane_line, lane_lines
from radp.road.match import match_lanes
from radp.scenario import DT, PACIFICA, Box, Ego, RoadMap, Scenario, Tracks
from radp.scenario.as_ego import route_of_path
from radp.scenario.recording import Recording, no_lights
from radp.sources.commonroad.states import number, read_state
from radp.sources.convert import UNKNOWN, Refused

KIND = "planning_problem"
EXPERT = "expert"  # what the log does not know: metrics that need it have no value
SHORTEST = 10  # frames of a drive
TIMES = ("exact", "intervalStart", "intervalEnd")


def problem_scenarios(root: Element, log: Recording, dt: float) -> Iterator[Scenario | Refused]:
    """One scenario for each planning problem; it begins at the problem's initial time and lasts as long as the log."""
    for problem in root.findall("planningProblem"):
        token = f"{log.token}:problem-{problem.attrib.get('id', '')}"
        try:
            yield _scenario(problem, log, token, dt)
        except (ValueError, KeyError) as error:
            yield Refused(token, f"planning problem: {error}")


def _scenario(problem: Element, log: Recording, token: str, dt: float) -> Scenario:
    initial = problem.find("initialState")
    if initial is None:
        raise ValueError("it has no <initialState>")
    box = read_state(initial)
    if not np.isfinite(box).all():
        raise ValueError("its initial position is not a point")
    first = round(number(initial, "time") * _frames_per_unit(problem, dt)) if initial.find("time") is not None else 0
    frames = len(log.time_us) - first
    if not (first >= 0 and frames >= SHORTEST):
        raise ValueError(f"it begins in frame {first}, and the recorded traffic has {len(log.time_us)}")
    goal = _goal(problem, log.map)
    route, _ = route_of_path(log.map, _way(log.map, box[: Box.VX], goal))
    tracks = log.tracks
    return Scenario(
        token=token,
        kind=KIND,
        source=log.source,
        map=log.map,
        time_us=log.time_us[first:],
        ego=_ego(box, frames),
        tracks=Tracks(tracks.ids, tracks.type, tracks.size, tracks.state[:, first:], tracks.valid[:, first:]),
        lights=no_lights(frames),
        route=route,
        goal=goal,
        start=0,
        dt=log.dt,
        tags={**log.tags, UNKNOWN: ", ".join((log.tags[UNKNOWN], EXPERT)), "ego": "problem"},
    )


def _frames_per_unit(problem: Element, dt: float) -> float:
    """Before 2018b times are seconds, later they count steps of dt; seconds have fractions."""
    times = [float(e.text or "nan") for time in problem.iter("time") for e in time if e.tag in TIMES]
    in_seconds = any(abs(t - round(t)) > 1e-6 for t in times)
    return 1.0 / DT if in_seconds else dt / DT


def _ego(box: np.ndarray, frames: int) -> np.ndarray:
    """(frames, 11): the start, at which the ego then stays, since nobody knows where it would have gone."""
    heading = box[Box.HEADING]
    ego = np.zeros((frames, len(Ego)))
    ego[:, Ego.X] = box[Box.X] - PACIFICA.rear_axle_to_center * np.cos(heading)
    ego[:, Ego.Y] = box[Box.Y] - PACIFICA.rear_axle_to_center * np.sin(heading)
    ego[:, Ego.HEADING] = heading
    ego[0, Ego.VX] = np.hypot(box[Box.VX], box[Box.VY])
    return ego


def _goal(problem: Element, road: RoadMap) -> np.ndarray | None:
    """(3,) the middle of the goal's area, or the end of its lanelet; None where only a time or a speed is asked."""
    for state in problem.findall("goalState"):
        centre = state.find("position/rectangle/center")
        centre = state.find("position/circle/center") if centre is None else centre
        if centre is not None:
            x, y = number(centre, "x"), number(centre, "y")
            asked = state.find("orientation") is not None
            return np.array([x, y, number(state, "orientation") if asked else heading_at(road, x, y)])
        for lanelet in state.findall("position/lanelet"):
            lane = road.lane_index.get(lanelet.attrib.get("ref", ""))
            if lane is not None:
                line = lane_line(lane_lines(road), lane)[:, :2]
                return np.array([*line[-1], courses(line)[-1]])
    return None


def _way(road: RoadMap, start: np.ndarray, goal: np.ndarray | None) -> np.ndarray:
    """Poses (n, 3) from the start along the fewest lanes to the goal; the start alone where no lanes lead there."""
    if goal is None:
        return start[None]
    arrays = road_arrays(road)
    here, there = match_lanes(arrays, start[None]), match_lanes(arrays, goal[None])
    if not len(here) or not len(there):
        return start[None]
    lines, poses = lane_lines(road), [start]
    for lane in _fewest_lanes(road, int(here[0]), int(there[0]))[1:]:
        points = lane_line(lines, lane)[:, :2]
        middle = len(points) // 2
        poses.append(np.array([*points[middle], courses(points)[middle]]))
    return np.stack(poses)


def _fewest_lanes(road: RoadMap, start: int, end: int) -> list[int]:
    """Lanes from start to end over successors and neighbours, both included; the start alone if there is no way."""
    before, waiting = {start: -1}, deque([start])
    while waiting and end not in before:
        lane = waiting.popleft()
        beside = (int(road.left_neighbor[lane]), int(road.right_neighbor[lane]))
        for other in (*(int(i) for i in road.successors[lane]), *(i for i in beside if i >= 0)):
            if other not in before:
                before[other] = lane
                waiting.append(other)
    lanes = [end if end in before else start]
    while before[lanes[-1]] >= 0:
        lanes.append(before[lanes[-1]])
    return lanes[::-1]
