"""The scene builder once more, written plainly from the description of the layout with numpy and shapely."""

from __future__ import annotations

import math

import numpy as np
import shapely

from radp.road.route import correct_route
from radp.scenario import LightState, ObjectType, Scenario

MOVING = [ObjectType.VEHICLE, ObjectType.PEDESTRIAN, ObjectType.BICYCLE]
STANDING = [ObjectType.CZONE_SIGN, ObjectType.BARRIER, ObjectType.TRAFFIC_CONE, ObjectType.GENERIC_OBJECT]


def rotation(heading: float) -> np.ndarray:
    """World vectors (n, 2) @ rotation -> ego frame."""
    return np.array([[math.cos(heading), -math.sin(heading)], [math.sin(heading), math.cos(heading)]])


def local(points: np.ndarray, pose: np.ndarray) -> np.ndarray:
    return (np.asarray(points) - pose[:2]) @ rotation(pose[2])


def angle(value: float) -> float:
    return math.remainder(value, 2 * math.pi)


def reference_scene(
    scenario: Scenario, frame: int
) -> tuple[dict[str, np.ndarray], list[tuple[float, float]], list[int]]:
    """One log frame -> fields of the Scene, no batch axis, float64; the two distances that order the lanes; rows of the
    lanes that are on the route."""
    pose = scenario.ego[frame, :3]
    rows = choose_agents(scenario, frame, pose)
    lanes, keys = choose_lanes(scenario, pose)
    tensors = [lane_tensor(scenario, frame, lane, pose) for lane in lanes]
    limits = [(scenario.map.speed_limit[lane], scenario.map.has_speed_limit[lane]) for lane in lanes]
    on_route = route_rows(scenario, pose, lanes)
    fields = {
        "ego_current_state": ego_state(scenario, frame),
        "neighbor_agents_past": pad([agent_past(scenario, frame, a, pose) for a in rows], (32, 21, 11)),
        "static_objects": pad(static_rows(scenario, frame, pose), (5, 10)),
        "lanes": pad(tensors, (70, 20, 12)),
        "lanes_speed_limit": pad([[limit] for limit, _ in limits], (70, 1)),
        "lanes_has_speed_limit": pad([[has] for _, has in limits], (70, 1)),
        "ego_agent_future": pad(ego_future(scenario, frame), (80, 3)),
        "neighbor_agents_future": pad([agent_future(scenario, frame, a, pose) for a in rows], (32, 80, 3)),
    }
    return fields, keys, on_route


def pad(rows: list, shape: tuple[int, ...]) -> np.ndarray:
    out = np.zeros(shape)
    for i, row in enumerate(rows[: shape[0]]):
        out[i] = row
    return out


def ego_state(scenario: Scenario, frame: int) -> np.ndarray:
    vx, vy, ax, ay = scenario.ego[frame, 3:7]
    turn = angle(scenario.ego[frame, 2] - scenario.ego[max(0, frame - 1), 2])
    yaw_rate = min(0.95, max(-0.95, turn / 0.1))
    steering = math.atan(yaw_rate * 3.089 / abs(vx)) if abs(vx) >= 0.2 else 0.0
    return np.array([0, 0, 1, 0, vx, vy, ax, ay, steering, yaw_rate if abs(vx) >= 0.2 else 0.0])


def ego_future(scenario: Scenario, frame: int) -> list[list[float]]:
    pose = scenario.ego[frame, :3]
    after = scenario.ego[frame + 1 : frame + 81]
    return [[*local(state[:2], pose), angle(state[2] - pose[2])] for state in after]


def near(scenario: Scenario, frame: int, pose: np.ndarray, kinds: list[ObjectType]) -> list[int]:
    tracks = scenario.tracks
    there = [a for a in range(len(tracks)) if tracks.valid[a, frame] and tracks.type[a] in kinds]
    return sorted(there, key=lambda a: math.dist(tracks.state[a, frame, :2], pose[:2]))


def choose_agents(scenario: Scenario, frame: int, pose: np.ndarray) -> list[int]:
    everyone = near(scenario, frame, pose, MOVING)
    if len(everyone) <= 32:
        return everyone
    vehicles = [a for a in everyone if scenario.tracks.type[a] == ObjectType.VEHICLE]
    walkers = [a for a in everyone if scenario.tracks.type[a] != ObjectType.VEHICLE]
    taken = vehicles + walkers[:10]
    taken += walkers[10:][: max(0, 32 - len(taken))]
    return [a for a in everyone if a in set(taken)][:32]


