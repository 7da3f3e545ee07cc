"""The compiled road: one for each map, beside the map and not in it."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from radp.geometry.kernels import line_length
from radp.road.arrays import road_arrays
from radp.road.lane_lines import lane_line, lane_lines
from radp.road.rails import join_rails, rails
from radp.sources.synthetic.road import make_map


@pytest.fixture(scope="module")
def road_map():
    return make_map(0)


def test_the_arrays_say_what_the_map_says(road_map):
    road = road_arrays(road_map)
    graph, lines = road.graph, road.centre
    for lane in range(len(road_map)):
        line = lines.points[lines.offsets[lane] : lines.offsets[lane + 1]]
        step = np.diff(line[:, :2], axis=0)
        np.testing.assert_array_equal(line[:, :2], road_map.centerlines[lane])
        np.testing.assert_allclose(line[:-1, 2], np.arctan2(step[:, 1], step[:, 0]))
        assert line[-1, 2] == line[-2, 2]
        assert lane_lines(road_map).length[lane] == pytest.approx(line_length(line, 0, len(line)))
        block = graph.roadblock[lane]
        assert lane in graph.members[graph.member_offsets[block] : graph.member_offsets[block + 1]]
        for links, offsets, wanted in (
            (graph.successors, graph.successor_offsets, road_map.successors),
            (graph.predecessors, graph.predecessor_offsets, road_map.predecessors),
        ):
            assert links[offsets[lane] : offsets[lane + 1]].tolist() == wanted[lane].tolist()
        assert graph.neighbors[lane].tolist() == [road_map.left_neighbor[lane], road_map.right_neighbor[lane]]
        own = lane_line(lane_lines(road_map), lane)
        np.testing.assert_allclose(own[[0, -1], :2], line[[0, -1], :2])
        assert np.hypot(*np.diff(own[:, :2], axis=0).T).max() <= 2.0 + 1e-9


def test_what_was_compiled_is_kept_once_and_not_in_the_map(road_map):
    fresh = replace(road_map)
    size = len(pickle.dumps(fresh))
    assert road_arrays(fresh) is road_arrays(fresh)
    assert rails(fresh) is rails(fresh)
    assert rails(fresh).vertex is road_arrays(fresh).centre.points
    assert road_arrays(road_map) is not road_arrays(fresh)
    lanes_of_roadblock = len(pickle.dumps(fresh)) - size  # which the map itself remembers
    assert lanes_of_roadblock < 0.1 * size


def test_arrays_that_cannot_be_written_are_copied(road_map):
    locked = road_map.centerlines.values.copy()
    locked.flags.writeable = False
    fresh = replace(road_map, centerlines=replace(road_map.centerlines, values=locked))
    road = road_arrays(fresh)
    assert all(array.flags.writeable and array.flags.c_contiguous for part in road for array in part)
    assert lane_lines(fresh).points.flags.writeable


def test_joined_rails_are_those_of_each_map(road_map):
    parts = [rails(road_map), rails(make_map(1)), rails(road_map)]
    joined, first_lane = join_rails(parts)
    stops = np.cumsum([0, *(len(part.stop_point_offsets) - 1 for part in parts)])
    for part, first, first_stop in zip(parts, first_lane, stops):
        for lane in range(len(part.curvature)):
            for name, shift in (("vertex", 0), ("successor", first), ("stop", first_stop)):
                values, wanted = row_of(joined, name, first + lane), row_of(part, name, lane)
                np.testing.assert_array_equal(values - shift, wanted)


def row_of(rails, name, lane):
    values, offsets = getattr(rails, name), getattr(rails, f"{name}_offsets")
    return values[offsets[lane] : offsets[lane + 1]]
