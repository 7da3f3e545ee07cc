from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import shapely

pytest.importorskip("sumolib", reason="Eclipse SUMO is not installed")

from radp.sources.sumo.catalogue import CATALOGUE, Network, build_network
from radp.sources.sumo.soundness import unsound


@pytest.fixture(scope="module")
def crossing(tmp_path_factory: pytest.TempPathFactory) -> Network:
    return build_network("four_way_protected", "crossing", tmp_path_factory.mktemp("net"), 0, "test", 0)


def polygons(network: Network) -> list[shapely.Polygon]:
    road_map = network.road.map
    return [shapely.Polygon(road_map.lane_polygons[i][0]) for i in range(len(road_map))]


def test_the_map_is_valid_and_every_connector_joins_two_lanes(crossing: Network) -> None:
    road_map = crossing.road.map
    road_map.validate()
    for i in np.flatnonzero(road_map.is_connector):
        (before,), (after,) = road_map.predecessors[i], road_map.successors[i]
        assert not road_map.is_connector[[before, after]].any()
        assert np.allclose(road_map.centerlines[i][0], road_map.centerlines[before][-1], atol=2e-3)
        assert np.allclose(road_map.centerlines[i][-1], road_map.centerlines[after][0], atol=2e-3)
        assert i in road_map.successors[before] and i in road_map.predecessors[after]


def test_a_point_lies_in_one_lane_only(crossing: Network) -> None:
    road_map, shapes = crossing.road.map, polygons(crossing)
    lanes = np.flatnonzero(~road_map.is_connector)
    for i in lanes:
        for point in road_map.centerlines[i][1:-1:7]:
            assert [j for j in lanes if shapely.contains_xy(shapes[j], *point)] == [i]


def test_neighbours_share_their_border(crossing: Network) -> None:
    road_map = crossing.road.map
    pairs = [(i, j) for i, j in enumerate(road_map.left_neighbor) if j >= 0]
    assert pairs
    for right, left in pairs:
        assert np.array_equal(road_map.left[right], road_map.right[left])
        assert road_map.right_neighbor[left] == right
        assert road_map.roadblock[left] == road_map.roadblock[right]


def test_lights_stop_lines_and_limits(crossing: Network) -> None:
    road_map = crossing.road.map
    lit = {light.connector for light in crossing.road.lights}
    assert lit == {i for i in range(len(road_map)) if len(road_map.lane_stop_lines[i])}
    for i in lit:
        (stop,) = road_map.lane_stop_lines[i]
        area = shapely.Polygon(road_map.stop_lines.polygons[stop][0])
        lane = road_map.predecessors[i][0]
        assert area.intersects(shapely.LineString(road_map.centerlines[i]))
        assert area.intersects(shapely.LineString(road_map.centerlines[lane]))
        for beside in (road_map.left_neighbor[lane], road_map.right_neighbor[lane]):
            assert beside < 0 or not area.intersects(shapely.Polygon(road_map.lane_polygons[beside][0]))
    assert set(np.unique(road_map.speed_limit)) <= {11.11, 13.89, 16.67}, "bends must not lower the legal limit"


def test_everything_a_car_drives_on_is_drivable(crossing: Network) -> None:
    for shape in polygons(crossing):
        assert crossing.road.drivable_union.covers(shape)


def test_special_lanes_are_found(crossing: Network) -> None:
    road = crossing.road
    assert len(road.kerb_lanes) == 2 and len(road.kerb_areas) == 2
    assert road.jaywalks and not set(road.jaywalks) & set(road.map.crosswalks.ids)
    assert len(road.fringe_in) == len(road.fringe_out) == 4
    assert all(cap > 1.0 for cap in road.caps.values())


def test_a_route_alternates_edges_and_connectors(crossing: Network) -> None:
    road = crossing.road
    way = road.connectors[0]
    blocks = road.roadblocks_of((way.from_edge, way.to_edge))
    assert blocks == (way.from_edge, way.line.block, way.to_edge)
    assert way.to_edge in road.reachable(way.from_edge)


@pytest.mark.slow
@pytest.mark.parametrize("kind", CATALOGUE)
def test_every_kind_of_network_builds_sound(kind: str, tmp_path: Path) -> None:
    network = build_network(kind, kind, tmp_path, 1, "test", 0)
    network.road.map.validate()
    assert unsound(network.road) == ""
    assert any(network.road.reachable(edge) & set(network.road.fringe_out) for edge in network.road.fringe_in)
