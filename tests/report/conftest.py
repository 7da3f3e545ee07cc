"""Runs on disk that the tests of the viewer look at: three scenarios, one of them with names that want to be HTML."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from radp.evaluation.closed_loop import Run, run_simulation
from radp.evaluation.settings import Simulation
from radp.scenario import Scenario
from radp.scenario.neutral_json import save_json, scenario_to_json
from radp.sources.synthetic import make_scenario

HOSTILE = '</script><script>window.hacked=1</script><img src=x onerror="window.hacked=2"><!--{{script}}\u2028&amp;'
FRAMES = 41


def hostile_scenario() -> Scenario:
    """A sound scenario whose every name wants to be HTML."""
    plain = make_scenario(2, 6, frames=FRAMES)
    ids = tuple(f"{HOSTILE}{i}" for i in range(len(plain.tracks)))
    return replace(plain, token=HOSTILE, kind=HOSTILE, tracks=replace(plain.tracks, ids=ids))


@pytest.fixture(scope="session")
def scenario_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("scenarios")
    for i, scenario in enumerate((*(make_scenario(seed, 8, frames=FRAMES) for seed in range(2)), hostile_scenario())):
        save_json(scenario_to_json(scenario), folder / f"s{i}.json.gz")
    return str(folder)


def drive(planner: str, scenarios: str, out: Path, attribution: str = "teacher") -> Run:
    job = Simulation(planner=planner, scenarios=scenarios, agents="nonreactive", attribution=attribution)
    return run_simulation(job, out)


@pytest.fixture(scope="session")
def run(scenario_folder: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return drive("constant_velocity", scenario_folder, tmp_path_factory.mktemp("runs") / "cv")


@pytest.fixture(scope="session")
def other_run(scenario_folder: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return drive("log_replay", scenario_folder, tmp_path_factory.mktemp("runs") / "log")
