"""Edits of a scenario, in cases whose answers are known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from radp.runs.errors import BadInput
from radp.scenario import PACIFICA, Box, Ego, LightState, ObjectType, Scenario
from radp.scenario.neutral_json import scenario_from_json, scenario_to_json
from radp.studio.edits import apply_edits, from_step, parse_edits
from radp.studio.motion import at_speed, moved, new_motion, onward_path
from tests.made_scenarios import made_scenario, thing

ORIGIN = np.array([100.0, -50.0])
SECONDS = 0.1 * np.arange(101)
AHEAD = np.array([[1000.0, 0.0, 0.0]])


def even(speed: float = 5.0) -> np.ndarray:
    """(101, 5): eastwards along y = 0, at x = 0 in frame 20."""
    states = np.zeros((101, 5))
    states[:, Box.X], states[:, Box.VX] = speed * (SECONDS - SECONDS[20]), speed
    return states


def scenario() -> Scenario:
    """The ego at 8 m/s on a street that leads east; a car ahead of it at 5 m/s, one that stands, and a cone."""
    things = (
        thing("lead", 60.0, speed=5.0),
        thing("parked", 90.0),
        thing("cone", 50.0, 3.0, type="TRAFFIC_CONE", length=0.4, width=0.4),
    )
    return made_scenario(things=things, lights=("GREEN",))


def edited(*rows: dict) -> Scenario:
    log = scenario()
    result = apply_edits(log, parse_edits(list(rows)), np.zeros(2))
    result.validate()
    return result


def state(log: Scenario, who: str, step: int) -> np.ndarray:
    return log.tracks.state[log.tracks.ids.index(who), log.start + step]


def test_moved_turns_and_shifts_the_whole_motion() -> None:
    out = moved(even(), 20, np.array([12.0, 3.0, math.pi / 2]))
    assert out[20] == pytest.approx([12.0, 3.0, math.pi / 2, 0.0, 5.0])
    assert out[10] == pytest.approx([12.0, -2.0, math.pi / 2, 0.0, 5.0])
    assert out[30] == pytest.approx([12.0, 8.0, math.pi / 2, 0.0, 5.0])


@pytest.mark.parametrize("speed", [0.0, 2.5, 10.0])
def test_another_speed_on_the_same_way(speed: float) -> None:
    out = at_speed(even(), np.ones(101, bool), SECONDS, 20, speed, AHEAD)
    assert out[:, Box.X] == pytest.approx(speed * (SECONDS - SECONDS[20]), abs=1e-9)
    assert out[:, Box.VX] == pytest.approx(speed)
    assert out[:, [Box.Y, Box.VY]] == pytest.approx(0.0)


def test_a_car_that_brakes_in_the_log_still_brakes_when_it_is_faster() -> None:
    states = even()
    states[60:, Box.X], states[60:, Box.VX] = states[60, Box.X], 0.0
    out = at_speed(states, np.ones(101, bool), SECONDS, 20, 10.0, AHEAD)
    assert out[20, Box.X] == pytest.approx(0.0)
    assert out[60:, Box.X] == pytest.approx(2 * states[60, Box.X])
    assert out[60:, Box.VX] == pytest.approx(0.0)


def test_who_stands_drives_off_evenly() -> None:
    standing = np.zeros((101, 5))
    standing[:, Box.HEADING] = math.pi / 2
    onward = np.array([[0.0, 800.0, math.pi / 2]])
    out = at_speed(standing, np.ones(101, bool), SECONDS, 20, 4.0, onward)
    assert out[:, Box.Y] == pytest.approx(4.0 * (SECONDS - SECONDS[20]))
    assert out[:, Box.VY] == pytest.approx(4.0)
    assert out[:, Box.X] == pytest.approx(0.0, abs=1e-9)


def test_frames_in_which_nobody_was_seen_stay_empty() -> None:
    valid = np.arange(101) > 10
    out = at_speed(np.where(valid[:, None], even(), 0.0), valid, SECONDS, 20, 10.0, AHEAD)
    assert not out[:11].any()
    assert out[11, Box.X] == pytest.approx(-9.0)


def test_a_new_car_follows_its_lane_around_a_bend() -> None:
    log = made_scenario(radius=30.0)
    pose = np.array([20.0, 0.5, 0.0])
    onward = onward_path(log.map, pose)
    out = new_motion(pose, 10.0, SECONDS, 20, onward)
    assert out[20, :3] == pytest.approx(pose)
    assert out[0, :2] == pytest.approx([0.0, 0.5])
    # From 40 m on the street bends left with a radius of 30 m; half a metre further left that is 29.5 m.
    distance = np.hypot(out[70:, Box.X] - 40.0, out[70:, Box.Y] - 30.0)
    assert distance == pytest.approx(29.5, abs=0.1)
    assert np.hypot(*np.diff(out[20:, :2], axis=0).T) == pytest.approx(1.0, abs=0.03)


def test_off_the_road_it_goes_straight() -> None:
    pose = np.array([-500.0, 700.0, 1.0])
    out = new_motion(pose, 3.0, SECONDS, 0, onward_path(made_scenario().map, pose))
    assert out[100, :2] == pytest.approx(pose[:2] + 30.0 * np.array([math.cos(1.0), math.sin(1.0)]))


def test_move_somebody() -> None:
    log = edited({"kind": "move", "who": "lead", "at": 10, "x": 70.0, "y": -3.0, "heading": 0.0})
    assert state(log, "lead", 10)[:3] == pytest.approx([70.0, -3.0, 0.0])
    assert state(log, "lead", 20)[:2] == pytest.approx([75.0, -3.0])
    assert (state(log, "parked", 10) == state(scenario(), "parked", 10)).all()


def test_places_count_from_the_origin_of_the_page() -> None:
    rows = [{"kind": "move", "who": "lead", "at": 0, "x": 1.0, "y": 2.0, "heading": 0.0}]
    log = apply_edits(scenario(), parse_edits(rows), ORIGIN)
    assert state(log, "lead", 0)[:2] == pytest.approx([101.0, -48.0])


def test_move_the_ego_by_the_centre_of_its_box() -> None:
    log = edited({"kind": "move", "who": "ego", "at": 5, "x": 30.0, "y": 1.0, "heading": math.pi / 2})
    now = log.ego[log.start + 5]
    assert now[: Ego.VX] == pytest.approx([30.0, 1.0 - PACIFICA.rear_axle_to_center, math.pi / 2])
    assert now[Ego.VX :] == pytest.approx(scenario().ego[log.start + 5, Ego.VX :])
    assert log.ego[log.start + 15, Ego.Y] == pytest.approx(now[Ego.Y] + 8.0)


def test_stop_and_speed_up() -> None:
    log = edited(
        {"kind": "speed", "who": "lead", "at": 10, "speed": 0.0},
        {"kind": "speed", "who": "ego", "at": 0, "speed": 12.0},
    )
    stopped = state(scenario(), "lead", 10)
    for step in (0, 10, 50):
        assert state(log, "lead", step) == pytest.approx([stopped[0], stopped[1], stopped[2], 0.0, 0.0])
    assert log.ego[log.start, Ego.VX] == pytest.approx(12.0)
    assert log.ego[log.start, : Ego.HEADING] == pytest.approx(scenario().ego[log.start, : Ego.HEADING])
    assert log.ego[log.start + 10, Ego.X] - log.ego[log.start, Ego.X] == pytest.approx(12.0, abs=1e-6)


def test_remove_and_add() -> None:
    log = edited(
        {"kind": "remove", "who": "lead", "at": 0},
        {"kind": "add", "who": "new", "at": 10, "type": "VEHICLE", "x": 70.0, "y": 0.2, "speed": 6.0},
        {"kind": "add", "who": "walker", "at": 10, "type": "PEDESTRIAN", "x": 40.0, "y": 5.0, "heading": -1.0},
        {
            "kind": "add",
            "who": "jogger",
            "at": 10,
            "type": "PEDESTRIAN",
            "x": 40.0,
            "y": 5.0,
            "heading": 0.0,
            "speed": 3.0,
        },
        {"kind": "move", "who": "new", "at": 10, "x": 72.0, "y": 0.2, "heading": 0.0},
    )
    assert log.tracks.ids == ("parked", "cone", "new", "walker", "jogger")
    assert log.tracks.type[-1] == ObjectType.PEDESTRIAN
    assert log.tracks.valid[-2:].all()
    assert state(log, "new", 10) == pytest.approx([72.0, 0.2, 0.0, 6.0, 0.0], abs=1e-6)
    assert state(log, "new", 20)[0] == pytest.approx(78.0, abs=0.05)
    assert state(log, "jogger", 20) == pytest.approx([43.0, 5.0, 0.0, 3.0, 0.0])
    assert state(log, "walker", 100)[:3] == pytest.approx([40.0, 5.0, -1.0])


def test_a_light_changes_from_then_on() -> None:
    log = edited({"kind": "light", "light": 0, "at": 30, "state": "RED"})
    shown = log.lights.state[log.start :, 0]
    assert (shown[:30] == LightState.GREEN).all()
    assert (shown[30:] == LightState.RED).all()


def test_the_edited_scenario_is_neutral_json_that_begins_at_the_moment() -> None:
    log = from_step(edited({"kind": "remove", "who": "lead", "at": 0}), 40)
    again = scenario_from_json(scenario_to_json(log))
    assert (again.start, again.frames) == (scenario().start + 40, scenario().frames - 40)
    assert again.tracks.ids == log.tracks.ids
    assert (again.ego == log.ego).all()


@pytest.mark.parametrize(
    "row, words",
    [
        ({"kind": "fly", "at": 0}, "kind is not one of move, speed"),
        (["move"], "kind is not one of"),
        ({"kind": "move", "who": "lead", "at": 0, "x": 1e9, "y": 0.0, "heading": 0.0}, "x is 1000000000.0"),
        ({"kind": "move", "who": "lead", "at": 0, "x": math.nan, "y": 0.0, "heading": 0.0}, "x is nan"),
        ({"kind": "move", "who": "lead", "at": 0, "x": "0", "y": 0.0, "heading": 0.0}, "x is '0', expected float"),
        ({"kind": "move", "who": "lead", "at": 0, "x": True, "y": 0.0, "heading": 0.0}, "x is True"),
        ({"kind": "move", "who": "lead", "at": 0.5, "x": 0.0, "y": 0.0, "heading": 0.0}, "at is 0.5, expected int"),
        ({"kind": "move", "who": "lead", "at": 0, "x": 0.0}, "y"),
        ({"kind": "move", "who": "lead", "at": 0, "x": 0.0, "y": 0.0, "heading": 0.0, "z": 1}, "z"),
        ({"kind": "move", "who": "nobody", "at": 0, "x": 0.0, "y": 0.0, "heading": 0.0}, "nobody here is called"),
        ({"kind": "remove", "who": "ego", "at": 0}, "nobody here is called 'ego'"),
        ({"kind": "speed", "who": "lead", "at": 0, "speed": -1.0}, "expected at least 0"),
        ({"kind": "speed", "who": "lead", "at": 0, "speed": 1e300}, "expected at most 60"),
        ({"kind": "speed", "who": "cone", "at": 0, "speed": 1.0}, "is a traffic cone, which cannot move"),
        ({"kind": "speed", "who": "lead", "at": 100_000, "speed": 1.0}, "at is 100000"),
        ({"kind": "speed", "who": "lead", "at": -1, "speed": 1.0}, "at is -1"),
        ({"kind": "add", "who": "lead", "at": 0, "type": "VEHICLE", "x": 0.0, "y": 0.0}, "there is a 'lead' already"),
        ({"kind": "add", "who": "x" * 81, "at": 0, "type": "VEHICLE", "x": 0.0, "y": 0.0}, "who has 81 characters"),
        ({"kind": "add", "who": "new", "at": 0, "type": "TANK", "x": 0.0, "y": 0.0}, "type is 'TANK'"),
        ({"kind": "light", "light": 9, "at": 0, "state": "RED"}, "the scenario has 1"),
        ({"kind": "light", "light": 0, "at": 0, "state": "PINK"}, "state is 'PINK'"),
    ],
)  # fmt: skip
def test_edits_that_make_no_sense_are_refused(row: dict, words: str) -> None:
    with pytest.raises(BadInput, match="edit 1: ") as refused:
        edited(row)
    assert words in str(refused.value)


def test_too_many_edits_are_refused() -> None:
    with pytest.raises(BadInput, match="at most 500"):
        parse_edits([{}] * 501)


@pytest.mark.parametrize("step", [-1, 150, 10**9])
def test_moments_outside_the_drive_are_refused(step: int) -> None:
    with pytest.raises(BadInput, match="step is"):
        from_step(scenario(), step)
