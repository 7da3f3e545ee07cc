"""Any vehicle as the ego."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from radp.scenario import PACIFICA, Box, Ego, ObjectType
from radp.scenario.as_ego import as_ego, longest_run, possible_egos
from radp.scene.builder import SceneConfig, scenes_from_log
from radp.scene.scene import present
from radp.sources.synthetic import make_scenario
from tests.made_roads import fork
from tests.made_scenarios import log


def drive_east(frames: int = 141, speed: float = 5.0, y: float = 0.0) -> np.ndarray:
    state = np.zeros((frames, len(Box)))
    state[:, Box.X], state[:, Box.Y], state[:, Box.VX] = 10.0 + 0.1 * speed * np.arange(frames), y, speed
    return state


def test_longest_run():
    assert longest_run(np.array([0, 1, 1, 0, 1, 1, 1, 0, 1], dtype=bool)) == slice(4, 7)
    assert longest_run(np.array([1, 1, 0, 1, 1], dtype=bool)) == slice(0, 2)
    assert longest_run(np.zeros(3, dtype=bool)) == slice(0, 0)


def test_rear_axle_and_rates_of_a_turning_vehicle():
    """A circle of radius 20 m at 5 m/s: the centre drives along it, the heading is the tangent."""
    t = 0.1 * np.arange(141)
    turn = 5.0 / 20.0 * t
    state = np.stack((20 * np.sin(turn), -20 * np.cos(turn), turn, 5 * np.cos(turn), 5 * np.sin(turn)), 1)
    length = 6.0
    scenario = log(objects=[{"id": "x", "state": state, "size": (length, 2.0)}], frames=141)
    ego = as_ego(scenario, "x").ego
    back = PACIFICA.rear_axle_to_center * length / PACIFICA.length
    middle = ego[5:-5]
    np.testing.assert_allclose(np.hypot(ego[:, 0], ego[:, 1]), math.hypot(20.0, back), atol=1e-9)
    np.testing.assert_allclose(middle[:, Ego.YAW_RATE], 0.25, atol=1e-9)
    np.testing.assert_allclose(middle[:, Ego.VX], 5.0, atol=1e-9)
    np.testing.assert_allclose(middle[:, Ego.VY], -back * 0.25, atol=1e-9)
    np.testing.assert_allclose(middle[:, Ego.STEERING], math.atan(PACIFICA.wheel_base * 0.05), atol=1e-9)
    # The velocity is that of the rear axle: it is how the position changes.
    c, s = np.cos(ego[:, 2]), np.sin(ego[:, 2])
    world = np.stack((c * ego[:, Ego.VX] - s * ego[:, Ego.VY], s * ego[:, Ego.VX] + c * ego[:, Ego.VY]), 1)
    np.testing.assert_allclose(np.gradient(ego[:, :2], 0.1, axis=0)[2:-2], world[2:-2], atol=1e-3)


def test_old_ego_becomes_the_last_track_and_back_again():
    scenario = make_scenario(3, agents=12)
    name = possible_egos(scenario, 101)[0]
    other = as_ego(scenario, name)
    other.validate()
    assert other.tracks.ids[-1] == "ego" and name not in other.tracks.ids
    assert len(other.tracks) == len(scenario.tracks)
    again = as_ego(other, "ego")
    np.testing.assert_allclose(again.ego[:, :3], scenario.ego[:, :3], atol=1e-9)
    np.testing.assert_allclose(again.ego[:, Ego.VX : Ego.VY + 1], scenario.ego[:, Ego.VX : Ego.VY + 1], atol=1e-9)


def test_log_is_cut_to_the_time_in_which_the_vehicle_is_tracked():
    valid = np.zeros(141, dtype=bool)
    valid[3:8] = valid[10:120] = True
    others = {"id": "y", "state": drive_east(y=4.0)}
    scenario = log(fork(), [{"id": "x", "state": drive_east(), "valid": valid}, others], frames=141, start=20)
    cut = as_ego(scenario, "x")
    cut.validate()
    assert len(cut.time_us) == 110 and cut.time_us[0] == scenario.time_us[10] and cut.start == 10
    assert cut.tracks.ids == ("y", "ego")
    assert np.array_equal(cut.tracks.state[0], scenario.tracks.state[1, 10:120])


def test_route_is_the_path_and_then_straight_on():
    scenario = log(fork(), [{"id": "x", "state": drive_east(141, 3.0)}], frames=141)  # ends at x = 52
    assert as_ego(scenario, "x").route == ("a", "straight", "b")
    path = drive_east(141, 3.0)
    around = np.array(
        [[60.0 + 10 * i / 60, 3 * i / 60] for i in range(61)] + [[70 + 5 * i / 60, 3 + 12 * i / 60] for i in range(61)]
    )
    path[:20, 0] = np.linspace(40, 60, 20)
    path[19:141, :2] = around
    step = np.gradient(path[:, :2], axis=0)
    path[:, 2] = np.arctan2(step[:, 1], step[:, 0])
    assert as_ego(log(fork(), [{"id": "x", "state": path}], frames=141), "x").route == ("a", "left", "c")


@pytest.mark.parametrize("order", ["lanes", "driving"])
def test_route_does_not_tell_how_far_the_vehicle_drives(order):
    """The same first 21 frames, then one brakes and one drives on: their routes look the same."""
    slow, fast = drive_east(), drive_east()
    slow[21:, 0], slow[21:, 3] = slow[20, 0], 0.0
    fast[21:, 0] += np.arange(120)
    scenes = [
        scenes_from_log(
            as_ego(log(fork(), [{"id": "x", "state": state}], frames=141), "x"), [20], SceneConfig(route_order=order)
        )
        for state in (slow, fast)
    ]
    assert not torch.equal(scenes[0].ego_agent_future, scenes[1].ego_agent_future)
    assert torch.equal(scenes[0].route_lanes, scenes[1].route_lanes) and present(scenes[0].route_lanes).any()


def test_who_can_be_the_ego():
    parked = np.zeros((141, 5))
    parked[:, 0], parked[:, 1] = 20.0, 10.0
    late = np.arange(141) > 60
    objects = [
        {"id": "drives", "state": drive_east()},
        {"id": "parked", "state": parked},
        {"id": "stands", "state": drive_east(speed=0.0)},
        {"id": "late", "state": drive_east(), "valid": late},
        {"id": "off road", "state": drive_east(y=30.0)},
        {"id": "bicycle", "state": drive_east(), "type": ObjectType.BICYCLE},
    ]
    assert possible_egos(log(fork(), objects, frames=141), 101) == ["drives"]


def test_wrong_egos_are_refused():
    once = np.zeros(141, dtype=bool)
    once[5] = True
    objects = [
        {"id": "b", "state": drive_east(), "type": ObjectType.BICYCLE},
        {"id": "once", "state": drive_east(), "valid": once},
    ]
    scenario = log(fork(), objects, frames=141)
    with pytest.raises(ValueError, match="no track 'z'"):
        as_ego(scenario, "z")
    with pytest.raises(ValueError, match="is a BICYCLE"):
        as_ego(scenario, "b")
    with pytest.raises(ValueError, match="two frames in a row"):
        as_ego(scenario, "once")
