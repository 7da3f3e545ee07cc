"""A closed-loop drive as a log: what was executed, by the ego and by everybody who reacted to it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from radp.scenario import Box, Scenario, Tracks, TrafficLights
from radp.sim.rollout import Rollout


def driven_log(rollout: Rollout, first: int = 0, history: int = 20, end: int | None = None) -> Scenario:
    """The log of a drive from sample `first` to before sample `end`, after up to `history` frames of what came before.

    Before the drive that is the log's own past; ego and road users are as executed from sample 0 on.
    """
    scenario = rollout.scenario
    samples = len(rollout.time_us) if end is None else min(end, len(rollout.time_us))
    if not 0 <= first < samples - 1:
        raise ValueError(f"sample {first} of a drive of {samples} leaves no drive")
    start = scenario.start
    window = slice(max(0, start + first - history), start + samples)
    tracks = _whole_tracks(rollout)
    return replace(
        scenario,
        time_us=np.concatenate((scenario.time_us[:start], rollout.time_us))[window],
        ego=np.concatenate((scenario.ego[:start], rollout.ego))[window],
        tracks=replace(tracks, state=tracks.state[:, window], valid=tracks.valid[:, window]),
        lights=TrafficLights(scenario.lights.lane, scenario.lights.state[window]),
        start=start + first - window.start,
    )


def cut_drive(rollout: Rollout, first: int) -> Rollout:
    """The same drive judged from sample `first` on, against the expert's drive from the same moment on."""
    scenario = rollout.scenario
    start = scenario.start + first
    rest = rollout.agents
    return Rollout(
        scenario=replace(scenario, start=start),
        time_us=rollout.time_us[first:],
        ego=rollout.ego[first:],
        agents=replace(rest, state=rest.state[:, first:], valid=rest.valid[:, first:]),
        agent_mode=rollout.agent_mode,
        planner=rollout.planner,
        seed=rollout.seed,
        failure=rollout.failure,
    )


def _whole_tracks(rollout: Rollout) -> Tracks:
    """The road users of the drive over the log's past and the drive's samples, (A, start + S)."""
    scenario, met = rollout.scenario, rollout.agents
    logged = {name: i for i, name in enumerate(scenario.tracks.ids)}
    state = np.zeros((len(met), scenario.start, len(Box)))
    valid = np.zeros((len(met), scenario.start), dtype=bool)
    for i, name in enumerate(met.ids):
        if name in logged:
            state[i] = scenario.tracks.state[logged[name], : scenario.start]
            valid[i] = scenario.tracks.valid[logged[name], : scenario.start]
    return replace(met, state=np.concatenate((state, met.state), 1), valid=np.concatenate((valid, met.valid), 1))