def agent_past(scenario: Scenario, frame: int, a: int, pose: np.ndarray) -> np.ndarray:
    tracks, rows, state = scenario.tracks, [], None
    for t in range(frame, frame - 21, -1):
        if t >= 0 and tracks.valid[a, t]:
            state = tracks.state[a, t]
        heading = state[2] - pose[2]
        velocity = state[3:5] @ rotation(pose[2])
        kind = [float(tracks.type[a] == k) for k in MOVING]
        size = [tracks.size[a, 1], tracks.size[a, 0]]
        rows.append([*local(state[:2], pose), math.cos(heading), math.sin(heading), *velocity, *size, *kind])
    return np.array(rows[::-1])


def agent_future(scenario: Scenario, frame: int, a: int, pose: np.ndarray) -> np.ndarray:
    out, tracks = np.zeros((80, 3)), scenario.tracks
    for k, t in enumerate(range(frame + 1, min(frame + 81, len(scenario.time_us)))):
        if tracks.valid[a, t]:
            out[k] = [*local(tracks.state[a, t, :2], pose), angle(tracks.state[a, t, 2] - pose[2])]
    return out


def static_rows(scenario: Scenario, frame: int, pose: np.ndarray) -> list[list[float]]:
    rows = []
    for a in near(scenario, frame, pose, STANDING)[:5]:
        state, size = scenario.tracks.state[a, frame], scenario.tracks.size[a]
        heading = state[2] - pose[2]
        kind = [float(scenario.tracks.type[a] == k) for k in STANDING]
        rows.append([*local(state[:2], pose), math.cos(heading), math.sin(heading), size[1], size[0], *kind])
    return rows


def choose_lanes(scenario: Scenario, pose: np.ndarray) -> tuple[list[int], list[tuple[float, float]]]:
    """The lanes in order and (centreline point distance, area distance) of each."""
    road, here = scenario.map, shapely.Point(pose[:2])
    areas = [shapely.Polygon(road.lane_polygons[i][0]) for i in range(len(road))]
    area_gap = [float(here.distance(area)) for area in areas]
    point_gap = [min(math.dist(point, pose[:2]) for point in road.centerlines[i]) for i in range(len(road))]
    order = [i for i in range(len(road)) if not road.is_connector[i]]
    order += [i for i in range(len(road)) if road.is_connector[i]]
    order = [i for i in order if area_gap[i] <= 100.0]
    order.sort(key=lambda i: area_gap[i])
    order.sort(key=lambda i: point_gap[i])
    return order[:70], [(point_gap[i], area_gap[i]) for i in order[:70]]


def resample(line: np.ndarray) -> np.ndarray:
    s = np.concatenate(([0.0], np.cumsum(np.hypot(*np.diff(line, axis=0).T))))
    even = np.linspace(0.0, s[-1], 20)
    return np.stack((np.interp(even, s, line[:, 0]), np.interp(even, s, line[:, 1])), 1)


def lane_tensor(scenario: Scenario, frame: int, lane: int, pose: np.ndarray) -> np.ndarray:
    road = scenario.map
    centre = local(resample(road.centerlines[lane]), pose)
    borders = []
    for side in (road.left, road.right):
        border = local(resample(side[lane]), pose)
        if math.dist(border[-1], centre[0]) < math.dist(border[0], centre[0]):
            border = border[::-1]
        borders.append(border - centre)
    step = np.zeros((20, 2))
    step[:-1] = centre[1:] - centre[:-1]
    known = {int(i): LightState(s) for i, s in zip(scenario.lights.lane, scenario.lights.state[frame])}
    light = known.get(lane, LightState.UNKNOWN)
    one_hot = {LightState.GREEN: [1, 0, 0, 0], LightState.RED: [0, 0, 1, 0]}.get(light, [0, 0, 0, 1])
    return np.concatenate((centre, step, *borders, np.tile(one_hot, (20, 1))), 1)


def route_rows(scenario: Scenario, pose: np.ndarray, lanes: list[int]) -> list[int]:
    road = scenario.map
    names = [int(road.roadblock[lane]) for lane in lanes]
    run: list[int] = []
    for block in correct_route(road, scenario.route, pose).tolist():
        if block in names:
            run.append(block)
        elif run:
            break
    return [i for i, name in enumerate(names) if name in run]
