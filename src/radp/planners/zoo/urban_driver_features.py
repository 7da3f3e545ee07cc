"""Features of UrbanDriver: vehicles of the last 1.6 s and map elements within 35 m, as nuplan-devkit makes them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import shapely
import torch

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
from radp.planners.zoo.urban_driver import LAYERS, PAST, POINTS, assemble
from radp.planners.zoo.view import WorldView
from radp.road.road_map import RoadMap
from radp.scenario import Box, Ego, LightState, ObjectType

EVERY = 4  # frames between samples of the past
REACH = 35.0  # m, half the side of a square
COUNTS = {name: count for name, count, _ in LAYERS}
UNKNOWN_LIGHT, GREEN_LIGHT, RED_LIGHT = (np.eye(4)[i] for i in (3, 0, 2))


def urban_driver_sample(view: WorldView) -> Sample:
    """features (191, 20, 8), avails (191, 20)."""
    return assembled(raw_features(view))


def assembled(raw: Sample) -> Sample:
    """What `raw_features` gave as the network wants it."""
    features, avails = assemble({name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in raw.items()})
    return {"features": features.numpy(), "avails": avails.numpy()}


def raw_features(view: WorldView) -> Sample:
    """ego (5, 7), agents_VEHICLE (5, N, 8), coords_X and avails_X of each map layer, traffic_light_LANE (30, 20, 4)."""
    rows = np.arange(-1 - EVERY * (PAST - 1), 0, EVERY)
    return {"ego": _ego(view, rows), "agents_VEHICLE": _vehicles(view, rows), **_map(view)}


def _ego(view: WorldView, rows: np.ndarray) -> np.ndarray:
    """x, y, heading; velocity and acceleration less those of now, which the network does not read."""
    ego = view.ego[rows].astype(np.float32).astype(np.float64)
    now = ego[-1]
    change = [turn_back(ego[:, [a, b]] - now[[a, b]], now[2]) for a, b in ((Ego.VX, Ego.VY), (Ego.AX, Ego.AY))]
    place = to_frame(ego[:, :2], now)
    return np.column_stack((place, wrap(ego[:, 2] - now[2]), *change)).astype(np.float32)


def _vehicles(view: WorldView, rows: np.ndarray) -> np.ndarray:
    """(5, N, 8) x, y, heading, velocity, yaw rate, length, width. Positions pass through float32 in the world, and the
    ego's velocity, which is given in its own frame, is taken off before the turn: both as published."""
    ego = view.ego[-1].astype(np.float32).astype(np.float64)
    chosen = np.flatnonzero((view.types == ObjectType.VEHICLE) & view.valid[-1])
    states = backfilled(view.agents[rows][:, chosen], view.valid[rows][:, chosen])
    states = states.astype(np.float32).astype(np.float64)
    place = to_frame(states[..., :2], ego)
    heading = wrap(states[..., Box.HEADING] - ego[2]).astype(np.float32)
    velocity = turn_back(states[..., [Box.VX, Box.VY]] - ego[[Ego.VX, Ego.VY]], ego[2])
    step = float(np.mean(np.diff(view.time_us[rows]))) * 1e-6
    rate = yaw_rates(heading.astype(np.float64), step)
    size = np.broadcast_to(view.sizes[chosen, :2], (*states.shape[:2], 2))
    columns = (place, heading[..., None], velocity, rate[..., None], size)
    return np.concatenate(columns, -1).astype(np.float32)


def _map(view: WorldView) -> Sample:
    road, shapes, here = view.road, shapes_of(view.road), view.pose[:2]
    area, point = square(here, REACH), shapely.Point(here)
    is_lane = ~road.is_connector
    hit = np.zeros(len(road), dtype=bool)
    hit[meets(np.where(is_lane, shapes.lanes, shapes.lines), area)] = True
    lanes = _nearest(np.flatnonzero(hit), shapes.lanes, point, COUNTS["LANE"])
    route = route_lanes(road, route_in_square(road, view.route, area))
    route = _nearest(route, shapes.lanes, point, COUNTS["ROUTE_LANES"])
    centre, left, right = (
        drawn_once(road, name, lines, by_index, POINTS)
        for name, lines in (("centerlines", road.centerlines), ("left", road.left), ("right", road.right))
    )
    drawn: dict[str, Sequence[np.ndarray]] = {
        "LANE": centre[lanes], "LEFT_BOUNDARY": left[lanes], "RIGHT_BOUNDARY": right[lanes],
        "ROUTE_LANES": centre[route],
    }  # fmt: skip
    for name, polygons in (("STOP_LINE", shapes.stop_lines), ("CROSSWALK", shapes.crosswalks)):
        near = _nearest(meets(polygons, area), polygons, point, COUNTS[name])
        drawn[name] = [shapely.get_coordinates(shapely.get_exterior_ring(polygons[i]))[:POINTS] for i in near]
    sample = {}
    for name, members in drawn.items():
        sample[f"coords_{name}"], sample[f"avails_{name}"] = _layer(members, COUNTS[name], view.pose)
    lights = np.zeros((COUNTS["LANE"], POINTS, 4), dtype=np.float32)
    lights[: len(lanes)] = lane_lights(view)[lanes][:, None]
    return sample | {"traffic_light_LANE": lights}


def _nearest(rows: np.ndarray, shapes: np.ndarray, point: shapely.Geometry, most: int) -> np.ndarray:
    """The rows whose shapes are nearest to a point; ties stay in the map's order."""
    if not len(rows):
        return rows
    return rows[np.argsort(shapely.distance(shapes[rows], point), kind="stable")][:most]


def _layer(members: Sequence[np.ndarray], count: int, pose: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    coords, avails = np.zeros((count, POINTS, 2), dtype=np.float32), np.zeros((count, POINTS), dtype=bool)
    for i, points in enumerate(members):
        coords[i, : len(points)], avails[i, : len(points)] = to_frame(points, pose), True
    return coords, avails


def lane_lights(view: WorldView) -> np.ndarray:
    """(L, 4) one-hot green, yellow, red, unknown. Lights are looked up by the number in the published map, which a lane
    and a connector may share; yellow counts as unknown."""
    lights = np.tile(UNKNOWN_LIGHT, (len(view.road), 1))
    for state, row in ((LightState.GREEN, GREEN_LIGHT), (LightState.RED, RED_LIGHT)):
        for lane in view.light_lanes[view.light_states == state]:
            lights[lanes_of_number(view.road, int(lane))] = row
    return lights


def lanes_of_number(road: RoadMap, connector: int) -> list[int]:
    """A connector, and the lane that has the same number in the published map."""
    name = road.lane_ids[connector]
    twin = road.lane_index.get(name[:-1]) if name.endswith("c") else None
    return [connector] if twin is None else [connector, twin]
