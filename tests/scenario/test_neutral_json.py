"""Neutral JSON: round trips, and files that are damaged or say something else."""

import copy
import gzip
import json
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from radp.scenario import Scenario
from radp.scenario.neutral_json import (
    NeutralJsonError,
    read_scenario,
    save_json,
    scenario_from_json,
    scenario_to_json,
)
from tests.shared_data import shared_params
from tests.small_scenarios import assert_same, small_scenario

SMALL = scenario_to_json(small_scenario())


def through_json(scenario: Scenario) -> Scenario:
    return scenario_from_json(json.loads(json.dumps(scenario_to_json(scenario))))


def test_everything_comes_back_but_the_way_roadblocks_are_drawn():
    scenario = small_scenario()
    back = through_json(scenario)
    for name in (
        "token",
        "kind",
        "source",
        "time_us",
        "ego",
        "tracks",
        "lights",
        "route",
        "goal",
        "start",
        "dt",
        "tags",
    ):
        assert_same(getattr(back, name), getattr(scenario, name))
    for name in ("lane_ids", "is_connector", "centerlines", "left", "right", "lane_polygons", "speed_limit", "name",
                 "has_speed_limit", "predecessors", "successors", "left_neighbor", "right_neighbor", "roadblock",
                 "lane_stop_lines", "intersections", "drivable", "stop_lines", "crosswalks"):  # fmt: skip
        assert_same(getattr(back.map, name), getattr(scenario.map, name))
    areas = [shapely.Polygon(rings[0]).area for rings in back.map.roadblocks.polygons]
    assert areas == [40.0 * 8.0, 20.0 * 4.0]


def test_a_second_round_trip_changes_nothing():
    once = through_json(small_scenario())
    assert_same(through_json(once), once)


@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_files(tmp_path, suffix):
    file = tmp_path / f"small{suffix}"
    save_json(SMALL, file)
    assert (file.read_bytes()[:2] == b"\x1f\x8b") == (suffix == ".json.gz")
    assert_same(read_scenario(file), through_json(small_scenario()))
    first = file.read_bytes()
    save_json(SMALL, file)
    assert file.read_bytes() == first


def published_scenarios() -> list:
    params = shared_params("golden/nuplan/rollouts/*.json.gz") + shared_params(
        "golden/nuplan/closed_loop/*.scenario.json.gz"
    )
    return [param for param in params if param.values[0] is None or ".result." not in param.values[0].name]


@pytest.mark.golden
@pytest.mark.parametrize("path", published_scenarios())
def test_published_scenarios_come_back(path):
    scenario = read_scenario(path)
    assert_same(through_json(scenario), scenario)


def test_what_may_be_missing():
    data = {key: SMALL[key] for key in ("expert", "agents", "map")}
    data["expert"] = {key: data["expert"][key] for key in ("time_us", "x", "y", "heading")}
    scenario = scenario_from_json(data, name="folder/some_file.json.gz")
    assert (scenario.token, scenario.kind, scenario.source) == ("some_file", "unknown", "rollout_json")
    assert scenario.goal is None and scenario.route == () and scenario.start == 0
    assert not scenario.ego[:, 3:].any() and len(scenario.lights.lane) == 0


def test_frames_beyond_the_last_one_are_dropped():
    data = copy.deepcopy(SMALL)
    agent = data["agents"][0]
    for key in ("frame", "x", "y", "heading", "vx", "vy"):
        agent[key] = [*agent[key], 99 if key == "frame" else 0.0]
    assert_same(scenario_from_json(data).tracks, small_scenario().tracks)


def put(path: str, value: Any) -> dict[str, Any]:
    """The small scenario with one value changed; `path` is dotted, numbers are list positions."""
    data = copy.deepcopy(SMALL)
    *way, last = [int(step) if step.isdecimal() else step for step in path.split(".")]
    place: Any = data
    for step in way:
        place = place[step]
    place[last] = value
    return data


