"""States of drives as samples: what is read there is what the planner saw there."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from radp.evaluation.closed_loop import run_simulation
from radp.evaluation.driven_states import DrivenStates, chosen_rows, open_states
from radp.evaluation.settings import Simulation
from radp.planners import load_planner
from radp.runs.errors import BadInput
from radp.scenario.neutral_json import save_json, scenario_to_json
from radp.scenario.splits import open_split
from radp.scene.builder import SceneConfig, build_scenes
from radp.scene.scene import Scene
from radp.sim.observation import Observation
from radp.sim.plan import Plan
from radp.sim.simulate import simulate
from radp.sources.synthetic import make_scenario

SCENES = SceneConfig(agents=6, static_objects=2, lanes=6, ego_dynamics=True, rules=True)
PLANNER, STRIDE = "constant_velocity", 7


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("driven")
    for seed in range(2):
        save_json(scenario_to_json(make_scenario(seed, 5, frames=24)), folder / "logs" / f"s{seed}.json")
    run_simulation(Simulation(planner=PLANNER, scenarios=str(folder / "logs")), folder / "run")
    return folder / "run"


class Watching:
    """Drives as its planner does, and remembers the scenes."""

    def __init__(self) -> None:
        self.planner, self.seen = load_planner(PLANNER), []
        self.name = self.planner.name

    def plan(self, now: Observation) -> Plan:
        self.seen.append(build_scenes(now, SCENES))
        return self.planner.plan(now)


def assert_same(mine: object, theirs: object) -> None:
    """Tensors of two scenes, those of their rule views as well; float32 of the same float64 state."""
    for name, value in vars(mine).items():
        other = getattr(theirs, name)
        if isinstance(value, torch.Tensor):
            torch.testing.assert_close(value, other, rtol=1e-5, atol=1e-4, msg=lambda m, n=name: f"{n}: {m}")
        elif name == "rules":
            assert_same(value, other)


def test_a_state_is_what_the_planner_saw(run: Path) -> None:
    states = open_states(run, SCENES, STRIDE)
    assert isinstance(states, DrivenStates)
    watching = Watching()
    seen: list[Scene] = []
    for scenario in open_split(str(run.parent / "logs")):
        list(simulate(watching, [scenario], "reactive"))
        seen += watching.seen[::STRIDE]
        watching.seen = []
    assert len(states) == len(seen) and set(states.scenario) == {0, 1}
    order = np.random.default_rng(0).permutation(len(seen))
    assert_same(states.read(order), Scene.cat([seen[i] for i in order]))


def test_rows_are_drawn_drive_by_drive_and_another_process_may_read(run: Path) -> None:
    states = DrivenStates(run, SCENES, STRIDE)
    rows = chosen_rows(states, 5, [0, 11])
    assert len(set(rows)) == 5 and (np.diff(rows) > 0).all()
    there = pickle.loads(pickle.dumps(states))
    assert "_places" in vars(there), "every drive would be read again, in every piece of work"
    torch.testing.assert_close(there.read(rows).lanes, states.read(rows).lanes, rtol=0, atol=0)


def test_a_run_without_drives_is_refused(run: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes((run / "config.json").read_bytes())
    with pytest.raises(BadInput, match="holds no finished drives"):
        len(DrivenStates(tmp_path, SCENES, STRIDE))
    with pytest.raises(BadInput, match="stride is 0"):
        DrivenStates(run, SCENES, 0)
