"""Any logged vehicle as the ego: many drives to learn from in one log."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from radp.road.arrays import road_arrays
from radp.road.lane_lines import end_heading, lane_line, lane_lines, project_on_lane, straight_on
from radp.road.match import match_lanes, thin_path
from radp.scenario import PACIFICA, Box, Ego, ObjectType, RoadMap, Scenario, Tracks, TrafficLights

EGO_TRACK = "ego"
BEYOND = 200.0  # m by which a route goes on after the last logged pose: more than any scene shows of it
MOST_STRIPS = 64
MIN_TRAVEL = 5.0  # m that a vehicle must drive in the log to be worth learning from
MIN_ON_ROAD = 0.9  # share of its path that must lie on lanes
SLOW = 0.2  # m/s below which there is no steering angle


def as_ego(scenario: Scenario, track_id: str) -> Scenario:
    """The same log seen from another vehicle, cut to the longest time in which that vehicle is tracked throughout.

    The rear axle lies as far behind the box centre, in parts of the vehicle's length, as a Pacifica's; planners and
    metrics nevertheless take the ego for a Pacifica. The old ego becomes the last track, named "ego". The route is the
    vehicle's own chain of roadblocks, which then goes straight on for 200 m, so that it does not tell where the log
    ends.
    """
    if track_id not in scenario.tracks.ids:
        raise ValueError(f"scenario {scenario.token!r} has no track {track_id!r}")
    track = scenario.tracks.ids.index(track_id)
    if scenario.tracks.type[track] != ObjectType.VEHICLE:
        kind = ObjectType(scenario.tracks.type[track]).name
        raise ValueError(f"scenario {scenario.token!r}: track {track_id!r} is a {kind}, only a VEHICLE can be the ego")
    window = longest_run(scenario.tracks.valid[track])
    if window.stop - window.start < 2:
        raise ValueError(f"scenario {scenario.token!r}: track {track_id!r} is never tracked for two frames in a row")
    time_us = scenario.time_us[window]
    boxes = scenario.tracks.state[track, window]
    route, goal = route_of_path(scenario.map, boxes[:, :3])
    return replace(
        scenario,
        token=f"{scenario.token}:{track_id}",
        time_us=time_us,
        ego=ego_from_track(boxes, scenario.tracks.size[track], time_us),
        tracks=_swap(scenario, track, window),
        lights=TrafficLights(scenario.lights.lane, scenario.lights.state[window]),
        route=route,
        goal=goal,
        start=min(max(0, scenario.start - window.start), len(time_us) - 2),
        tags={**scenario.tags, "ego": track_id},
    )


def longest_run(valid: np.ndarray) -> slice:
    """(T,) bool -> the first of the longest stretches without a gap."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], valid, [False])).astype(np.int8)))
    if not len(edges):
        return slice(0, 0)
    first, last = edges[::2], edges[1::2]
    best = int(np.argmax(last - first))
    return slice(int(first[best]), int(last[best]))


def possible_egos(scenario: Scenario, frames: int) -> list[str]:
    """Tracks that can be the ego: vehicles tracked for `frames` frames in a row that drive 5 m or more, on lanes."""
    tracks, road = scenario.tracks, road_arrays(scenario.map)
    names = []
    for i in np.flatnonzero(tracks.type == ObjectType.VEHICLE):
        window = longest_run(tracks.valid[i])
        path = tracks.state[i, window, :3]
        if len(path) < frames or np.hypot(*np.diff(path[:, :2], axis=0).T).sum() < MIN_TRAVEL:
            continue
        thinned = thin_path(path)
        if len(match_lanes(road, thinned)) >= MIN_ON_ROAD * len(thinned):
            names.append(tracks.ids[i])
    return names


def route_of_path(road_map: RoadMap, poses: np.ndarray) -> tuple[tuple[str, ...], np.ndarray | None]:
    """poses (n, 3) of a path -> roadblock ids of its lanes and of 200 m straight on, and the pose (3,) at their end."""
    lanes = match_lanes(road_arrays(road_map), thin_path(poses)).tolist()
    if not lanes:
        return (), None
    lanes += _onward(road_map, lanes[-1], poses[-1])
    blocks = [int(road_map.roadblock[lane]) for lane in lanes]
    changes = [block for i, block in enumerate(blocks) if i == 0 or block != blocks[i - 1]]
    lines = lane_lines(road_map)
    goal = np.array([*lane_line(lines, lanes[-1])[-1, :2], end_heading(lines, lanes[-1])])
    return tuple(road_map.roadblocks.ids[block] for block in changes), goal