BAD = [
    ("expert", None, "expert"),
    ("expert.x", [0.0], "expert"),
    ("expert.y", ["a"] * 6, "expert"),
    ("expert.time_us", [1, 2, 3, 4, 5, 5], "time_us does not increase at frame 5"),
    ("expert.heading", [float("nan")] * 6, "ego holds a value that is not finite"),
    ("agents.0.type", "TRUCK", "agents: type is 'TRUCK', expected one of VEHICLE, PEDESTRIAN"),
    ("agents.0.x", [1.0], "agents"),
    ("agents.1.length", None, "tracks.size"),
    ("agents", {"a": 1}, "agents"),
    ("traffic_lights.0.status", "BLUE", "traffic_lights: status is 'BLUE', expected one of"),
    (
        "traffic_lights.0.lane_connector_id",
        99,
        "traffic_lights: lane_connector_id is '99', which the map does not have",
    ),
    ("map.lanes.0.kind", None, None),
    ("map.lanes.0.left", [[0.0, 0.0]], "lane '1' has a left of fewer than 2 points"),
    ("map.lanes.0.centerline", [[0.0, 0.0, 0.0]], "map"),
    ("map.lanes.1.id", 1, "lane ids are not unique"),
    ("map.lanes", 3, "map"),
    ("mission_goal", [1.0, 2.0], r"goal has shape \(2,\), expected \(3,\)"),
    ("start", -1, "start is -1"),
    ("tags", ["a"], "tags"),
]


@pytest.mark.parametrize(("path", "value", "words"), BAD, ids=[path for path, *_ in BAD])
def test_bad_values_are_named_with_the_file(path, value, words):
    if words is None:
        scenario_from_json(put(path, value))
        return
    with pytest.raises(NeutralJsonError, match=words) as caught:
        scenario_from_json(put(path, value), name="some/file.json")
    assert str(caught.value).startswith("some/file.json: ") and "\n" not in str(caught.value)


@pytest.mark.parametrize("field", ["expert", "agents", "map"])
def test_a_missing_field_is_named(field):
    data = {key: value for key, value in SMALL.items() if key != field}
    with pytest.raises(NeutralJsonError, match=f"field '{field}' is missing"):
        scenario_from_json(data, name="file.json")


RAW = gzip.compress(json.dumps(SMALL).encode())
FILES = {
    "empty": b"",
    "text": b"hello",
    "list": b"[1, 2]",
    "cut": json.dumps(SMALL).encode()[:-20],
    "cut gzip": RAW[:-50],
    "flipped gzip": RAW[:40] + bytes([RAW[40] ^ 255]) + RAW[41:],
    "not utf-8": b'{"name": "\xff"}',
    "deep": b"[" * 100_000,
}


@pytest.mark.parametrize("name", list(FILES))
def test_files_that_are_not_json_are_named(tmp_path, name):
    file = tmp_path / "bad.json.gz"
    file.write_bytes(FILES[name])
    with pytest.raises(NeutralJsonError, match=r"bad\.json\.gz: ") as caught:
        read_scenario(file)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(NeutralJsonError, match=r"nowhere\.json: not a readable JSON file"):
        read_scenario(tmp_path / "nowhere.json")


def paths(value: Any, prefix: tuple = ()) -> list[tuple]:
    """Every place in a JSON value; of long lists only the first two items."""
    found = [prefix] if prefix else []
    items = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, child in items:
        found += paths(child, (*prefix, key))
    return found


JUNK = st.sampled_from(
    [
        None,
        True,
        -1,
        3,
        10**30,
        0.5,
        float("nan"),
        float("inf"),
        "",
        "x",
        [],
        [[]],
        [None],
        {},
        {"id": 1},
        [1, 2],
        [[0, 0]],
    ]
)


@given(st.lists(st.tuples(st.sampled_from(paths(SMALL)), JUNK), min_size=1, max_size=2))
@settings(max_examples=400, deadline=None)
def test_junk_anywhere_gives_a_scenario_or_one_sentence(changes):
    data = copy.deepcopy(SMALL)
    for path, junk in changes:
        place: Any = data
        try:
            for step in path[:-1]:
                place = place[step]
            place[path[-1]] = junk
        except (KeyError, IndexError, TypeError):
            continue  # the first change removed the place of the second
    try:
        scenario = scenario_from_json(data, name="file.json")
    except NeutralJsonError as error:
        assert str(error).startswith("file.json: ") and "\n" not in str(error)
    else:
        scenario.validate()
        assert np.isfinite(scenario.ego).all()
