"""Features of planTF and PLUTO: agents and map polygons in the rear-axle frame of now.

`world_sample` gathers them in the world frame, `to_ego_frame` turns them, cuts the map and makes the targets.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import shapely

from radp.planners.zoo.batch import Sample
from radp.planners.zoo.places import by_length, drawn_once, meets, shapes_of, square, turn_back, wrap
from radp.planners.zoo.tokens import PAST
from radp.planners.zoo.view import WorldView
from radp.road.map_memory import remember
from radp.road.road_map import RoadMap
from radp.road.route import correct_route
from radp.scenario import DT, PACIFICA, Box, Ego, LightState, ObjectType

POINTS = 20
SLOW = 0.2  # m/s below which steering and yaw rate count as 0
MAX_YAW_RATE, MAX_STEERING = 0.95, 2 * np.pi / 3
LANE, CONNECTOR, CROSSWALK = 0, 1, 2
NO_LIGHT = 3
LIGHTS = np.full(len(LightState), NO_LIGHT, dtype=np.int8)  # by LightState
LIGHTS[[LightState.GREEN, LightState.YELLOW, LightState.RED]] = 0, 1, 2
CATEGORIES = {ObjectType.VEHICLE: 1, ObjectType.PEDESTRIAN: 2, ObjectType.BICYCLE: 3}


@dataclass(frozen=True)
class Reach:
    """How far a planner looks. `plain_category`: in closed loop published planTF takes everybody for an ego."""

    radius: float
    agents: int
    plain_category: bool


PLANTF_REACH = Reach(100.0, 32, plain_category=True)
PLANTF_REACH_KNOWING = replace(PLANTF_REACH, plain_category=False)
PLUTO_REACH = Reach(120.0, 48, plain_category=False)


def vector_sample(view: WorldView, reach: Reach) -> Sample:
    """All inputs of planTF for one moment; with a future also agent/target."""
    sample = world_sample(view, reach)
    if reach.plain_category and not len(view.future_ego):
        sample["agent/category"] = np.zeros_like(sample["agent/category"])
    return to_ego_frame(sample, reach.radius)


def world_sample(view: WorldView, reach: Reach) -> Sample:
    return {"current_state": current_state(view), **_agents(view, reach.agents), **_map(view, reach.radius)}


def current_state(view: WorldView) -> np.ndarray:
    """(7,) x, y, yaw in the world, speed and acceleration ahead, steering and yaw rate from the last 0.1 s."""
    now, before = view.ego[-1], view.ego[-2]
    speed, steering, rate = abs(now[Ego.VX]), 0.0, 0.0
    if speed >= SLOW:
        rate = float(wrap(now[Ego.HEADING] - before[Ego.HEADING])) / DT
        steering = float(np.clip(np.arctan(rate * PACIFICA.wheel_base / speed), -MAX_STEERING, MAX_STEERING))
        rate = float(np.clip(rate, -MAX_YAW_RATE, MAX_YAW_RATE))
    return np.array([*now[:3], now[Ego.VX], now[Ego.AX], steering, rate])


def _agents(view: WorldView, most: int) -> Sample:
    """The ego first, then the others of now, nearest first; frames in which somebody was not seen are zeros."""
    ego = np.concatenate((view.ego[-PAST:], view.future_ego))
    states = np.concatenate((view.agents[-PAST:], view.future_agents)).transpose(1, 0, 2)
    valid = np.concatenate((view.valid[-PAST:], view.future_valid)).T
    moving = np.flatnonzero(np.isin(view.types, list(CATEGORIES)) & view.valid[-1])
    apart = np.hypot(*(view.agents[-1, moving, :2] - view.centre).T)
    chosen = moving[np.argsort(apart, kind="stable")][:most]
    others, seen = states[chosen] * valid[chosen, :, None], valid[chosen]
    size = view.sizes[chosen, None, 1::-1] * seen[..., None]
    own = turn_back(ego[:, [Ego.VX, Ego.VY]], -ego[:, Ego.HEADING])
    shape = np.broadcast_to([PACIFICA.width, PACIFICA.length], (1, len(ego), 2))
    return {
        "agent/position": np.concatenate((ego[None, :, :2], others[..., :2])),
        "agent/heading": np.concatenate((ego[None, :, Ego.HEADING], others[..., Box.HEADING])),
        "agent/velocity": np.concatenate((own[None], others[..., [Box.VX, Box.VY]])),
        "agent/shape": np.concatenate((shape, size)),
        "agent/category": np.array([0, *(CATEGORIES[ObjectType(t)] for t in view.types[chosen])], dtype=np.int8),
        "agent/valid_mask": np.concatenate((np.ones((1, len(ego)), dtype=bool), seen)),
    }


def _map(view: WorldView, radius: float) -> Sample:
    """Lanes, connectors and crosswalks whose area meets the square round the ego, in the map's order."""
    road, shapes, area = view.road, shapes_of(view.road), square(view.centre, radius)
    lanes = meets(shapes.lanes, area)
    lanes = np.concatenate((lanes[~road.is_connector[lanes]], lanes[road.is_connector[lanes]]))
    crosswalks = meets(shapes.crosswalks, area)
    edges = np.concatenate((_lane_edges(road)[lanes], _crosswalk_edges(road)[crosswalks]))
    vector = np.diff(edges, axis=2)
    orientation = np.arctan2(vector[..., 1], vector[..., 0])
    count, other = len(lanes), len(crosswalks)
    route = correct_route(road, view.route, view.pose)
    lights = np.full(len(road), NO_LIGHT, dtype=np.int8)
    lights[view.light_lanes] = LIGHTS[view.light_states]
    kind = np.where(road.is_connector[lanes], CONNECTOR, LANE)
    middle = POINTS // 2
    return {
        "map/point_position": edges[:, :, :-1],
        "map/point_vector": vector,
        "map/point_orientation": orientation,
        "map/point_side": np.tile(np.arange(3, dtype=np.int8), (count + other, 1)),
        "map/polygon_center": np.concatenate((edges[:, 0, middle], orientation[:, 0, middle, None]), -1),
        "map/polygon_position": edges[:, 0, 0],
        "map/polygon_orientation": orientation[:, 0, 0],
        "map/polygon_type": np.append(kind, np.full(other, CROSSWALK)).astype(np.int8),
        "map/polygon_on_route": np.append(np.isin(road.roadblock[lanes], route), np.zeros(other, dtype=bool)),
        "map/polygon_tl_status": np.append(lights[lanes], np.full(other, NO_LIGHT, dtype=np.int8)),
        "map/polygon_has_speed_limit": np.append(road.has_speed_limit[lanes], np.zeros(other, dtype=bool)),
        "map/polygon_speed_limit": np.append(road.speed_limit[lanes], np.zeros(other)),
    }


