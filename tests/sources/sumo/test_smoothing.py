from __future__ import annotations

import numpy as np
import pytest

from radp.scenario import DT, PACIFICA, Ego
from radp.sources.sumo.smoothing import smooth_chord, smooth_drive


def jump_lane(speed: float = 12.0, frames: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Straight on, with a lane change at constant lateral speed: corners where it begins and ends."""
    x = np.arange(frames) * speed * DT
    y = np.clip((np.arange(frames) - 120) * 0.107, 0.0, 3.2)
    return np.stack([x, y], axis=1), np.zeros(frames)


def stop_and_go(frames: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """A quarter turn of 10 m radius, driven with abrupt braking to rest and abrupt acceleration."""
    speed = np.full(frames, 4.0)
    speed[120:160] = np.maximum(0.0, 4.0 - 2.6 * DT * np.arange(40))
    speed[160:240] = 0.0
    speed[240:] = np.minimum(4.0, 1.8 * DT * np.arange(frames - 240))
    s = np.concatenate([[0.0], np.cumsum(speed[:-1] * DT)])
    turn = np.clip((s - 40.0) / 10.0, 0.0, np.pi / 2)
    x = np.where(s < 40.0, s, 40.0 + 10.0 * np.sin(turn))
    y = 10.0 * (1 - np.cos(turn)) + np.maximum(0.0, s - 40.0 - 10.0 * np.pi / 2)
    return np.stack([x, y], axis=1), turn


@pytest.mark.parametrize("drive", [jump_lane, stop_and_go])
def test_ego_states_are_one_consistent_motion(drive) -> None:
    """Positions, heading, speed, acceleration and yaw rate tell the same story, as finite differences see it."""
    ego = smooth_drive(*drive()).ego_states()[20:-20]
    step = np.diff(ego[:, :2], axis=0)
    moved = np.hypot(*step.T)
    middle = np.unwrap(ego[:, Ego.HEADING])
    middle = (middle[1:] + middle[:-1]) / 2
    moving = moved > 0.05
    slip = (np.arctan2(step[:, 1], step[:, 0]) - middle + np.pi) % (2 * np.pi) - np.pi
    assert np.abs(slip[moving]).max() < 0.02
    assert np.abs(moved / DT - (ego[1:, Ego.VX] + ego[:-1, Ego.VX]) / 2).max() < 0.05
    assert np.abs(np.gradient(ego[:, Ego.VX], DT) - ego[:, Ego.AX])[2:-2].max() < 1e-6
    assert np.abs(np.gradient(np.unwrap(ego[:, Ego.HEADING]), DT) - ego[:, Ego.YAW_RATE]).max() < 0.05
    assert np.allclose(np.tan(ego[:, Ego.STEERING]) * ego[:, Ego.VX] / PACIFICA.wheel_base, ego[:, Ego.YAW_RATE])


@pytest.mark.parametrize("drive", [jump_lane, stop_and_go])
def test_smooth_motion_is_comfortable_and_stays_near(drive) -> None:
    front, angle = drive()
    ego = smooth_drive(front, angle).ego_states()
    inner = ego[20:-20]
    assert np.abs(np.gradient(inner[:, Ego.AX], DT)).max() < 4.13
    assert np.abs(inner[:, Ego.YAW_ACCEL]).max() < 1.93
    assert np.all(inner[:, Ego.VX] >= 0)
    bumper = ego[:, :2] + PACIFICA.front_length * np.stack([np.cos(ego[:, 2]), np.sin(ego[:, 2])], axis=1)
    straight = slice(20, 80)
    assert np.hypot(*(bumper - front)[straight].T).max() < 0.05


def test_bends_are_not_cut() -> None:
    """On a long bend of 60 m at 14 m/s the path stays within 10 cm of the circle."""
    angle = np.arange(300) * 14.0 * DT / 60.0
    front = 60.0 * np.stack([np.sin(angle), 1 - np.cos(angle)], axis=1)
    motion = smooth_drive(front, angle)
    x, y, _, bend = motion.at(0.0)
    assert np.abs(np.hypot(x, y - 60.0) - 60.0)[60:-60].max() < 0.1
    assert np.allclose(bend[60:-60], 1 / 60.0, rtol=0.05)


def test_a_car_that_never_moves() -> None:
    motion = smooth_drive(np.tile([5.0, 7.0], (50, 1)), np.full(50, 0.3))
    ego = motion.ego_states()
    assert np.allclose(ego[:, Ego.HEADING], 0.3, atol=1e-6)
    assert np.allclose(ego[:, Ego.VX :], 0.0, atol=1e-9)
    assert np.allclose(ego[0, :2], [5 - PACIFICA.front_length * np.cos(0.3), 7 - PACIFICA.front_length * np.sin(0.3)])


def test_box_states_of_a_straight_drive() -> None:
    front, angle = np.stack([np.arange(100) * 1.0, np.zeros(100)], axis=1), np.zeros(100)
    for states in (smooth_drive(front, angle).box_states(4.5)[20:-20], smooth_chord(front, angle, 4.5)[20:-20]):
        assert np.allclose(states[:, 0], front[20:-20, 0] - 2.25, atol=1e-3)
        assert np.allclose(states[:, 1:3], 0.0, atol=1e-9)
        assert np.allclose(states[:, 3:], [10.0, 0.0], atol=1e-3)
