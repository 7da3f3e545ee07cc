"""Replayed and reactive traffic against the published program, over every drive found."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from radp.scenario import Box, ObjectType
from radp.sim.agents.idm import IdmAgents
from radp.sim.agents.replay import ReplayAgents
from tests.sim.agents.golden_drives import GoldenDrive, golden_drives
from tests.sim.agents.reference_idm import ReferenceIdm

TOLERANCE = 1e-4  # m, rad, m/s; the published states are rounded to 1e-6 and their time steps to 1e-7 s
MOVING = (ObjectType.VEHICLE, ObjectType.PEDESTRIAN, ObjectType.BICYCLE)


def play(model: IdmAgents | ReplayAgents, drive: GoldenDrive) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(S, A, 5) states and (S, A) valid with the golden ego; (S - 1,) ties broken until after each step."""
    out, ties = [model.reset(drive.ego[:1])], []
    for i, dt in enumerate(drive.dt):
        out.append(model.step(i, drive.ego[i : i + 1], np.array([dt])))
        ties.append(model.ties[0] if isinstance(model, IdmAgents) else 0)
    return np.stack([state[0] for state, _ in out]), np.stack([valid[0] for _, valid in out]), np.array(ties)


def errors(drive: GoldenDrive, state: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """(S,) largest deviation in position, heading or velocity at each sample; inf where other objects are present."""
    golden, present = drive.agents.state.swapaxes(0, 1), drive.agents.valid.T
    gap = np.abs(state - golden)
    gap[..., Box.HEADING] = np.abs((state - golden + np.pi) % (2 * np.pi) - np.pi)[..., Box.HEADING]
    gap[:, ~np.isin(drive.agents.type, MOVING), Box.VX :] = 0.0  # standing objects have no velocity
    gap[~present] = 0.0
    gap[present != valid] = np.inf
    return gap.max(axis=(1, 2))


@pytest.mark.golden
@pytest.mark.parametrize("load", golden_drives("idm"))
def test_reactive_agents_follow_the_published_drive(load: Callable[[], GoldenDrive]) -> None:
    drive = load()
    model = IdmAgents([drive.scenario])
    state, valid, ties = play(model, drive)
    seen = np.flatnonzero(valid.any(axis=0))
    # the export of standing objects drops a leading "t" of their ids
    assert [model.ids[0][k].lstrip("t") for k in seen] == [name.lstrip("t") for name in drive.agents.ids]
    assert (model.type[0, seen] == drive.agents.type).all()
    np.testing.assert_allclose(model.size[0, seen, :2], drive.agents.size[:, :2], atol=1e-6)
    error = errors(drive, state[:, seen], valid[:, seen])
    if drive.tie_sensitive:  # which of two equally near leads is taken depends on the version of the tree
        error = error[: int(np.argmax(ties > 0)) + 1] if ties.any() else error
    assert error.max() < TOLERANCE


@pytest.mark.golden
@pytest.mark.parametrize("load", golden_drives("idm"))
def test_reference_follows_the_published_drive(load: Callable[[], GoldenDrive]) -> None:
    drive = load()
    world = ReferenceIdm(drive.scenario)
    world.reset(drive.scenario.ego[drive.scenario.start])
    index = {name: k for k, name in enumerate(drive.agents.ids)}
    for i in range(len(drive.ego)):
        vehicles = {drive.agents.ids[k] for k in np.flatnonzero(drive.agents.valid[:, i] & (drive.agents.type == 0))}
        assert {agent.name for agent in world.agents} == vehicles
        for agent in world.agents:
            np.testing.assert_allclose(agent.pose[:2], drive.agents.state[index[agent.name], i, :2], atol=TOLERANCE)
        if i < len(drive.dt):
            world.step(i, drive.ego[i], drive.dt[i])


@pytest.mark.golden
@pytest.mark.parametrize("load", golden_drives("log"))
def test_replayed_agents_are_the_log(load: Callable[[], GoldenDrive]) -> None:
    drive = load()
    model = ReplayAgents([drive.scenario])
    state, valid, _ = play(model, drive)
    assert model.ids[0] == drive.agents.ids
    assert errors(drive, state, valid).max() == 0.0