def _onward(road_map: RoadMap, lane: int, pose: np.ndarray) -> list[int]:
    """Lanes straight on from a lane until they reach 200 m beyond the pose, or the map ends."""
    graph, lines = road_arrays(road_map).graph, lane_lines(road_map)
    left = BEYOND - lines.length[lane] + project_on_lane(lines, lane, pose)
    onward: list[int] = []
    while left > 0 and len(onward) < MOST_STRIPS:
        lane = straight_on(graph, lines, lane)
        if lane < 0:
            break
        onward.append(lane)
        left -= lines.length[lane]
    return onward


def ego_from_track(boxes: np.ndarray, size: np.ndarray, time_us: np.ndarray) -> np.ndarray:
    """boxes (T, 5), size (3,) -> (T, 11) ego states at the rear axle; rates by central differences, ay = 0.

    Lateral acceleration is 0 as in the simulator's vehicle model.
    """
    seconds = (time_us - time_us[0]) / 1e6
    heading = boxes[:, Box.HEADING]
    c, s = np.cos(heading), np.sin(heading)
    back = PACIFICA.rear_axle_to_center * size[0] / PACIFICA.length
    ego = np.zeros((len(boxes), len(Ego)))
    ego[:, Ego.X], ego[:, Ego.Y] = boxes[:, Box.X] - back * c, boxes[:, Box.Y] - back * s
    ego[:, Ego.HEADING] = heading
    ego[:, Ego.YAW_RATE] = np.gradient(np.unwrap(heading), seconds)
    ego[:, Ego.VX] = c * boxes[:, Box.VX] + s * boxes[:, Box.VY]
    ego[:, Ego.VY] = c * boxes[:, Box.VY] - s * boxes[:, Box.VX] - back * ego[:, Ego.YAW_RATE]
    ego[:, Ego.AX] = np.gradient(ego[:, Ego.VX], seconds)
    ego[:, Ego.YAW_ACCEL] = np.gradient(ego[:, Ego.YAW_RATE], seconds)
    moving = np.abs(ego[:, Ego.VX]) >= SLOW
    ego[moving, Ego.STEERING] = np.arctan(PACIFICA.wheel_base * ego[moving, Ego.YAW_RATE] / np.abs(ego[moving, Ego.VX]))
    ego[:, Ego.STEERING_RATE] = np.gradient(ego[:, Ego.STEERING], seconds)
    return ego


def track_from_ego(ego: np.ndarray, time_us: np.ndarray) -> np.ndarray:
    """ego (T, 11) -> boxes (T, 5) of a Pacifica: the inverse of `ego_from_track` in pose and velocity."""
    ahead, heading = PACIFICA.rear_axle_to_center, ego[:, Ego.HEADING]
    c, s = np.cos(heading), np.sin(heading)
    sideways = ego[:, Ego.VY] + ahead * np.gradient(np.unwrap(heading), (time_us - time_us[0]) / 1e6)
    return np.stack(
        (
            ego[:, Ego.X] + ahead * c,
            ego[:, Ego.Y] + ahead * s,
            heading,
            c * ego[:, Ego.VX] - s * sideways,
            s * ego[:, Ego.VX] + c * sideways,
        ),
        1,
    )


def with_ego_track(scenario: Scenario) -> Tracks:
    """The tracks and, as the last one, the ego."""
    tracks, frames = scenario.tracks, len(scenario.time_us)
    size = np.array([[PACIFICA.length, PACIFICA.width, PACIFICA.height]])
    return Tracks(
        ids=(*tracks.ids, EGO_TRACK),
        type=np.append(tracks.type, np.uint8(ObjectType.VEHICLE)),
        size=np.concatenate((tracks.size, size)),
        state=np.concatenate((tracks.state, track_from_ego(scenario.ego, scenario.time_us)[None])),
        valid=np.concatenate((tracks.valid, np.ones((1, frames), dtype=bool))),
    )


def _swap(scenario: Scenario, track: int, window: slice) -> Tracks:
    """All tracks but one, and the ego as the last, in a window of time."""
    everyone = with_ego_track(scenario)
    keep = np.arange(len(everyone)) != track
    return Tracks(
        ids=tuple(name for i, name in enumerate(everyone.ids) if keep[i]),
        type=everyone.type[keep],
        size=everyone.size[keep],
        state=everyone.state[keep, window],
        valid=everyone.valid[keep, window],
    )
