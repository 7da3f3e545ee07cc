"""What happened in a closed-loop drive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from radp.geometry.limits import REACH, array_fault, index_fault, size_fault, states_fault
from radp.runs.notebook import html_card
from radp.scenario import Ego, Scenario, Tracks
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
from radp.scenario.scenario import times_fault
from radp.sim.settings import AGENT_MODES


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

    def __repr__(self) -> str:
        return f"Rollout({', '.join(f'{name} {value}' for name, value in self._facts().items())})"

    def _repr_html_(self) -> str:
        return html_card(f"Drive of {self.planner} in {self.scenario.token}", self._facts())

    def _facts(self) -> dict[str, object]:
        kept = [name for name in ("plans", "pressures", "exact_pressures") if getattr(self, name) is not None]
        return {
            "token": self.scenario.token,
            "planner": self.planner,
            "agents": self.agent_mode,
            "samples": len(self.ego),
            "keeps": ", ".join(kept).replace("_", " ") or "states alone",
            "failure": self.failure,
        }

    def validate(self) -> None:
        """Raise ValueError naming the token, the field and the bad value; of the scenario's own fields nothing."""
        for name, fault in chain(self._faults(), self._kept_faults()):
            if fault:
                raise ValueError(f"drive of {self.scenario.token!r}: {name} {fault}")

    def _faults(self) -> Iterator[tuple[str, str]]:
        """Of what was driven; an iterator, since values are looked at after types."""
        yield "time_us", array_fault(self.time_us, np.int64, (None,))
        samples, most = len(self.time_us), self.scenario.frames
        yield "ego", "" if 1 <= samples <= most else f"has {samples} states, expected 1 to {most}"
        yield "time_us", times_fault(self.time_us, self.scenario.dt)
        yield "ego", array_fault(self.ego, np.float64, (samples, len(Ego))) or states_fault(self.ego)
        yield from self.agents.faults(samples)
        yield "agent_mode", "" if self.agent_mode in AGENT_MODES else f"is {self.agent_mode!r}"

    def _kept_faults(self) -> Iterator[tuple[str, str]]:
        """Of what was kept beside the drive: K rows, one of each sample that was planned from."""
        rules = len(self.rules) or None
        kept = {
            "plans": (np.float32, (None, 4)),
            "pressures": (np.float32, (rules,)),
            "exact_pressures": (np.float32, (rules,)),
            "rule_costs": (np.float32, (rules,)),
            "seam_shares": (np.float32, (rules,)),
            "predictions": (np.float32, (None, None, 2)),
            "agent_shares": (np.float32, (None,)),
            "predicted_tracks": (np.int32, (None,)),
            "share_tracks": (np.int32, (None,)),
        }
        for name, (dtype, shape) in kept.items():
            array: np.ndarray | None = getattr(self, name)
            if array is None:
                continue
            yield name, array_fault(array, dtype, (None, *shape))
            yield name, f"has {len(array)} rows for {len(self.ego)} samples" if len(array) > len(self.ego) else ""
            if name == "plans":
                yield name, size_fault(array, REACH)
            elif name.endswith("_tracks"):
                yield name, index_fault(array, len(self.agents), none=True)


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
    seen = logged_agents(scenario, len(time_us))
    mode = "reactive" if data.get("mode") == "reactive" else "nonreactive"
    planner, failure = str(data.get("planner", "unknown")), data.get("failure")
    rollout = Rollout(
        scenario, time_us, ego, seen, mode, planner, seed, failure=None if failure is None else str(failure)
    )
    with reading(name, "ego"):
        rollout.validate()
    return rollout


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
