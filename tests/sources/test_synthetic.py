"""Scenarios made by formula: valid, repeatable, drivable."""

from __future__ import annotations

import numpy as np
import pytest
import shapely

from radp.geometry.kernels import box_corners, quads_intersect
from radp.scenario import PACIFICA, Ego, LightState, ObjectType, Scenario
from radp.sources.synthetic import make_scenario
from radp.sources.synthetic.road import make_map


def corners(x: float, y: float, heading: float, length: float, width: float) -> np.ndarray:
    out = np.zeros((4, 2))
    box_corners(x, y, heading, length, width, out)
    return out


def boxes_at(scenario: Scenario, frame: int) -> list[np.ndarray]:
    """Corners of the ego and of all objects."""
    x, y, heading = scenario.ego[frame, :3]
    offset = PACIFICA.rear_axle_to_center
    boxes = [
        corners(x + offset * np.cos(heading), y + offset * np.sin(heading), heading, PACIFICA.length, PACIFICA.width)
    ]
    for i in np.flatnonzero(scenario.tracks.valid[:, frame]):
        boxes.append(corners(*scenario.tracks.state[i, frame, :3], *scenario.tracks.size[i, :2]))
    return boxes


@pytest.mark.parametrize("seed", range(12))
def test_scenario_is_valid_and_nobody_collides(seed: int) -> None:
    scenario = make_scenario(seed)
    scenario.validate()
    assert (scenario.start, scenario.frames) == (20, 151)
    assert (scenario.tracks.type == ObjectType.VEHICLE).sum() == 30
    assert scenario.tracks.valid[:30, scenario.start].sum() >= 28
    for frame in range(scenario.start, len(scenario.time_us), 10):
        boxes = boxes_at(scenario, frame)
        hits = [(i, j) for i in range(len(boxes)) for j in range(i) if quads_intersect(boxes[i], boxes[j])]
        assert not hits, f"frame {frame}: {hits}"


@pytest.mark.parametrize("turn", ("left", "straight", "right"))
def test_ego_drives_its_route(turn: str) -> None:
    scenario = make_scenario(4, turn=turn)
    road = scenario.map
    blocks = [road.roadblocks.index[name] for name in scenario.route]
    areas = [shapely.Polygon(road.roadblocks.polygons[i][0]) for i in blocks]
    on_route = shapely.union_all([area.buffer(0.01) for area in areas])
    points = shapely.points(scenario.ego[:, :2])
    assert shapely.covers(on_route, points).all()
    crossing = shapely.Polygon(road.intersections.polygons[0][0])
    assert shapely.contains(crossing, points).any()
    for one, other in zip(scenario.route, scenario.route[1:]):
        members = road.lanes_of_roadblock[road.roadblocks.index[one]]
        follows = {int(road.roadblock[j]) for i in members for j in road.successors[i]}
        assert road.roadblocks.index[other] in follows


def test_ego_log_is_consistent_with_itself() -> None:
    ego = make_scenario(0).ego
    moved = np.hypot(*np.diff(ego[:, :2], axis=0).T) / 0.1
    np.testing.assert_allclose(moved, (ego[1:, Ego.VX] + ego[:-1, Ego.VX]) / 2, atol=0.15)
    assert np.abs(ego[:, Ego.AX]).max() < 3.5
    assert np.abs(ego[:, Ego.STEERING]).max() < 0.6


def test_same_seed_same_scenario_and_another_seed_another() -> None:
    one, two, other = make_scenario(5, 10), make_scenario(5, 10), make_scenario(17, 10)
    np.testing.assert_array_equal(one.tracks.state, two.tracks.state)
    np.testing.assert_array_equal(one.ego, two.ego)
    assert one.map is other.map
    assert np.abs(one.ego[0] - other.ego[0]).max() > 0.1


def test_size_and_length_follow_the_arguments() -> None:
    scenario = make_scenario(1, agents=3, pedestrians=4, cones=1, history=5, frames=9)
    assert (scenario.start, scenario.frames, len(scenario.tracks)) == (5, 9, 8)
    assert sorted(scenario.tracks.type.tolist()) == [0, 0, 0, 1, 1, 1, 2, 3]
    assert len(make_scenario(1, agents=0, pedestrians=0, cones=0, frames=4).tracks) == 0


@pytest.mark.parametrize("variant", range(4))
def test_map_graph(variant: int) -> None:
    road = make_map(variant)
    road.validate()
    for i in range(len(road)):
        for j in road.successors[i]:
            assert i in road.predecessors[j]
            assert road.is_connector[i] != road.is_connector[j]
            np.testing.assert_allclose(road.centerlines[i][-1], road.centerlines[j][0], atol=0.02)
        if road.right_neighbor[i] >= 0:
            assert road.left_neighbor[road.right_neighbor[i]] == i
            np.testing.assert_allclose(road.right[i], road.left[road.right_neighbor[i]], atol=1e-6)
        assert shapely.Polygon(road.lane_polygons[i][0]).is_valid
    lanes = [shapely.Polygon(road.lane_polygons[i][0]) for i in np.flatnonzero(~road.is_connector)]
    overlaps = [a.intersection(b).area for k, a in enumerate(lanes) for b in lanes[:k]]
    assert max(overlaps) < 1e-3
    for i in range(len(road)):
        for stop in road.lane_stop_lines[i]:
            area = shapely.Polygon(road.stop_lines.polygons[stop][0])
            assert area.intersects(shapely.LineString(road.centerlines[i]))


def test_arms_have_green_one_after_the_other() -> None:
    scenario = make_scenario(3)
    arm = np.array([scenario.map.lane_stop_lines[lane][0] for lane in scenario.lights.lane])
    for state in scenario.lights.state:
        assert len(set(arm[(state == LightState.GREEN) | (state == LightState.YELLOW)])) <= 1
    assert len(set(arm[(scenario.lights.state == LightState.GREEN).any(0)])) >= 2
