"""History that a log lacks: the moments before its first frame, as if everybody had kept speed and yaw rate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from radp.scenario.scenario import FIRST_STATIC_TYPE, Box, Ego, Scenario, Tracks, TrafficLights

HISTORY = 20  # frames before the start of a drive that planners look at: 2 s
MOST_YAW_RATE = 1.0  # rad/s; more is noise of a single frame


def with_history(scenario: Scenario, frames: int = HISTORY) -> Scenario:
    """The scenario with at least `frames` frames before its start; what is missing is driven backwards.

    The ego and every object of the first frame keep their speed and yaw rate of that frame. Lights are ABSENT before
    the log begins. The tag `backfilled` says how many frames are not recorded.
    """
    missing = frames - scenario.start
    if missing <= 0:
        return scenario
    step_us = round(scenario.dt * 1e6)
    past = np.arange(-missing, 0)
    tracks, lights = scenario.tracks, scenario.lights
    moving = tracks.valid[:, 0] & (tracks.type < FIRST_STATIC_TYPE)
    state = np.repeat(tracks.state[:, :1], missing, axis=1)
    for i in np.flatnonzero(moving):
        state[i] = boxes_before(tracks.state[i], tracks.valid[i], past * scenario.dt, scenario.dt)
    return replace(
        scenario,
        time_us=np.concatenate((scenario.time_us[0] + past * step_us, scenario.time_us)),
        ego=np.concatenate((ego_before(scenario.ego[0], past * scenario.dt), scenario.ego)),
        tracks=Tracks(
            tracks.ids,
            tracks.type,
            tracks.size,
            state=np.concatenate((state, tracks.state), axis=1),
            valid=np.concatenate((np.repeat(tracks.valid[:, :1], missing, axis=1), tracks.valid), axis=1),
        ),
        lights=TrafficLights(
            lights.lane, np.concatenate((np.zeros((missing, len(lights.lane)), dtype=np.uint8), lights.state))
        ),
        start=scenario.start + missing,
        tags={**scenario.tags, "backfilled": str(missing)},
    )


def ego_before(state: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """state (11,), seconds (S,) < 0 -> (S, 11): the way to the state at constant speed and yaw rate."""
    past = np.repeat(state[None], len(seconds), axis=0)
    past[:, [Ego.AX, Ego.AY, Ego.YAW_ACCEL, Ego.STEERING_RATE]] = 0.0
    moves, turns = _arc(state[Ego.HEADING], state[Ego.VX], state[Ego.YAW_RATE], seconds)
    past[:, :2] += moves
    past[:, Ego.HEADING] += turns
    return past


def boxes_before(state: np.ndarray, valid: np.ndarray, seconds: np.ndarray, dt: float) -> np.ndarray:
    """state (T, 5), valid (T,) of an object that is there in frame 0 -> (S, 5) at `seconds` (S,) < 0.

    It moves on an arc: the direction of motion and the heading turn at the yaw rate of the first two frames.
    """
    first = state[0]
    speed = float(np.hypot(first[Box.VX], first[Box.VY]))
    rate = 0.0
    if len(state) > 1 and valid[1] and speed > 0.5:
        turn = (state[1, Box.HEADING] - first[Box.HEADING] + np.pi) % (2 * np.pi) - np.pi
        rate = float(np.clip(turn / dt, -MOST_YAW_RATE, MOST_YAW_RATE))
    course = float(np.arctan2(first[Box.VY], first[Box.VX])) if speed > 0 else first[Box.HEADING]
    past = np.repeat(first[None], len(seconds), axis=0)
    moves, turns = _arc(course, speed, rate, seconds)
    past[:, :2] += moves
    past[:, Box.HEADING] += turns
    past[:, Box.VX], past[:, Box.VY] = speed * np.cos(course + turns), speed * np.sin(course + turns)
    return past


def _arc(course: float, speed: float, rate: float, seconds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Displacements (S, 2) and turns (S,) after `seconds` (S,) at constant speed and yaw rate."""
    turns = rate * seconds
    chord = speed * seconds * np.sinc(turns / (2 * np.pi))
    middle = course + turns / 2
    return np.stack((chord * np.cos(middle), chord * np.sin(middle)), axis=1), turns
