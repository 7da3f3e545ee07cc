"""The road of a page: near the drive, whole, and with a bar for each light."""

from __future__ import annotations

import numpy as np
import pytest
import shapely

from radp.evaluation.risk import polygon_of
from radp.report.viewer.road import TOLERANCE, corridor, crop_road
from radp.report.viewer.thumbnail import HEIGHT, WIDTH, thumbnail
from radp.sources.synthetic import make_scenario
from tests.small_scenarios import small_scenario


def area_of(rings: list[np.ndarray]) -> shapely.Geometry:
    area = shapely.Polygon()
    for ring in rings:
        area = area.symmetric_difference(shapely.Polygon(ring))
    return area


@pytest.mark.parametrize("reach", [20.0, 60.0])
def test_everything_near_the_path_and_nothing_else(reach: float) -> None:
    scenario = make_scenario(1)
    path = scenario.ego[scenario.start :, :2]
    picture, near = crop_road(scenario, [path], reach), corridor([path], reach)
    rim = near.buffer(3 * TOLERANCE)
    for lines in (picture.road, picture.route, picture.crosswalks, picture.edges, picture.dividers, picture.connectors):
        assert shapely.contains_xy(rim, np.concatenate([*lines, path[:1]])).all()
    road = scenario.map
    lanes = [polygon_of(road.lane_polygons, i).intersection(near) for i in range(len(road))]
    missing = shapely.union_all(lanes).difference(area_of(picture.road).buffer(2 * TOLERANCE))
    assert missing.area < 1e-6
    on_route = [polygon_of(road.roadblocks.polygons, road.roadblocks.index[name]) for name in scenario.route]
    expected = shapely.union_all(on_route).intersection(near).area
    assert area_of(picture.route).area == pytest.approx(expected, rel=0.01)


def test_small_map_by_hand() -> None:
    scenario = small_scenario()
    picture = crop_road(scenario, [scenario.ego[:, :2]], 100.0)
    assert area_of(picture.road).area == pytest.approx(40 * 8 + 20 * 4)
    assert len(picture.dividers) == 1  # lane "2" has lane "1" on its left
    np.testing.assert_allclose(picture.dividers[0][:, 1], 0.0)
    assert {tuple(line[0]) for line in picture.edges} == {(0.0, 4.0), (0.0, -4.0)}
    assert len(picture.connectors) == 1
    np.testing.assert_allclose(picture.light_bars, [[40.0, 0.0, 40.0, -4.0]])
    assert picture.light_columns.tolist() == [0]


def test_lights_of_one_lane_share_its_width_left_turn_left() -> None:
    scenario = make_scenario(0)
    picture = crop_road(scenario, [scenario.ego[:, :2]], 150.0)
    assert sorted(picture.light_columns) == list(range(len(scenario.lights.lane)))
    width = np.hypot(*(picture.light_bars[:, 2:] - picture.light_bars[:, :2]).T)
    together = np.unique(np.round([scenario.map.centerlines[i][0] for i in scenario.lights.lane]), axis=0)
    assert width.sum() == pytest.approx(3.5 * len(together), rel=0.02)


def test_a_drive_that_stands_still_has_a_road() -> None:
    scenario = small_scenario()
    picture = crop_road(scenario, [scenario.ego[:1, :2], scenario.ego[:3, :2]], 10.0)
    assert picture.road
    assert crop_road(scenario, [scenario.ego[:1, :2] + 5000.0], 10.0).road == []


def test_thumbnail_is_small_and_inside_its_frame() -> None:
    scenario = make_scenario(1)
    path = scenario.ego[scenario.start :, :2]
    picture = thumbnail(crop_road(scenario, [path], 120.0).road, [path, path[:1]])
    assert sum(len(text) for text in (picture["road"], *picture["paths"])) < 2000
    x, y = picture["ends"][0]
    assert 0 <= x <= WIDTH and 0 <= y <= HEIGHT
    assert picture["paths"][1].endswith("l0,0")
    assert set("".join(picture["paths"]) + picture["road"]) <= set("Mlz0123456789,- ")
