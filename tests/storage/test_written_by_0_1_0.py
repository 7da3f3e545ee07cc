"""What radp 0.1.0 wrote still opens with the same content: stores, samples, caches, runs, planners, training states."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from radp.attribution.cache import Cache, write_cache
from radp.attribution.calibration import Calibration
from radp.cli.main import main
from radp.evaluation.closed_loop import Run, run_simulation, summarise_run
from radp.evaluation.settings import Simulation
from radp.planners.diffusion import scene_config
from radp.planners.learned import load_learned
from radp.runs import folder as folder_module
from radp.runs.errors import BadInput
from radp.runs.folder import RunFolder
from radp.scenario.store import ScenarioStore, ScenarioWriter
from radp.scene.log_samples import LogSamples
from radp.scene.samples import SampleStore
from radp.training.ema import Ema
from radp.training.state import load_state
from tests.small_scenarios import small_scenario
from tests.storage.digests import digest, digests
from tests.storage.old_folders import unpack

RUNS = ("learned", "reactive", "taught")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    unpack(tmp_path)
    return tmp_path


@pytest.fixture
def known(old: Path) -> dict[str, Any]:
    return json.loads((old / "known.json").read_text())


def assert_holds(record: object, wanted: dict[str, str]) -> None:
    """Fields that were added since may be there as well."""
    found = digests(record)
    assert {name: found.get(name) for name in wanted} == wanted


@pytest.mark.parametrize("name", ["store", "converted"])
def test_scenarios(old: Path, known: dict[str, Any], name: str) -> None:
    wanted = known[name] if name == "store" else known[name]["scenarios"]
    store = ScenarioStore.open(old / name)
    assert store.tokens() == list(wanted) and store.problems == []
    for scenario in store:
        assert_holds(scenario, wanted[scenario.token])
    with ScenarioWriter(old / name) as writer:
        assert all(token in writer for token in wanted)
        writer.add(small_scenario("new"))
    assert ScenarioStore.open(old / name).tokens() == [*wanted, "new"]


def test_a_conversion(old: Path, known: dict[str, Any]) -> None:
    run = RunFolder.open(old / "converted")
    assert run.config["command"] == "data convert" and run.settings["source"] == "made"
    assert run.ledger.failures() == known["converted"]["card"]["failed"] == {"log1:b": "it was refused"}


def test_samples(old: Path, known: dict[str, Any]) -> None:
    store = SampleStore.open(old / "samples")
    assert len(store) == 3
    assert_holds(store.read(range(3)), known["samples"])


def test_samples_kept_as_logs(old: Path, known: dict[str, Any]) -> None:
    wanted = known["log-samples"]
    logs = LogSamples.open(old / "log-samples", scene_config(load_learned(old / "base").model.config))
    assert len(logs) == wanted["count"] and logs.notes == wanted["notes"]
    for name in ("log", "frame", "ego"):
        assert getattr(logs, name).tolist() == wanted[name]
    built, kept = logs.read(wanted["rows"]), SampleStore.open(old / "samples").read(range(3))
    for name, value in kept.items():
        # scenes are built anew from what is stored: sines and cosines round differently from processor to processor
        torch.testing.assert_close(getattr(built, name), value, rtol=0, atol=1e-5, msg=name)


def test_a_planner_with_adapters_head_and_calibration(old: Path, known: dict[str, Any]) -> None:
    planner = load_learned(old / "aligned")
    assert planner.head is not None
    for name, module in (("weights", planner.model), ("head", planner.head)):
        states = sorted((key, digest(value)) for key, value in module.state_dict().items())
        assert digest(states) == known["aligned"][name]
    scales = Calibration.load(old / "aligned")
    assert scales.kappa == (0.5, 0.1, 0.2, 0.3, 2.0, 0.05) and scales.samples == 10


def test_a_cache(old: Path, known: dict[str, Any]) -> None:
    cache = Cache(old / "cache")
    assert len(cache) == 3 and list(cache.rules) == known["cache"]["about"]["rules"]
    np.testing.assert_array_equal(cache.pressure, np.float32(known["cache"]["pressure"]))
    state, pressure = cache.read(np.array([2, 0]))
    assert_holds(state, known["cache"]["read"])
    assert digest(pressure) == known["cache"]["told"]
    logs, model = LogSamples.open(old / "log-samples"), load_learned(old / "aligned").model
    with pytest.raises(BadInput, match="was begun by an earlier radp: it can be read, but not taken up again"):
        write_cache(old / "cache", model, logs, Calibration.load(old / "aligned"), np.array([2, 0, 1]), 5)


@pytest.mark.parametrize("name", RUNS)
def test_runs(old: Path, known: dict[str, Any], name: str, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = known["runs"][name]
    run = Run.open(old / "runs" / name)
    (drive,) = run.rollouts()
    assert drive.scenario.token == wanted["token"]
    assert_holds(drive, wanted["drive"])
    assert summarise_run(run)["score"]["mean"] == pytest.approx(wanted["score"], abs=1e-6)
    assert main(["score", str(old / "runs" / name), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["summary"]["scenarios"] == 1


@pytest.mark.parametrize("name", ["reactive", "taught"])
def test_runs_go_on(old: Path, known: dict[str, Any], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_module, "__version__", "0.1.0")
    out = old / "runs" / name
    before = {file: file.stat().st_mtime_ns for file in (out / "drives").iterdir()}
    run_simulation(Simulation(scenarios=str(old / "store"), **known["runs"][name]["options"]), out)
    assert {file: file.stat().st_mtime_ns for file in (out / "drives").iterdir()} == before


def test_a_run_of_a_learned_planner_does_not_go_on(
    old: Path, known: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_module, "__version__", "0.1.0")
    monkeypatch.chdir(old)
    again = Simulation(scenarios=str(old / "store"), **known["runs"]["learned"]["options"])
    with pytest.raises(BadInput, match=r"did not note the weights of 'aligned', .* can be scored and viewed, but not"):
        run_simulation(again, old / "runs" / "learned")


def test_a_state_of_training(old: Path, known: dict[str, Any]) -> None:
    folder = RunFolder.open(old / "trained")
    model = torch.nn.Linear(2, 2)
    average = Ema(model, 0.9, False)
    assert load_state(folder, model, torch.optim.AdamW(model.parameters()), average) == 7
    assert digest(model.weight) == known["trained"]
    assert (average.updates, folder.config["seed"]) == (1, 3)
