"""What the rules of the road see of a made crossing: kinds, pasts, crosswalks, lanes and the border of the road."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import shapely
import torch

from radp.road.border import drivable_border
from radp.road.crossings import lane_crossings
from radp.road.lane_lines import lane_table
from radp.road.route import correct_route
from radp.scenario import ObjectType, Scenario
from radp.scene.builder import RULES_ALONE, build_scenes, scenes_from_log
from radp.scene.road import BORDER_REACH, LANE_LENGTH, seconds_taken
from radp.scene.scene import RoadView, Scene
from radp.sim.replay import observe_logs
from radp.sources.synthetic import make_scenario
from radp.training.augmentation import in_ego_frame
from tests.made_roads import box_lane, road

VIEW = replace(RULES_ALONE, road=True)


def seen(scenario: Scenario, frame: int) -> RoadView:
    view = RoadView.of(scenes_from_log(scenario, [frame], VIEW, with_future=False))
    assert view is not None
    return view


def world(scenario: Scenario, frame: int, points: torch.Tensor) -> np.ndarray:
    """Points (..., 2) of the ego frame in the world."""
    x, y, heading = scenario.ego[frame, :3]
    c, s = np.cos(heading), np.sin(heading)
    return points.double().numpy() @ np.array([[c, s], [-s, c]]) + (x, y)


def test_the_border_is_that_of_the_union_of_all_areas():
    scenario = make_scenario(3, agents=4)
    frame = scenario.start
    kinds = (scenario.map.lane_polygons, scenario.map.intersections.polygons, scenario.map.drivable.polygons)
    area = shapely.union_all([shapely.Polygon(p[i][0]) for p in kinds for i in range(len(p))]).buffer(0.01)
    view = seen(scenario, frame)
    pieces = view.border[0][(view.border[0] != 0).any(-1)]
    ends = world(scenario, frame, pieces.reshape(-1, 2)).reshape(-1, 2, 2)
    assert len(pieces) > 10 and float(view.border_reach) == BORDER_REACH
    middle, step = ends.mean(1), ends[:, 1] - ends[:, 0]
    assert shapely.distance(area.boundary, shapely.points(middle)).max() < 0.1
    left = np.stack((-step[:, 1], step[:, 0]), 1) / np.linalg.norm(step, axis=1, keepdims=True)
    assert shapely.contains(area, shapely.points(middle + 0.2 * left)).all()
    assert not shapely.contains(area, shapely.points(middle - 0.2 * left)).any()
    near = drivable_border(scenario.map)
    gaps = shapely.distance(shapely.linestrings(near.reshape(-1, 2, 2)), shapely.Point(scenario.ego[frame, :2]))
    assert len(pieces) == (gaps <= BORDER_REACH).sum()


def test_a_map_that_does_not_know_what_is_drivable_has_no_border():
    plain = road(box_lane("a", (0.0, 50.0, -2.0, 2.0)))
    assert len(drivable_border(plain)) == 0
    scenario = replace(make_scenario(3, agents=2), map=plain, route=("block of a",))
    assert float(seen(scenario, scenario.start).border_reach) == 0.0


def test_kinds_pasts_and_who_is_on_a_crosswalk_of_the_route():
    scenario = make_scenario(3, agents=6)
    frame = scenario.start
    crossings, table = lane_crossings(scenario.map, LANE_LENGTH), lane_table(scenario.map, LANE_LENGTH)
    route = correct_route(scenario.map, scenario.route, scenario.ego[frame, :3])
    taken = next(int(w) for row, w in zip(crossings.row, crossings.walk) if table.roadblock[row] in route)
    shape = shapely.Polygon(scenario.map.crosswalks.polygons[taken][0])
    inside = shape.representative_point().coords[0]
    tracks = scenario.tracks
    state, kinds, valid = tracks.state.copy(), tracks.type.copy(), tracks.valid.copy()
    kinds[:2], valid[:2] = ObjectType.PEDESTRIAN, True
    state[0], state[1] = 0.0, 0.0
    state[0, :, :2] = inside  # stands on it
    state[1, :, :2] = np.add(inside, (500.0, 0.0))  # far from everything
    scenario = replace(scenario, tracks=replace(tracks, state=state, type=kinds, valid=valid))
    scene = scenes_from_log(scenario, [frame], VIEW, with_future=False)
    view, who = scene.rules.road, scene.rules.object_tracks[0]
    for row, track in enumerate(who.tolist()):
        if track >= 0:
            assert view.object_types[0, row] == kinds[track]
            first = int(np.argmax(valid[track, max(0, frame - 20) : frame + 1])) + max(0, frame - 20)
            np.testing.assert_allclose(
                world(scenario, frame, view.object_past[0, row]), state[track, first, :2], atol=1e-3
            )
    crossing = {int(track): view.object_crossing[0, row] for row, track in enumerate(who.tolist()) if track >= 0}
    assert all(crossing[track][2] == 0 for track in crossing if kinds[track] == ObjectType.VEHICLE or track == 1)
    entry = world(scenario, frame, crossing[0][:2])
    assert float(crossing[0][2]) == 8.0 and shape.distance(shapely.Point(entry)) < 0.05


def test_seconds_that_a_crosswalk_is_taken():
    inside = np.zeros((5, 17), dtype=bool)
    inside[0] = True  # stands on it
    inside[1, :3] = True  # leaves it after 1.5 s
    inside[2, 6:9] = True  # reaches it after 3 s
    inside[3, 7:9] = True  # reaches it later
    assert seconds_taken(inside).tolist() == [8.0, 1.5, 4.5, 0.0, 0.0]


def test_the_view_follows_the_ego_that_is_moved_and_stays_out_of_other_scenes():
    now = observe_logs([make_scenario(3, agents=6), make_scenario(4, agents=6)], 20)
    scene, plain = build_scenes(now, VIEW), build_scenes(now, RULES_ALONE)
    assert plain.rules.road is None and torch.equal(plain.rules.objects, scene.rules.objects)
    assert torch.equal(Scene.cat([scene[0], scene[1]]).rules.road.border, scene.rules.road.border)
    ego = scene.ego_current_state.clone()
    ego[:, 0], ego[:, 1], ego[:, 2], ego[:, 3] = 2.0, -1.0, np.cos(0.3), np.sin(0.3)
    moved = in_ego_frame(replace(scene, ego_current_state=ego)).rules.road
    back = torch.tensor([[np.cos(0.3), np.sin(0.3)], [-np.sin(0.3), np.cos(0.3)]]).float()
    there = (scene.rules.road.border != 0).any(-1)
    ends = moved.border.unflatten(-1, (2, 2)) @ back + torch.tensor([2.0, -1.0])
    torch.testing.assert_close(ends[there], scene.rules.road.border.unflatten(-1, (2, 2))[there], atol=1e-4, rtol=1e-4)
    assert torch.equal((moved.border != 0).any(-1), there)
    torch.testing.assert_close(moved.border_reach, scene.rules.road.border_reach - 5**0.5)
    torch.testing.assert_close(moved.lanes[..., 2:], scene.rules.road.lanes[..., 2:])
