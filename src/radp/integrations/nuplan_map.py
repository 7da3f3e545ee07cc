"""The devkit's map (its public interface) as a RoadMap: objects are read into the layers of a map file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import shapely

from radp.scenario import RoadMap
from radp.sources.nuplan.layers import Layer
from radp.sources.nuplan.road import city_road


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
    found = {layer: {str(thing.id): thing for thing in near.get(layer, ())} for layer in wanted}
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
    except (ValueError, KeyError, AssertionError):  # how the devkit says that there is none
        return None


def _layers(layers: Any, found: dict[Any, dict[str, Any]]) -> dict[str, Layer]:
    lanes, connectors = list(found[layers.LANE].values()), list(found[layers.LANE_CONNECTOR].values())
    both = [("l", lane) for lane in lanes] + [("c", lane) for lane in connectors]
    borders = [(f"{kind}{lane.id}{side}", _line(border)) for kind, lane in both for side, border in _borders(lane)]
    stops = {str(stop.id): stop.polygon for lane in connectors for stop in lane.stop_lines}
    blocks, joints = found[layers.ROADBLOCK], found[layers.ROADBLOCK_CONNECTOR]
    paved = [thing.polygon for thing in (*blocks.values(), *joints.values())]
    return {
        "lanes_polygons": _layer(
            "lanes_polygons", [lane.id for lane in lanes], [lane.polygon for lane in lanes],
            lane_group_fid=[lane.get_roadblock_id() for lane in lanes],
            lane_index=[_value(lane.index) for lane in lanes],
            left_boundary_fid=[f"l{lane.id}left" for lane in lanes],
            right_boundary_fid=[f"l{lane.id}right" for lane in lanes],
            speed_limit_mps=[lane.speed_limit_mps for lane in lanes],
        ),
        "lane_connectors": _layer(
            "lane_connectors", [lane.id for lane in connectors], [_line(lane.baseline_path) for lane in connectors],
            exit_lane_fid=[_first_id(lane.incoming_edges) for lane in connectors],
            entry_lane_fid=[_first_id(lane.outgoing_edges) for lane in connectors],
            lane_group_connector_fid=[lane.get_roadblock_id() for lane in connectors],
            speed_limit_mps=[lane.speed_limit_mps for lane in connectors],
            traffic_light_stop_line_fids=[",".join(str(stop.id) for stop in lane.stop_lines) for lane in connectors],
        ),
        "gen_lane_connectors_scaled_width_polygons": _layer(
            "connector polygons", [lane.id for lane in connectors], [lane.polygon for lane in connectors],
            lane_connector_fid=[lane.id for lane in connectors],
            left_boundary_fid=[f"c{lane.id}left" for lane in connectors],
            right_boundary_fid=[f"c{lane.id}right" for lane in connectors],
        ),
        "baseline_paths": _layer(
            "baseline_paths", [f"{kind}{lane.id}" for kind, lane in both],
            [_line(lane.baseline_path) for _, lane in both],
            lane_fid=[lane.id if kind == "l" else None for kind, lane in both],
            lane_connector_fid=[lane.id if kind == "c" else None for kind, lane in both],
        ),
        "boundaries": _layer("boundaries", [name for name, _ in borders], [line for _, line in borders]),
        "lane_groups_polygons": _layer("roadblocks", blocks, [block.polygon for block in blocks.values()]),
        "lane_group_connectors": _layer("roadblock connectors", joints, [joint.polygon for joint in joints.values()]),
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


def _borders(lane: Any) -> tuple[tuple[str, Any], tuple[str, Any]]:
    return ("left", lane.left_boundary), ("right", lane.right_boundary)


def _line(path: Any) -> shapely.Geometry | None:
    return None if path is None else path.linestring


def _first_id(edges: Sequence[Any]) -> str | None:
    return str(edges[0].id) if edges else None


def _value(index: Any) -> float:
    """The interface declares a method, the devkit's lanes have a property."""
    return float(index() if callable(index) else index)
