"""Lane choice, resampling, borders and lights, on hand-made maps."""

from __future__ import annotations

import gc
import math

import numpy as np
import pytest
import torch

from radp.geometry.resample import cut_line, line_lengths, resample_line
from radp.road import map_memory
from radp.road.lane_lines import lane_table
from radp.scenario import LightState
from radp.scene.builder import SceneConfig, scenes_from_log
from radp.scene.scene import LaneColumn, present
from tests.made_roads import lane, road
from tests.made_scenarios import log

NOW = 20


def first_points(scene, field: str = "lanes") -> list[tuple[float, float]]:
    rows = getattr(scene, field)[0]
    return [tuple(row[0, :2].tolist()) for row in rows if present(row).any()]


def resampled(points: np.ndarray, count: int) -> np.ndarray:
    out = np.full((count, 2), np.nan)
    resample_line(np.asarray(points, dtype=np.float64).reshape(-1, 2), 0, len(points), out)
    return out


def test_resampling_is_even_in_arc_length():
    corner = [(0.0, 0.0), (1.0, 0.0), (10.0, 0.0), (10.0, 9.0)]  # 19 m, so points lie 1 m apart
    wanted = [(float(i), 0.0) for i in range(11)] + [(10.0, float(i)) for i in range(1, 10)]
    np.testing.assert_allclose(resampled(corner, 20), wanted, atol=1e-12)


def test_resampling_odd_lines():
    assert not resampled([], 5).any()
    assert (resampled([(3.0, 4.0)], 5) == [3.0, 4.0]).all()
    assert (resampled([(3.0, 4.0), (3.0, 4.0)], 5) == [3.0, 4.0]).all()
    doubled = resampled([(0.0, 0.0), (0.0, 0.0), (2.0, 0.0)], 5)
    np.testing.assert_allclose(doubled[:, 0], [0.0, 0.5, 1.0, 1.5, 2.0])


@pytest.mark.parametrize("seed", range(5))
def test_resampling_and_cutting_random_lines(seed: int):
    random = np.random.default_rng(seed)
    for _ in range(20):
        line = random.normal(size=(int(random.integers(2, 60)), 2)) * 20 + 4e6
        s = np.concatenate(([0.0], np.cumsum(np.hypot(*np.diff(line, axis=0).T))))
        even = np.linspace(0.0, s[-1], 20)
        wanted = np.stack([np.interp(even, s, column) for column in line.T], 1)
        found = resampled(line, 20)
        np.testing.assert_allclose(found, wanted, atol=1e-6, rtol=0)
        assert (found[-1] == line[-1]).all() and (found[0] == line[0]).all()
        parts = [cut_line(line, i / 3, (i + 1) / 3) for i in range(3)]
        lengths = line_lengths(np.concatenate(parts), np.cumsum([0, *map(len, parts)]))
        np.testing.assert_allclose(lengths, s[-1] / 3, rtol=1e-6)
        np.testing.assert_allclose([part[0] for part in parts[1:]], [part[-1] for part in parts[:-1]], atol=1e-9)
        assert (parts[0][0] == line[0]).all() and (parts[-1][-1] == line[-1]).all()


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


def test_yellow_can_be_its_own_state():
    rows = [lane("1", [(0, 0), (20, 0)], "a", kind="connector")]
    scenario = log(road(*rows), lights={"1": LightState.YELLOW})
    scene = scenes_from_log(scenario, [NOW], SceneConfig(yellow_is_unknown=False))
    assert (scene.lanes[0, 0, :, LaneColumn.IS_YELLOW] == 1).all()


def test_long_lanes_can_be_cut():
    """120 m at most 50 m a part: three parts of 40 m, in their own order; light, limit and roadblock are the lane's."""
    long = lane("1", [(0, 0), (60, 0), (120, 0)], "a", ("2",), speed_limit_mps=9.0)
    short = lane("2", [(120, 0), (165, 0)], "b", kind="connector")
    scenario = log(road(long, short), ego=(70.0, 0.0, 0.0), route=("a", "b"), lights={"2": LightState.RED})
    scene = scenes_from_log(scenario, [NOW], SceneConfig(lane_length=50.0))
    torch.testing.assert_close(scene.lanes[0, :4, 0, 0], torch.tensor([-30.0, 10.0, -70.0, 50.0]))
    torch.testing.assert_close(scene.lanes[0, :4, -1, 0], torch.tensor([10.0, 50.0, -30.0, 95.0]))
    assert scene.lanes_speed_limit[0, :5, 0].tolist() == [9.0, 9.0, 9.0, 0.0, 0.0]
    assert scene.lanes[0, :4, 0, LaneColumn.IS_RED].tolist() == [0.0, 0.0, 0.0, 1.0]
    assert torch.equal(scene.route_lanes[0, :4], scene.lanes[0, :4])
    torch.testing.assert_close(scene.lanes[0, 0, :, 5], torch.full((20,), 2.0))
    whole = scenes_from_log(scenario, [NOW], SceneConfig(lane_length=500.0))
    assert torch.equal(whole.lanes, scenes_from_log(scenario, [NOW]).lanes)


def test_radius_is_measured_to_the_part():
    far = lane("1", [(-50, 0), (350, 0)], "a")
    scene = scenes_from_log(log(road(far)), [NOW], SceneConfig(lane_length=50.0))
    assert sorted(x for x, _ in first_points(scene)) == pytest.approx([-50.0, 0.0, 50.0, 100.0])


def test_tables_are_kept_by_identity_and_go_with_their_map():
    road_map = road(lane("1", [(0, 0), (20, 0)], "a"))
    assert lane_table(road_map) is lane_table(road_map)
    assert lane_table(road_map, 50.0) is not lane_table(road_map)
    assert lane_table(road(lane("1", [(0, 0), (20, 0)], "a"))) is not lane_table(road_map)
    key = id(road_map)
    assert key in map_memory._memories
    del road_map
    gc.collect()
    assert key not in map_memory._memories
