"""What planners would observe if the ego had driven as in the log: for open-loop runs, benches and tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from radp.scenario import Box, Ego, Scenario
from radp.sim.observation import HISTORY, Observation, lights_at


def observe_logs(scenarios: Sequence[Scenario], step: int = 0, seed: int = 0) -> Observation:
    """B logs at frame start + step -> Observation. Frames before the first of a log are not valid.

    >>> now = radp.observe(radp.open_split("sumo14-val")[:1], step=20)
    >>> now.step, bool(now.ego_valid.all())
    (20, True)
    """
    batch, most = len(scenarios), max((len(s.tracks) for s in scenarios), default=0)
    time_us = np.zeros((batch, HISTORY), dtype=np.int64)
    ego = np.zeros((batch, HISTORY, len(Ego)))
    ego_valid = np.zeros((batch, HISTORY), dtype=bool)
    agents = np.zeros((batch, HISTORY, most, len(Box)))
    agent_valid = np.zeros((batch, HISTORY, most), dtype=bool)
    agent_type = np.zeros((batch, most), dtype=np.uint8)
    agent_size = np.zeros((batch, most, 3))
    for b, scenario in enumerate(scenarios):
        now, tracks, count = scenario.start + step, scenario.tracks, len(scenario.tracks)
        if not 0 <= now < len(scenario.time_us):
            raise ValueError(f"scenario {scenario.token!r} has no step {step}, only up to {scenario.frames - 1}")
        seen = slice(max(0, now - HISTORY + 1), now + 1)
        there = slice(HISTORY - (seen.stop - seen.start), HISTORY)
        time_us[b, there], ego[b, there], ego_valid[b, there] = scenario.time_us[seen], scenario.ego[seen], True
        agents[b, there, :count] = tracks.state[:, seen].transpose(1, 0, 2)
        agent_valid[b, there, :count] = tracks.valid[:, seen].T
        agent_type[b, :count], agent_size[b, :count] = tracks.type, tracks.size
    seeds = np.array([seed + b for b in range(batch)], dtype=np.uint64)
    return Observation(
        tuple(scenario.briefing for scenario in scenarios), step, time_us, ego, ego_valid, agents, agent_valid,
        agent_type, agent_size, tuple(lights_at(scenario, step) for scenario in scenarios), seeds,
    )  # fmt: skip
