"""Lane choice, resampling, borders and lights, on hand-made maps."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from made_roads import lane, log, road

from radp.geometry.resample import resample_lines
from radp.scenario import LightState
from radp.scene.builder import SceneConfig, scenes_from_log
from radp.scene.lanes import lane_table
from radp.scene.scene import LaneColumn, present

NOW = 20


def first_points(scene, field: str = "lanes") -> list[tuple[float, float]]:
    rows = getattr(scene, field)[0]
    return [tuple(row[0, :2].tolist()) for row in rows if present(row).any()]


def test_resampling_is_even_in_arc_length():
    corner = np.array([[0.0, 0.0], [1.0, 0.0], [10.0, 0.0], [10.0, 9.0]])  # 19 m, so points lie 1 m apart
    even = resample_lines(corner, np.array([0, 4]), 20)[0]
    wanted = [(float(i), 0.0) for i in range(11)] + [(10.0, float(i)) for i in range(1, 10)]
    np.testing.assert_allclose(even, wanted, atol=1e-12)


def test_resampling_odd_lines():
    points = np.array([[3.0, 4.0], [3.0, 4.0], [0.0, 0.0], [0.0, 0.0], [2.0, 0.0]])
    out = resample_lines(points, np.array([0, 0, 1, 2, 5]), 5)
    assert not out[0].any()  # no point
    assert (out[1] == [3.0, 4.0]).all()  # one point
    np.testing.assert_allclose(out[3, :, 0], [0.0, 0.5, 1.0, 1.5, 2.0])  # a doubled first point


@pytest.mark.parametrize("seed", range(5))
def test_resampling_random_lines(seed: int):
    random = np.random.default_rng(seed)
    rows = [random.normal(size=(int(random.integers(2, 60)), 2)) * 20 + 4e6 for _ in range(20)]
    offsets = np.concatenate(([0], np.cumsum([len(row) for row in rows])))
    out = resample_lines(np.concatenate(rows), offsets, 20)
    for row, found in zip(rows, out):
        s = np.concatenate(([0.0], np.cumsum(np.hypot(*np.diff(row, axis=0).T))))
        even = np.linspace(0.0, s[-1], 20)
        wanted = np.stack([np.interp(even, s, column) for column in row.T], 1)
        np.testing.assert_allclose(found, wanted, atol=1e-6, rtol=0)
        assert (found[-1] == row[-1]).all() and (found[0] == row[0]).all()


def test_lane_columns_in_the_ego_frame():
    north = lane("1", [(0, 0), (0, 19)], "a", speed_limit_mps=13.5)
    scene = scenes_from_log(log(road(north), ego=(0.0, 5.0, math.pi / 2)), [NOW])
    row = scene.lanes[0, 0]
    torch.testing.assert_close(row[:, 0], torch.arange(20.0) - 5.0)
    torch.testing.assert_close(row[:-1, 2:4], torch.tensor([[1.0, 0.0]]).expand(19, 2), atol=1e-6, rtol=0)
    assert row[-1, 2:4].tolist() == [0.0, 0.0]
    borders = torch.tensor([[0.0, 2.0, 0.0, -2.0]]).expand(20, 4)
    torch.testing.assert_close(row[:, 4:8], borders, atol=1e-5, rtol=0)
    assert row[:, 8:].tolist() == [[0.0, 0.0, 0.0, 1.0]] * 20
    assert scene.lanes_speed_limit[0, 0] == 13.5 and scene.lanes_has_speed_limit[0, 0]
    assert not scene.lanes[0, 1:].any() and not scene.lanes_has_speed_limit[0, 1:].any()


def test_borders_against_the_driving_direction_are_turned():
    plain = lane("1", [(0, 0), (30, 0)], "a")
    wrong = {**plain, "left": plain["left"][::-1]}
    np.testing.assert_allclose(lane_table(road(wrong)).lines, lane_table(road(plain)).lines, atol=1e-12)


def test_order_is_by_centreline_points_and_radius_by_area():
    """Lane "far" passes the ego at 3 m but has its points 60 m away; lane "near" has a point 20 m away."""
    far = lane("far", [(-60, 3), (60, 3)], "a")
    near = lane("near", [(20, 0), (40, 0)], "b")
    edge = lane("edge", [(99.9, 50), (99.9, -50)], "c")
    beyond = lane("beyond", [(102.1, 0), (150, 0)], "d")  # its area begins 102.1 m away
    scene = scenes_from_log(log(road(far, beyond, edge, near)), [NOW])
    assert first_points(scene) == [(20.0, 0.0), (-60.0, 3.0), (pytest.approx(99.9, abs=1e-4), 50.0)]


def test_radius_is_closed_and_measured_to_the_area():
    wide = lane("wide", [(-10, 102), (10, 102)], "a")  # its border lies at y = 100, its points farther
    assert len(first_points(scenes_from_log(log(road(wide)), [NOW]))) == 1
    assert not first_points(scenes_from_log(log(road(wide), ego=(0.0, -0.01, 0.0)), [NOW]))


def test_ties_go_to_the_nearer_area_then_to_lanes_then_to_map_order():
    """All begin in (10, 0). The ego stands in the area of 7.0 and 8.0 only."""
    connector = {"kind": "connector", "index": None}
    rows = [
        lane("a", [(10, 0), (30, 0)], "a", **connector, speed_limit_mps=1.0),
        lane("b", [(10, 0), (30, 0)], "b", **connector, speed_limit_mps=2.0),
        lane("c", [(10, 0), (30, 0)], "c", speed_limit_mps=3.0),
        lane("d", [(10, 0), (30, 0)], "d", speed_limit_mps=4.0),
        lane("e", [(10, 0), (-20, 0)], "e", **connector, speed_limit_mps=7.0),
        lane("f", [(10, 0), (-20, 0)], "f", speed_limit_mps=8.0),
    ]
    found = scenes_from_log(log(road(*rows)), [NOW]).lanes_speed_limit[0, :6, 0].tolist()
    assert found == [8.0, 7.0, 3.0, 4.0, 1.0, 2.0]


def test_seventy_nearest_are_kept():
    rows = [lane(str(i), [(0.5 * i, 0), (0.5 * i, 5)], str(i)) for i in range(90)]
    scene = scenes_from_log(log(road(*rows[::-1])), [NOW])
    assert [round(x, 3) for x, _ in first_points(scene)] == [0.5 * i for i in range(70)]
    assert len(first_points(scenes_from_log(log(road(*rows)), [NOW], SceneConfig(lanes=10)))) == 10


@pytest.mark.parametrize(
    ("state", "column"),
    [
        (LightState.GREEN, LaneColumn.IS_GREEN),
        (LightState.RED, LaneColumn.IS_RED),
        (LightState.YELLOW, LaneColumn.IS_UNKNOWN),
        (LightState.UNKNOWN, LaneColumn.IS_UNKNOWN),
        (LightState.ABSENT, LaneColumn.IS_UNKNOWN),
    ],
)
def test_lights(state: LightState, column: LaneColumn):
    rows = [lane("1", [(0, 0), (20, 0)], "a"), lane("2", [(20, 0), (40, 0)], "b", kind="connector")]
    states = np.full(101, LightState.GREEN)
    states[NOW] = state
    scene = scenes_from_log(log(road(*rows), lights={"2": states}), [NOW])
    assert (scene.lanes[0, 1, :, column] == 1).all() and scene.lanes[0, 1, :, 8:].sum() == 20
    assert (scene.lanes[0, 0, :, LaneColumn.IS_UNKNOWN] == 1).all()


def test_yellow_can_be_told():
    rows = [lane("1", [(0, 0), (20, 0)], "a", kind="connector")]
    scenario = log(road(*rows), lights={"1": LightState.YELLOW})
    scene = scenes_from_log(scenario, [NOW], SceneConfig(yellow_is_unknown=False))
    assert (scene.lanes[0, 0, :, LaneColumn.IS_YELLOW] == 1).all()


def test_tables_are_kept_by_identity_and_go_with_their_map():
    import gc

    from radp.scene import lanes as module

    road_map = road(lane("1", [(0, 0), (20, 0)], "a"))
    assert lane_table(road_map) is lane_table(road_map)
    assert lane_table(road(lane("1", [(0, 0), (20, 0)], "a"))) is not lane_table(road_map)
    key = id(road_map)
    del road_map
    gc.collect()
    assert key not in module._tables
