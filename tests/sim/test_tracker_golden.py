"""The two-stage controller against the published program, over every case found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from radp.scenario import Ego
from radp.scenario.neutral_json import load_json, states_from_json
from radp.sim.bicycle import bicycle_step
from radp.sim.tracker import track
from tests.shared_data import shared_params

STATE_TOLERANCE, COMMAND_TOLERANCE = 1e-6, 1e-5


def run(case: dict) -> tuple[np.ndarray, np.ndarray]:
    """States (S + 1, 11) and commands (S, 2) of a case."""
    trajectory = case["trajectory"]
    times = np.array(trajectory["time_us"], dtype=np.int64)
    poses = np.stack([trajectory[key] for key in ("x", "y", "heading")], 1)
    stamps = np.array(case["step_time_us"], dtype=np.int64)
    states = np.zeros((len(stamps), len(Ego)))
    states[0] = states_from_json({key: [value] for key, value in case["initial"].items()})[1][0]
    commands, work = np.zeros((len(stamps) - 1, 2)), np.zeros((8, int(times[-1] - times[0]) // 100_000 + 2))
    for i, dt in enumerate(np.diff(stamps) * 1e-6):
        now = states[i]
        commands[i] = track(now[:3], now[Ego.VX], now[Ego.STEERING], stamps[i], times, poses, len(times), work)
        bicycle_step(now, commands[i, 0], commands[i, 1], dt, states[i + 1])
    return states, commands


@pytest.mark.golden
@pytest.mark.parametrize("path", shared_params("golden/nuplan/controller/*.json.gz"))
def test_controller_case(path: Path) -> None:
    case = load_json(path)
    states, commands = run(case)
    gap = states - states_from_json(case["states"])[1]
    gap[:, Ego.HEADING] = (gap[:, Ego.HEADING] + np.pi) % (2 * np.pi) - np.pi
    np.testing.assert_allclose(gap, 0.0, atol=STATE_TOLERANCE)
    wanted = np.stack([case["commands"][key] for key in ("accel", "steering_rate")], 1)
    np.testing.assert_allclose(commands, wanted, atol=COMMAND_TOLERANCE, rtol=0.0)
