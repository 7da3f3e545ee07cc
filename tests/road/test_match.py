"""The lanes under a path."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from radp.road.arrays import road_arrays
from radp.road.match import match_lanes, thin_path
from radp.scenario import ObjectType
from radp.scenario.as_ego import longest_run
from radp.sources.synthetic import make_scenario
from tests.made_roads import CONNECTOR, fork, lane, road


def test_thin_path():
    path = np.stack((np.arange(11.0), np.zeros(11), np.zeros(11)), 1)
    assert thin_path(path)[:, 0].tolist() == [0.0, 3.0, 6.0, 9.0, 10.0]
    assert len(thin_path(np.zeros((5, 3)))) == 2


def test_matching_prefers_one_chain_to_the_nearest_lane_at_each_pose():
    """Two connectors lie one above the other for 20 m; only the end says which one was driven."""
    arrays = road_arrays(
        road(
            lane("in", [(0, 0), (20, 0)], "a", ("s", "l")),
            lane("s", [(20, 0), (40, 0), (60, 0)], "b", ("out",), **CONNECTOR),
            lane("l", [(20, 0), (40, 0.5), (60, 12)], "c", **CONNECTOR),
            lane("out", [(60, 0), (90, 0)], "d"),
        )
    )
    path = np.stack((np.arange(0.0, 90.0, 2.5), np.full(36, 0.4), np.zeros(36)), 1)  # nearer to "l" for a while
    assert list(dict.fromkeys(match_lanes(arrays, path).tolist())) == [0, 1, 3]


def test_matching_synthetic_traffic_gives_linked_lanes():
    scenario = make_scenario(2)
    arrays, blocks = road_arrays(scenario.map), scenario.map
    for i in np.flatnonzero(scenario.tracks.type == ObjectType.VEHICLE):
        path = scenario.tracks.state[i, longest_run(scenario.tracks.valid[i]), :3]
        lanes = list(dict.fromkeys(match_lanes(arrays, thin_path(path)).tolist()))
        assert all(b in blocks.successors[a] for a, b in pairwise(lanes))


def test_matching_nothing():
    assert len(match_lanes(road_arrays(road()), np.zeros((3, 3)))) == 0
    assert len(match_lanes(road_arrays(fork()), np.full((3, 3), 999.0))) == 0
