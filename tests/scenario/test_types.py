"""What validate() refuses, and that it names the field and the bad value."""

from dataclasses import replace

import numpy as np
import pytest

from radp.geometry.ragged import Ragged
from tests.small_scenarios import small_map, small_scenario


def changed(array: np.ndarray, index, value) -> np.ndarray:
    out = array.copy()
    out[index] = value
    return out


def with_tracks(**fields):
    scenario = small_scenario()
    return replace(scenario, tracks=replace(scenario.tracks, **fields))


def with_map(**fields):
    return replace(small_scenario(), map=replace(small_map(), **fields))


def with_lights(**fields):
    scenario = small_scenario()
    return replace(scenario, lights=replace(scenario.lights, **fields))


BASE = small_scenario()
BAD = [
    (replace(BASE, ego=BASE.ego[:-1]), r"scenario 'small': ego has shape \(5, 11\), expected \(6, 11\)"),
    (replace(BASE, ego=BASE.ego[:, :10]), "ego has shape"),
    (replace(BASE, ego=changed(BASE.ego, (2, 0), np.nan)), "ego holds a value that is not finite"),
    (replace(BASE, start=-1), "start is -1, expected at least 0"),
    (replace(BASE, dt=0.0), "dt is 0.0"),
    (replace(BASE, goal=np.zeros(2)), r"goal has shape \(2,\), expected \(3,\)"),
    (replace(BASE, goal=np.array([0.0, np.nan, 0.0])), "goal .* finite"),
    (replace(BASE, start=5), "1 frames, at least 2"),
    (replace(BASE, time_us=changed(BASE.time_us, 3, BASE.time_us[2])), "time_us does not increase at frame 3"),
    (with_tracks(state=BASE.tracks.state[:1]), r"tracks.state has shape \(1, 6, 5\)"),
    (with_tracks(state=changed(BASE.tracks.state, (0, 3, 1), np.inf)), "tracks.state holds"),
    (with_tracks(valid=BASE.tracks.valid[:, :3]), "tracks.valid has shape"),
    (with_tracks(size=BASE.tracks.size[:, :2]), "tracks.size has shape"),
    (with_tracks(type=np.array([0, 9], dtype=np.uint8)), "tracks.type holds 9, expected 0..6"),
    (with_lights(state=BASE.lights.state[1:]), "lights.state has shape"),
    (with_lights(lane=np.array([3])), r"lights.lane points to 3, expected 0\.\.2"),
    (with_lights(lane=np.array([-1])), "lights.lane points to -1"),
    (with_map(speed_limit=np.zeros(2)), "speed_limit has 2 rows for 3 lanes"),
    (with_map(lane_ids=("1", "2", "2")), "lane ids are not unique"),
    (with_map(successors=Ragged.from_rows([[3], [], []], dtype=np.int64)), r"successors points to 3, expected 0\.\.2"),
    (with_map(roadblock=np.array([0, 0, 2])), r"roadblock points to 2, expected 0\.\.1"),
    (with_map(lane_stop_lines=Ragged.from_rows([[], [], [1]], dtype=np.int64)), "lane_stop_lines points to 1"),
    (with_map(left=Ragged.from_rows([[(0, 0)], [(0, 0)] * 2, [(0, 0)] * 2], width=2)), "lane '1' has a left of fewer"),
    (
        with_map(right=Ragged.from_rows([[(0, 0)] * 2, [(0, 0), (np.nan, 0)], [(0, 0)] * 2], width=2)),
        "lane '2' has a right point that is not finite",
    ),
]


def test_the_small_scenario_is_sound():
    BASE.validate()
    assert BASE.frames == 5
    assert BASE.map.lane_index == {"1": 0, "2": 1, "7": 2}
    assert [row.tolist() for row in BASE.map.lanes_of_roadblock] == [[0, 1], [2]]


@pytest.mark.parametrize(("scenario", "words"), BAD, ids=[str(i) for i in range(len(BAD))])
def test_what_is_wrong_is_named(scenario, words):
    with pytest.raises(ValueError, match=words):
        scenario.validate()
