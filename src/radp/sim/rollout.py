"""What happened in a closed-loop drive."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from radp.scenario import Scenario, Tracks
from radp.scenario.neutral_json import (
    NeutralJsonError,
    load_json,
    reading,
    scenario_from_json,
    scenario_to_json,
    states_from_json,
    states_to_json,
    tracks_to_json,
)


@dataclass(frozen=True)
class Rollout:
    """S samples of one drive (S = scenario.frames - 1); sample s belongs to the scenario's frame start + s.

    >>> split, planner = radp.open_split("sumo14-val")[:1], radp.load_planner("log_replay")
    >>> (rollout,) = radp.simulate(planner, split, agents="nonreactive")
    >>> rollout.planner, rollout.ego.shape, rollout.failure
    ('log_replay', (150, 11), None)
    """

    scenario: Scenario
    time_us: np.ndarray  # (S,) int64
    ego: np.ndarray  # (S, 11) columns Ego, executed
    agents: Tracks  # over the S samples, as the ego met them
    agent_mode: str = "nonreactive"  # or "reactive"
    planner: str = "unknown"
    seed: int = 0
    plans: np.ndarray | None = None  # (S, H, 4) x, y, cos, sin of the rear axle, ego frame of that sample, float32
    pressures: np.ndarray | None = None  # (S, M) as the planner itself reports them; NaN: rules it does not know
    exact_pressures: np.ndarray | None = None  # (S, M) of the exact teacher about the same plans
    rule_costs: np.ndarray | None = None  # (S, M) raw costs J_i of the same plans
    rules: tuple[str, ...] = ()  # names of the M rules; empty where nobody named them
    predictions: np.ndarray | None = None  # (S, K, H / 5, 2) x, y of neighbours at every fifth step, frame as plans
    agent_shares: np.ndarray | None = None  # (S, N) of each object of the scene in the collision pressure
    failure: str | None = None  # why the planner failed here; such a drive scores 0
    predicted_tracks: np.ndarray | None = None  # (S, K) which of `agents` a prediction is about, -1: nobody
    share_tracks: np.ndarray | None = None  # (S, N) which of `agents` has the share, -1: nobody
    seam_shares: np.ndarray | None = None  # (S, M) share of each plan's first three steps in the exact pressures


def logged_agents(scenario: Scenario, samples: int) -> Tracks:
    """The log's objects over the first `samples` samples of the drive."""
    window, tracks = slice(scenario.start, scenario.start + samples), scenario.tracks
    return Tracks(tracks.ids, tracks.type, tracks.size, tracks.state[:, window], tracks.valid[:, window])


def rollout_from_json(data: dict[str, Any], name: str = "rollout") -> Rollout:
    """A drive from neutral JSON: `ego` is the executed drive, `expert` and the rest the scenario."""
    if "ego" not in data:
        raise NeutralJsonError(f"{name}: field 'ego' is missing, so this is a scenario and not a drive")
    scenario = scenario_from_json(data, name)
    with reading(name, "ego"):
        time_us, ego = states_from_json(data["ego"])
    with reading(name, "seed"):
        seed = int(data.get("seed", 0))
    if len(time_us) > scenario.frames or not np.isfinite(ego).all():
        raise NeutralJsonError(f"{name}: ego has {len(time_us)} states, expected at most {scenario.frames}, all finite")
    seen = logged_agents(scenario, len(time_us))
    mode = "reactive" if data.get("mode") == "reactive" else "nonreactive"
    planner, failure = str(data.get("planner", "unknown")), data.get("failure")
    return Rollout(scenario, time_us, ego, seen, mode, planner, seed, failure=failure)


def read_rollout(path: Path) -> Rollout:
    """A drive from a `.json` or `.json.gz` file."""
    return rollout_from_json(load_json(path), name=str(path))


def rollout_to_json(rollout: Rollout) -> dict[str, Any]:
    """Neutral JSON of a drive. Its `agents` are those of the drive, which differ from the log's in reactive mode."""
    data = scenario_to_json(rollout.scenario)
    data["ego"] = states_to_json(rollout.time_us, rollout.ego)
    if rollout.agent_mode == "reactive":
        agents = tracks_to_json(rollout.agents)
        for agent in agents:
            agent["frame"] = [frame + rollout.scenario.start for frame in agent["frame"]]
        data["agents"] = agents
    data.update(mode=rollout.agent_mode, planner=rollout.planner, seed=rollout.seed)
    if rollout.failure is not None:
        data["failure"] = rollout.failure
    return data
