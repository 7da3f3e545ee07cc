"""Closed loop against the published program, over every run found: the ego, and every agent at every sample."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from radp.planners import load_planner
from radp.scenario import Ego, Scenario, Tracks
from radp.scenario.neutral_json import load_json, read_scenario, states_from_json, tracks_from_json
from radp.sim.rollout import Rollout
from radp.sim.simulate import simulate
from tests.shared_data import shared_params

PLANNERS = {"expert": "log_replay", "simple": "constant_velocity"}
MODES = {"log": "nonreactive", "idm": "reactive"}
EGO_TOLERANCE, AGENT_TOLERANCE = 1e-5, 1e-4
SURE_SAMPLES = 20  # where ties decide a run, this much of it does not depend on them


@cache
def scenario_of(path: Path) -> Scenario:
    return read_scenario(path)


@cache
def cases(folder: Path) -> dict[str, dict]:
    return json.loads((folder / "golden.json").read_text())["cases"]


def gap_of(ours: np.ndarray, theirs: np.ndarray, heading: int = 2) -> np.ndarray:
    gap = np.abs(ours - theirs)
    gap[..., heading] = np.abs((ours - theirs + np.pi) % (2 * np.pi) - np.pi)[..., heading]
    return gap


def golden_runs(agents: str) -> list:
    runs = shared_params(f"golden/nuplan/closed_loop/*__{agents}_*.json.gz")
    return [run for run in runs if run.values[0] is None or ".result." not in run.values[0].name]


def drive_as(path: Path) -> tuple[Rollout, dict, bool]:
    """Our drive, theirs, and whether ties decide it."""
    case = path.name.removesuffix(".json.gz")
    scenario_name, run = case.split("__")
    agents, planner = run.split("_")
    scenario = scenario_of(path.with_name(f"{scenario_name}.scenario.json.gz"))
    (rollout,) = simulate(load_planner(PLANNERS[planner]), [scenario], MODES[agents])
    return rollout, load_json(path), bool(cases(path.parents[1])[case].get("tie_sensitive"))


def assert_same_ego(rollout: Rollout, golden: dict) -> None:
    time_us, ego = states_from_json(golden["ego"])
    assert rollout.failure is None
    np.testing.assert_array_equal(rollout.time_us, time_us)
    np.testing.assert_allclose(gap_of(rollout.ego, ego, Ego.HEADING), 0.0, atol=EGO_TOLERANCE)


def position(ids: tuple[str, ...], name: str) -> int:
    """Of an agent; the published program shortens the names of some replayed objects ("t002" -> "002")."""
    found = [i for i, own in enumerate(ids) if own == name] or [i for i, own in enumerate(ids) if own.endswith(name)]
    assert len(found) == 1, f"agent {name!r} is missing or not unique among {ids}"
    return found[0]


def agent_gap(ours: Tracks, theirs: Tracks) -> np.ndarray:
    """(S,) largest difference of any agent in each sample; infinite where different agents exist."""
    rows = [position(ours.ids, name) for name in theirs.ids]
    extra = [i for i in range(len(ours)) if i not in rows and ours.valid[i].any()]
    assert not extra, f"agents that should not exist: {[ours.ids[i] for i in extra]}"
    np.testing.assert_array_equal(ours.type[rows], theirs.type)
    np.testing.assert_allclose(ours.size[rows, :2], theirs.size[:, :2], atol=1e-9)
    gap = np.where(theirs.valid[..., None], gap_of(ours.state[rows], theirs.state), 0.0).max(-1)
    return np.where(ours.valid[rows] == theirs.valid, gap, np.inf).max(0)


@pytest.mark.golden
@pytest.mark.parametrize("path", golden_runs("log"))
def test_replayed_run(path: Path) -> None:
    rollout, golden, _ = drive_as(path)
    assert_same_ego(rollout, golden)
    scenario = rollout.scenario
    window = slice(scenario.start, scenario.start + len(rollout.ego))
    np.testing.assert_array_equal(rollout.agents.state, scenario.tracks.state[:, window])


@pytest.mark.golden
@pytest.mark.parametrize("path", golden_runs("idm"))
def test_reactive_run(path: Path) -> None:
    rollout, golden, ties_decide = drive_as(path)
    assert_same_ego(rollout, golden)
    gap = agent_gap(rollout.agents, tracks_from_json(golden["agents"], len(rollout.ego)))
    diverged = int(np.argmax(gap > AGENT_TOLERANCE)) if (gap > AGENT_TOLERANCE).any() else len(gap)
    assert diverged >= (SURE_SAMPLES if ties_decide else len(gap)), f"{gap[diverged]} at sample {diverged}"