def _lane_edges(road: RoadMap) -> np.ndarray:
    """(L, 3, 21, 2): centre, left and right line of every lane."""
    sides = (("centerlines", road.centerlines), ("left", road.left), ("right", road.right))
    return remember(
        road,
        "published lane edges",
        lambda: np.stack([drawn_once(road, name, line, by_length, POINTS + 1) for name, line in sides], 1),
    )


def _crosswalk_edges(road: RoadMap) -> np.ndarray:
    """(C, 3, 21, 2)."""
    polygons = shapes_of(road).crosswalks
    return remember(
        road,
        "published crosswalk edges",
        lambda: np.array([_crosswalk(polygon) for polygon in polygons]).reshape(-1, 3, POINTS + 1, 2),
    )


def _crosswalk(polygon: shapely.Geometry) -> list[np.ndarray]:
    """Middle, left and right edge of the smallest rectangle round it, (21, 2) each."""
    corners = shapely.get_coordinates(shapely.minimum_rotated_rectangle(polygon))
    right, left = np.linspace(corners[3], corners[0], POINTS + 1), np.linspace(corners[2], corners[1], POINTS + 1)
    return [(right + left) / 2, left, right]


def to_ego_frame(sample: Sample, radius: float | None) -> Sample:
    """Everything in the frame of the pose in current_state; polygons with no point within `radius` are dropped (None:
    all are kept, with the validity that they have). agent/target is made of what comes after now."""
    origin, angle = sample["current_state"][:2].copy(), float(sample["current_state"][2])
    out = dict(sample)
    out["current_state"] = np.concatenate((np.zeros(3), sample["current_state"][3:]))
    shifted = ("agent/position", "map/point_position", "map/polygon_position", "static_objects/position",
               "reference_line/position")  # fmt: skip
    for name in shifted:
        if name in out:
            out[name] = turn_back(out[name] - origin, angle)
    for name in ("agent/velocity", "map/point_vector", "reference_line/vector"):
        if name in out:
            out[name] = turn_back(out[name], angle)
    for name in ("agent/heading", "map/point_orientation", "map/polygon_orientation", "static_objects/heading",
                 "reference_line/orientation"):  # fmt: skip
        if name in out:
            out[name] = out[name] - angle
    centre = out["map/polygon_center"]
    out["map/polygon_center"] = np.column_stack((turn_back(centre[:, :2] - origin, angle), centre[:, 2] - angle))
    now, valid = PAST - 1, out["agent/valid_mask"]
    moved = out["agent/position"][:, PAST:] - out["agent/position"][:, now, None]
    turned = out["agent/heading"][:, PAST:] - out["agent/heading"][:, now, None]
    out["agent/target"] = np.concatenate((moved, turned[..., None]), -1) * valid[:, PAST:, None]
    if radius is None:
        return out
    near = np.asarray((np.abs(out["map/point_position"][:, 0]) < radius).all(-1))
    out["map/valid_mask"] = near
    kept = near.any(-1)
    out = {name: value[kept] if name.startswith("map/") else value for name, value in out.items()}
    return out | {"origin": origin, "angle": np.array(angle)}
