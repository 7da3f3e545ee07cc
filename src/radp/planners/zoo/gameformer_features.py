"""Features of GameFormer: two seconds of everybody, lanes, crosswalks and route within 60 m.

As in the published program, global coordinates pass through float32 before they are made relative.
"""

from __future__ import annotations

import numpy as np
import shapely

from radp.planners.zoo.batch import Sample
from radp.planners.zoo.places import (
    backfilled,
    by_index,
    drawn_once,
    meets,
    route_in_square,
    route_lanes,
    shapes_of,
    square,
    to_frame,
    turn_back,
    wrap,
    yaw_rates,
)
from radp.planners.zoo.view import WorldView
from radp.road.map_memory import remember
from radp.road.road_map import RoadMap
from radp.scenario import Box, Ego, LightState, ObjectType

PAST, NEIGHBOURS = 21, 20
LANES, LANE_POINTS = 40, 50
CROSSWALKS, CROSSWALK_POINTS = 5, 30
ROUTE_LANES = 10
REACH = 60.0  # m, half the side of a square
BEHIND = -6.0  # m: who is further behind is left out in closed loop
KINDS = (ObjectType.VEHICLE, ObjectType.PEDESTRIAN, ObjectType.BICYCLE)
NO_LIGHT = 3
LIGHTS = np.full(len(LightState), NO_LIGHT)  # by LightState: of green, yellow, red, unknown
LIGHTS[[LightState.GREEN, LightState.RED]] = 0, 2


def gameformer_sample(view: WorldView) -> Sample:
    """With a future also ego_future (80, 3) and neighbors_future (20, 80, 3), and nobody behind is left out."""
    chosen = _chosen(view)
    past = _neighbours(view, chosen)
    training = len(view.future_ego) > 0
    if not training:
        chosen = chosen[past[:, -1, 0] >= BEHIND]
        past = past[past[:, -1, 0] >= BEHIND]
    sample = {
        "ego_agent_past": _ego(view),
        "neighbor_agents_past": _rows(past, (NEIGHBOURS, PAST, 11)),
        **_map(view),
    }
    if training:
        sample["ego_future"] = _poses(view.future_ego, view.pose)
        future = _poses(view.future_agents[:, chosen], view.pose) * view.future_valid[:, chosen, None]
        sample["neighbors_future"] = _rows(future.transpose(1, 0, 2), (NEIGHBOURS, len(future), 3))
    return {name: value.astype(np.float32) for name, value in sample.items()}


