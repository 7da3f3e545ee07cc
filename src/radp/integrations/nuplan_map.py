"""The devkit's map (its public interface) as a RoadMap: objects are read into the layers of a map file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely

from radp.scenario import RoadMap
from radp.sources.nuplan.layers import Layer
from radp.sources.nuplan.road import city_road

FAULTS = (AssertionError, KeyError, ValueError, IndexError, AttributeError)  # of a devkit that misses a row


def road_around(api: Any, layers: Any, point: Any, centre: np.ndarray, route: Sequence[str], radius: float) -> RoadMap:
    """The road within `radius` of a point and the lanes of the route. `layers` and `point`: classes of the devkit.

    The interface has no generic drivable areas: roadblocks, intersections and car parks stand for them.
    """
    wanted = (
        layers.LANE, layers.LANE_CONNECTOR, layers.ROADBLOCK, layers.ROADBLOCK_CONNECTOR, layers.INTERSECTION,
        layers.CROSSWALK, layers.CARPARK_AREA,
    )  # fmt: skip
    offered = set(api.get_available_map_objects())
    near = api.get_proximal_map_objects(
        point(float(centre[0]), float(centre[1])), float(radius), [layer for layer in wanted if layer in offered]
    )
    found = {layer: {str(thing.id): thing for thing in near.get(layer, ()) if thing is not None} for layer in wanted}
    _add_route(api, layers, route, found)
    _add_joined(layers, found)
    road, _ = city_road(_layers(layers, found), str(api.map_name))
    return road


def _add_route(api: Any, layers: Any, route: Iterable[str], found: dict[Any, dict[str, Any]]) -> None:
    """Roadblocks of the route with their lanes, however far away."""
    pairs = ((layers.ROADBLOCK, layers.LANE), (layers.ROADBLOCK_CONNECTOR, layers.LANE_CONNECTOR))
    for name in route:
        for blocks, lanes in pairs:
            block = _get(api, str(name), blocks)
            if block is not None:
                found[blocks].setdefault(str(block.id), block)
                for lane in block.interior_edges:
                    found[lanes].setdefault(str(lane.id), lane)
                break


def _add_joined(layers: Any, found: dict[Any, dict[str, Any]]) -> None:
    """The lanes at both ends of every connector, since speed limits of connectors are theirs."""
    for connector in list(found[layers.LANE_CONNECTOR].values()):
        for lane in (*connector.incoming_edges, *connector.outgoing_edges):
            found[layers.LANE].setdefault(str(lane.id), lane)


def _get(api: Any, name: str, layer: Any) -> Any:
    try:
        return api.get_map_object(name, layer)
    except FAULTS:  # how the devkit says that there is none
        return None


@dataclass(frozen=True)
class DevkitLane:
    """A lane or connector, each property read once (the devkit looks it up in tables every time)."""

    id: str
    group: str
    limit: float | None
    shapes: tuple[shapely.Geometry | None, ...]  # polygon, centre line, left and right border
    index: float = math.nan
    ends: tuple[str | None, str | None] = (None, None)  # lanes before and behind a connector
    stops: tuple[tuple[str, shapely.Geometry], ...] = ()


def _known_lanes(lanes: Iterable[Any], are_connectors: bool) -> list[DevkitLane]:
    """Those that the map knows fully; the devkit raises where a row is missing."""
    known = []
    for lane in lanes:
        try:
            known.append(_read_lane(lane, are_connectors))
        except FAULTS:
            continue
    return known


def _read_lane(lane: Any, is_connector: bool) -> DevkitLane:
    lines = (lane.baseline_path.linestring, lane.left_boundary.linestring, lane.right_boundary.linestring)
    shapes, limit = (lane.polygon, *lines), lane.speed_limit_mps
    name, group = str(lane.id), str(lane.get_roadblock_id())
    if not is_connector:
        index = lane.index
        return DevkitLane(name, group, limit, shapes, float(index() if callable(index) else index))
    ends = (_first_id(lane.incoming_edges), _first_id(lane.outgoing_edges))
    return DevkitLane(
        name, group, limit, shapes, ends=ends, stops=tuple((str(s.id), s.polygon) for s in lane.stop_lines)
    )


def _layers(layers: Any, found: dict[Any, dict[str, Any]]) -> dict[str, Layer]:
    lanes = _known_lanes(found[layers.LANE].values(), False)
    joins = _known_lanes(found[layers.LANE_CONNECTOR].values(), True)
    both = [("l", piece) for piece in lanes] + [("c", piece) for piece in joins]
    borders = [(f"{k}{p.id}{side}", p.shapes[part]) for k, p in both for side, part in (("left", 2), ("right", 3))]
    stops = {name: polygon for piece in joins for name, polygon in piece.stops}
    blocks, joints = found[layers.ROADBLOCK], found[layers.ROADBLOCK_CONNECTOR]
    paved = [thing.polygon for thing in (*blocks.values(), *joints.values())]
    return {
        "lanes_polygons": _layer(
            "lanes_polygons", [p.id for p in lanes], [p.shapes[0] for p in lanes],
            lane_group_fid=[p.group for p in lanes], lane_index=[p.index for p in lanes],
            speed_limit_mps=[p.limit for p in lanes], left_boundary_fid=[f"l{p.id}left" for p in lanes],
            right_boundary_fid=[f"l{p.id}right" for p in lanes],
        ),
        "lane_connectors": _layer(
            "lane_connectors", [p.id for p in joins], [p.shapes[1] for p in joins],
            exit_lane_fid=[p.ends[0] for p in joins], entry_lane_fid=[p.ends[1] for p in joins],
            lane_group_connector_fid=[p.group for p in joins], speed_limit_mps=[p.limit for p in joins],
            traffic_light_stop_line_fids=[",".join(name for name, _ in p.stops) for p in joins],
        ),
        "gen_lane_connectors_scaled_width_polygons": _layer(
            "connector polygons", [p.id for p in joins], [p.shapes[0] for p in joins],
            lane_connector_fid=[p.id for p in joins], left_boundary_fid=[f"c{p.id}left" for p in joins],
            right_boundary_fid=[f"c{p.id}right" for p in joins],
        ),
        "baseline_paths": _layer(
            "baseline_paths", [f"{k}{p.id}" for k, p in both], [p.shapes[1] for _, p in both],
            lane_fid=[p.id if k == "l" else None for k, p in both],
            lane_connector_fid=[p.id if k == "c" else None for k, p in both],
        ),
        "boundaries": _layer("boundaries", [name for name, _ in borders], [line for _, line in borders]),
        "lane_groups_polygons": _areas("roadblocks", blocks),
        "lane_group_connectors": _areas("roadblock connectors", joints),
        "intersections": _areas("intersections", found[layers.INTERSECTION]),
        "stop_polygons": _layer("stop_polygons", stops, list(stops.values())),
        "generic_drivable_areas": _layer("roadblock areas", [f"b{i}" for i in range(len(paved))], paved),
        "carpark_areas": _areas("carpark_areas", found[layers.CARPARK_AREA]),
        "crosswalks": _areas("crosswalks", found[layers.CROSSWALK]),
    }  # fmt: skip


def _layer(name: str, ids: Iterable[Any], shapes: Sequence[shapely.Geometry | None], **columns: list[Any]) -> Layer:
    geometry = np.empty(len(shapes), dtype=object)
    geometry[:] = shapes
    return Layer(name, tuple(map(str, ids)), geometry, {key: _objects(values) for key, values in columns.items()})


def _objects(values: list[Any]) -> np.ndarray:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def _areas(name: str, things: dict[str, Any]) -> Layer:
    return _layer(name, things, [thing.polygon for thing in things.values()])


def _first_id(edges: Sequence[Any]) -> str | None:
    return str(edges[0].id) if edges else None
