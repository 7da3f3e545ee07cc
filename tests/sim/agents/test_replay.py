"""Replayed traffic."""

from __future__ import annotations

import numpy as np
import pytest

from radp.scenario import ObjectType
from radp.sim.agents.replay import ReplayAgents
from radp.sources.synthetic import make_scenario
from tests.made_roads import RoadMaker, line
from tests.made_scenarios import car, still


def test_every_frame_of_every_type_is_the_log() -> None:
    scenarios = [
        make_scenario(seed, agents=count, frames=frames) for seed, (count, frames) in enumerate([(5, 31), (9, 21)])
    ]
    model = ReplayAgents(scenarios)
    ego = np.stack([s.ego[s.start] for s in scenarios])
    samples = [model.reset(ego)] + [model.step(i, ego, np.full(2, 0.1)) for i in range(30)]
    for b, scenario in enumerate(scenarios):
        tracks, own = scenario.tracks, len(scenario.tracks)
        assert model.ids[b] == tracks.ids
        np.testing.assert_array_equal(model.type[b, :own], tracks.type)
        np.testing.assert_array_equal(model.size[b, :own], tracks.size)
        for i, (state, valid) in enumerate(samples):
            frame = scenario.start + min(i, scenario.frames - 1)  # the shorter log stays at its last frame
            np.testing.assert_array_equal(state[b, :own], tracks.state[:, frame])
            np.testing.assert_array_equal(valid[b, :own], tracks.valid[:, frame])
            assert not valid[b, own:].any()


def test_bicycles_and_late_objects_are_there_and_arrays_cannot_be_written() -> None:
    maker = RoadMaker()
    maker.add(line(0, 0, 50, 0))
    scenario = still(maker.build(), [car(10.0), (ObjectType.BICYCLE, 20.0, 0.0, 0.0, 3.0)], frames=5)
    scenario.tracks.valid[0, :3] = False
    model = ReplayAgents([scenario])
    state, valid = model.reset(scenario.ego[:1])
    assert valid.tolist() == [[False, True]]
    assert model.step(2, scenario.ego[:1], np.array([0.1]))[1].tolist() == [[True, True]]
    with pytest.raises(ValueError, match="read-only"):
        state[0, 0, 0] = 1.0