def _rows(values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    out = np.zeros(shape)
    out[: len(values)] = values[: shape[0]]
    return out


def _rounded(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float32).astype(np.float64)


def _poses(states: np.ndarray, pose: np.ndarray) -> np.ndarray:
    """(..., >= 3) of the world -> (..., 3) x, y, heading in the frame of a pose."""
    states, pose = _rounded(states), _rounded(pose)
    return np.concatenate((to_frame(states[..., :2], pose), wrap(states[..., 2:3] - pose[2])), -1)


def _ego(view: WorldView) -> np.ndarray:
    """(21, 7): velocity and acceleration in each frame's own direction."""
    ego = view.ego[-PAST:]
    return np.concatenate((_poses(ego, view.pose), ego[:, [Ego.VX, Ego.VY, Ego.AX, Ego.AY]]), -1)


def _chosen(view: WorldView) -> np.ndarray:
    """Road users of now, nearest to the rear axle first."""
    moving = np.flatnonzero(np.isin(view.types, KINDS) & view.valid[-1])
    apart = np.hypot(*(view.agents[-1, moving, :2] - view.pose[:2]).T)
    return moving[np.argsort(apart, kind="stable")][:NEIGHBOURS]


def _neighbours(view: WorldView, chosen: np.ndarray) -> np.ndarray:
    """(N, 21, 11) x, y, heading, velocity, yaw rate, length, width, vehicle, pedestrian, bicycle."""
    states = backfilled(view.agents[:, chosen], view.valid[:, chosen])
    places = _poses(states, view.pose)
    velocity = turn_back(_rounded(states[..., [Box.VX, Box.VY]]), _rounded(view.pose)[2])
    rate = yaw_rates(places[..., 2], float(np.mean(np.diff(view.time_us))) * 1e-6)
    size = np.broadcast_to(view.sizes[chosen, :2], velocity.shape)
    kind = np.broadcast_to(np.eye(len(KINDS))[view.types[chosen].astype(int)], (*velocity.shape[:2], len(KINDS)))
    columns = (places, velocity, rate[..., None], size, kind)
    return np.concatenate(columns, -1).transpose(1, 0, 2)[:, -PAST:]


def _map(view: WorldView) -> Sample:
    road, shapes, here = view.road, shapes_of(view.road), view.pose[:2]
    area = square(here, REACH)
    lights = np.full(len(road), NO_LIGHT)
    lights[view.light_lanes] = LIGHTS[view.light_states]
    hit = np.zeros(len(road), dtype=bool)
    hit[meets(np.where(road.is_connector, shapes.lines, shapes.lanes), area)] = True
    lines, rings = _rounded_lines(road)
    lanes = _nearest(np.flatnonzero(hit), shapes.lanes, lines, here, LANES)
    route = route_lanes(road, connected_route(road, view.route, area))
    route = _nearest(route, shapes.lanes, lines, here, ROUTE_LANES)
    crosswalks = _nearest(meets(shapes.crosswalks, area), shapes.crosswalks, rings, here, CROSSWALKS)
    points = drawn_once(road, "rounded lanes", lines, by_index, LANE_POINTS)
    outlines = drawn_once(road, "rounded crosswalks", rings, by_index, CROSSWALK_POINTS)
    drawn = _drawn(points[lanes], view.pose)
    light = np.broadcast_to(np.eye(4)[lights[lanes]][:, None], (len(lanes), LANE_POINTS, 4))
    return {
        "map_lanes": _rows(np.concatenate((drawn, light), -1), (LANES, LANE_POINTS, 7)),
        "map_crosswalks": _rows(_drawn(outlines[crosswalks], view.pose), (CROSSWALKS, CROSSWALK_POINTS, 3)),
        "route_lanes": _rows(_drawn(points[route], view.pose), (ROUTE_LANES, LANE_POINTS, 3)),
    }


def _rounded_lines(road: RoadMap) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Centre lines and outlines of crosswalks as float32 has them, made once for each map."""

    def make() -> tuple[list[np.ndarray], list[np.ndarray]]:
        rings = [shapely.get_coordinates(shapely.get_exterior_ring(area)) for area in shapes_of(road).crosswalks]
        return [_rounded(line) for line in road.centerlines], [_rounded(ring) for ring in rings]

    return remember(road, "rounded lines", make)


def connected_route(road: RoadMap, route: tuple[str, ...], area: shapely.Geometry) -> np.ndarray:
    """The first connected run of the route within an area."""
    return route_in_square(road, route, area)


def _nearest(rows: np.ndarray, shapes: np.ndarray, lines: list[np.ndarray], here: np.ndarray, most: int) -> np.ndarray:
    """By the distance of the nearest vertex; among equals by that of the area."""
    if not len(rows):
        return rows
    rows = rows[np.argsort(shapely.distance(shapes[rows], shapely.Point(here)), kind="stable")]
    here = _rounded(here)
    vertex = [np.hypot(*(lines[i] - here).T).min() for i in rows]
    return rows[np.argsort(vertex, kind="stable")][:most]


def _drawn(points: np.ndarray, pose: np.ndarray) -> np.ndarray:
    """(n, P, 2) of the world -> (n, P, 3) x, y in the frame of a pose, and the direction to the next point."""
    out = np.zeros((*points.shape[:2], 3))
    out[..., :2] = to_frame(points, _rounded(pose))
    step = np.diff(out[..., :2], axis=1)
    out[:, :-1, 2] = np.arctan2(step[..., 1], step[..., 0])
    out[:, -1, 2] = out[:, -2, 2]
    return out
