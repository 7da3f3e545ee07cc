"""Runs on disk: the same drives whatever batch and workers, and after any kill."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from radp.attribution.calibration import Calibration
from radp.cli.main import main
from radp.evaluation.closed_loop import Run, export_drives, run_simulation, summarise_run
from radp.evaluation.settings import Simulation
from radp.runs.errors import BadInput
from radp.runs.parallel import Allowance, Outcome, parallel_map
from radp.scenario.neutral_json import save_json, scenario_to_json
from radp.scenario.splits import open_split
from radp.sim.rollout import read_rollout
from radp.sources.synthetic import make_scenario
from tests.storage.old_folders import unpack

PLANNER = f"{Path(__file__).parent / 'wandering_planner.py'}:WanderingPlanner"
COUNT = 5


@pytest.fixture(scope="module")
def scenarios(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder of neutral JSON files."""
    folder = tmp_path_factory.mktemp("scenarios")
    for seed in range(COUNT):
        save_json(scenario_to_json(make_scenario(seed, 4, frames=16 + seed)), folder / f"s{seed}.json")
    return str(folder)


def drives_of(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((out / "drives").iterdir())}


def simulate(scenarios: str, out: Path, **options: object) -> Run:
    execution = {name: options.pop(name) for name in ("batch", "workers", "plan_timeout") if name in options}
    return run_simulation(job(scenarios, **options), out, **execution)  # type: ignore[arg-type]


def job(scenarios: str, planner: str = PLANNER, **options: object) -> Simulation:
    return Simulation(planner=planner, scenarios=scenarios, **{"agents": "nonreactive", **options})  # type: ignore[arg-type]


def test_drives_are_the_same_whatever_the_batch(scenarios: str, tmp_path: Path) -> None:
    for batch in (1, 3, 64):
        simulate(scenarios, tmp_path / str(batch), batch=batch, keep_plans=True)
    assert len(drives_of(tmp_path / "1")) == COUNT
    assert drives_of(tmp_path / "1") == drives_of(tmp_path / "3") == drives_of(tmp_path / "64")


@pytest.mark.slow
def test_drives_are_the_same_whatever_the_workers(scenarios: str, tmp_path: Path) -> None:
    simulate(scenarios, tmp_path / "one", agents="reactive")
    simulate(scenarios, tmp_path / "two", agents="reactive", workers=2, batch=2)
    assert len(drives_of(tmp_path / "one")) == COUNT
    assert drives_of(tmp_path / "one") == drives_of(tmp_path / "two")


def test_a_part_of_a_packaged_split_can_be_driven(tmp_path: Path) -> None:
    run = run_simulation(job("sumo14-val@every-200", "constant_velocity"), tmp_path / "run")
    assert [drive.scenario.token for drive in run.rollouts()] == open_split("sumo14-val").tokens()[::200]


def test_finished_run_drives_nothing_again(scenarios: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    simulate(scenarios, tmp_path / "run")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run" / "drives").iterdir()}
    monkeypatch.setenv("RADP_TEST_NOTES", str(tmp_path / "notes"))
    simulate(scenarios, tmp_path / "run", batch=2)
    assert not (tmp_path / "notes").exists()
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "run" / "drives").iterdir()}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": 1}, "seed is 0 there and 1 now"),
        ({"agents": "reactive"}, "agents is 'nonreactive' there and 'reactive' now"),
        ({"controller": "perfect"}, "controller is 'lqr' there"),
        ({"limit": 2}, "is None there and 2 now|scenario_tokens"),
        ({"keep_plans": True}, "keep_plans is False there"),
    ],
)
def test_another_configuration_is_refused(
    scenarios: str, tmp_path: Path, change: dict[str, object], words: str
) -> None:
    simulate(scenarios, tmp_path, batch=3)
    with pytest.raises(BadInput, match=words):
        simulate(scenarios, tmp_path, **change)


def test_changed_planner_file_is_refused(scenarios: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    source = Path(PLANNER.rpartition(":")[0]).read_text()
    file.write_text(source)
    simulate(scenarios, tmp_path / "run", planner=f"{file}:WanderingPlanner", limit=1)
    file.write_text(source + "\n# improved\n")
    with pytest.raises(BadInput, match=r"was driven by another .*source file have changed since"):
        simulate(scenarios, tmp_path / "run", planner=f"{file}:WanderingPlanner", limit=1)


def zero(file: Path) -> None:
    """All weights of a safetensors file become zero."""
    save_file({name: torch.zeros_like(value) for name, value in load_file(file).items()}, file)


def shift_levels(folder: Path) -> None:
    levels = Calibration.load(folder)
    replace(levels, kappa=tuple(2 * kappa for kappa in levels.kappa)).save(folder)


def set_switch(folder: Path) -> None:
    """Another switch of the model that has no weights."""
    config = json.loads((folder / "config.json").read_text())
    config["model"]["mask_padded_tokens"] = not config["model"]["mask_padded_tokens"]
    (folder / "config.json").write_text(json.dumps(config))


CHANGES = {
    "weights of the base": lambda folder: zero(folder / "base" / "model.safetensors"),
    "settings of the base": lambda folder: set_switch(folder / "base"),
    "adapters": lambda folder: zero(folder / "aligned" / "adapter_model.safetensors"),
    "head": lambda folder: zero(folder / "aligned" / "head.safetensors"),
    "calibration": lambda folder: shift_levels(folder / "aligned"),
}


@pytest.fixture(scope="module")
def planners(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model, and adapters with head and levels on top of it, as 0.1.0 wrote them."""
    folder = tmp_path_factory.mktemp("planners")
    unpack(folder)
    return folder


@pytest.fixture(scope="module")
def learned_run(planners: Path, scenarios: str) -> Path:
    run_simulation(Simulation(planner=str(planners / "aligned"), scenarios=scenarios, limit=1), planners / "run")
    return planners / "run"


@pytest.mark.parametrize("change", list(CHANGES))
def test_a_run_knows_what_its_planner_was(
    learned_run: Path, planners: Path, scenarios: str, tmp_path: Path, change: str
) -> None:
    shutil.copytree(planners, tmp_path / "p")
    again = Simulation(planner=str(planners / "aligned"), scenarios=scenarios, limit=1)
    run_simulation(again, tmp_path / "p" / "run")  # the same planner goes on
    CHANGES[change](tmp_path / "p")
    config = tmp_path / "p" / "run" / "config.json"
    config.write_text(config.read_text().replace(str(planners), str(tmp_path / "p")))
    with pytest.raises(BadInput, match=r"was driven by another .*: its weights, adapters, head, calibration or source"):
        run_simulation(replace(again, planner=str(tmp_path / "p" / "aligned")), tmp_path / "p" / "run")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"planner": "nobody"}, "no planner 'nobody'"),
        ({"scenarios": "/no/such/place"}, "neither a packaged split"),
        ({"batch": 0}, "batch is 0"),
        ({"workers": 0}, "workers is 0"),
        ({"limit": 0}, "limit is 0"),
        ({"plan_timeout": 0.0}, "a plan timeout of 0.0 s cannot be kept"),
        ({"plan_timeout": float("nan")}, "a plan timeout of nan s cannot be kept"),
        ({"agents": "angry"}, "agents is 'angry'"),
    ],
)
def test_bad_input_is_reported_before_a_folder_is_made(
    scenarios: str, tmp_path: Path, arguments: dict[str, object], words: str
) -> None:
    with pytest.raises(BadInput, match=words):
        simulate(**{"scenarios": scenarios, "out": tmp_path / "run", **arguments})  # type: ignore[arg-type]
    assert not (tmp_path / "run").exists()


def test_rollouts_of_a_run_that_is_opened_again(scenarios: str, tmp_path: Path) -> None:
    simulate(scenarios, tmp_path, seed=5, keep_plans=True)
    rollouts = list(Run.open(tmp_path).rollouts())
    assert [rollout.scenario.token for rollout in rollouts] == [f"synthetic_{seed:06d}" for seed in range(COUNT)]
    for rollout in rollouts:
        assert (rollout.planner, rollout.seed, rollout.failure) == ("wandering", 5, None)
        assert rollout.plans is not None
        assert len(rollout.plans) == len(rollout.ego) == rollout.scenario.frames - 1
        np.testing.assert_array_equal(rollout.ego[0], rollout.scenario.ego[rollout.scenario.start])


def test_failed_planner_is_a_finished_drive(scenarios: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RADP_TEST_FAILS_ON", "synthetic_000003")
    rollouts = list(simulate(scenarios, tmp_path).rollouts())
    reason = rollouts[3].failure
    assert reason is not None and reason.startswith("step 2: ValueError: lost (wandering_planner.py, line ")
    assert [rollout.failure for rollout in rollouts] == [None, None, None, reason, None]
    summary = summarise_run(Run.open(tmp_path))
    assert (summary["scenarios"], summary["failed"]) == (COUNT, 1)
    assert summary["failures"] == [{"token": "synthetic_000003", "reason": reason}]
    cards = [json.loads(line) for line in (tmp_path / "cards.jsonl").read_text().splitlines()]
    assert cards[3]["score"] == 0.0
    assert summary["score"]["mean"] == pytest.approx(np.mean([card["score"] for card in cards]))


def test_teacher_goes_by_the_levels_of_the_planner_that_is_named(scenarios: str, tmp_path: Path) -> None:
    from radp.attribution.calibration import Calibration
    from radp.model.paths import model_path

    plain = simulate(scenarios, tmp_path / "plain", attribution="teacher", limit=1)
    of = {"calibration": "radp-mini", "rule_set": "paper"}  # its head was taught v2
    named = simulate(scenarios, tmp_path / "named", attribution="teacher", limit=1, **of)
    kappa = np.array(Calibration.load(model_path("radp-mini")).kappa)
    without, calibrated = (next(run.rollouts()).exact_pressures for run in (plain, named))
    gradient = np.expm1(without) * (1 + 1e-6)  # without levels kappa is 1
    np.testing.assert_allclose(calibrated, np.log1p(gradient / (kappa + 1e-6)), rtol=1e-3, atol=1e-4)
    assert Run.open(tmp_path / "named").job.calibration == "radp-mini"
    with pytest.raises(BadInput, match="'idm' has no usual levels; radp calibrate makes them"):
        simulate(scenarios, tmp_path / "none", attribution="teacher", calibration="idm")
    with pytest.raises(BadInput, match="attribution teacher"):
        simulate(scenarios, tmp_path / "own", calibration="radp-mini")
    with pytest.raises(BadInput, match="no rule set 'v9'"):
        simulate(scenarios, tmp_path / "own", attribution="teacher", rule_set="v9")
    with pytest.raises(BadInput, match="no usual levels of the rule set 'v2'"):
        simulate(scenarios, tmp_path / "own", attribution="teacher", calibration="idm", rule_set="v2")
    assert not (tmp_path / "none").exists() and not (tmp_path / "own").exists()


def test_exported_drives_can_be_read_again(scenarios: str, tmp_path: Path) -> None:
    run = simulate(scenarios, tmp_path / "run", limit=2)
    export_drives(run, tmp_path / "json")
    files = sorted((tmp_path / "json").iterdir())
    assert len(files) == 2
    for file, rollout in zip(files, run.rollouts()):
        again = read_rollout(file)
        np.testing.assert_array_equal(again.ego, rollout.ego)
        np.testing.assert_array_equal(again.agents.state, rollout.agents.state)


@pytest.mark.slow
def test_scenario_that_kills_its_worker_spoils_no_other(
    scenarios: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RADP_TEST_DIES_ON", "synthetic_000001")
    rollouts = list(simulate(scenarios, tmp_path, workers=2).rollouts())
    assert [rollout.failure is None for rollout in rollouts] == [True, False, True, True, True]
    assert "died" in str(rollouts[1].failure)
    monkeypatch.delenv("RADP_TEST_DIES_ON")
    assert all(rollout.failure is None for rollout in simulate(scenarios, tmp_path).rollouts())


def check_hanging(scenarios: str, out: Path, monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    monkeypatch.setenv("RADP_TEST_HANGS_ON", "synthetic_000001")
    run = simulate(scenarios, out, workers=workers, plan_timeout=5.0)
    rollouts = list(run.rollouts())
    assert [rollout.failure is None for rollout in rollouts] == [True, False, True, True, True]
    assert rollouts[1].failure == "the planner gave no answer within 5.0 s, and was stopped"
    summary = summarise_run(run)
    assert summary["failed"] == 1 and summary["failures"][0]["token"] == "synthetic_000001"


def test_every_answer_of_a_planner_has_its_deadline(
    scenarios: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a deadline does to a process: tests/runs/test_parallel.py; to a whole run: the slow tests below."""
    seconds: list[float] = []
    said: list[str] = []

    @contextmanager
    def noted(limit: float) -> Iterator[None]:
        seconds.append(limit)
        yield

    def here(function: Any, pieces: Any, *, allowance: Allowance, **options: Any) -> Outcome[None]:
        said.append(allowance.stopped)
        return parallel_map(function, pieces, **options)

    monkeypatch.setattr("radp.sim.planner.deadline", noted)
    monkeypatch.setattr("radp.evaluation.closed_loop.parallel_map", here)
    run = simulate(scenarios, tmp_path, plan_timeout=5.0)
    assert seconds == [5.0] * (1 + max(len(rollout.ego) for rollout in run.rollouts()))  # start, and every step
    assert said == ["the planner gave no answer within 5.0 s, and was stopped"]


@pytest.mark.slow
def test_a_planner_that_hangs_fails_its_drive_alone(
    scenarios: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All scenarios are one batch, so that the hanging one is found among them; resuming drives it."""
    check_hanging(scenarios, tmp_path, monkeypatch, workers=1)
    monkeypatch.delenv("RADP_TEST_HANGS_ON")
    again = simulate(scenarios, tmp_path)
    assert all(rollout.failure is None for rollout in again.rollouts())


@pytest.mark.slow
def test_a_planner_that_hangs_in_compiled_code_is_stopped_too(
    scenarios: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RADP_TEST_HANGS_IN_C", "1")
    check_hanging(scenarios, tmp_path, monkeypatch, workers=2)


def command(scenarios: str, out: Path) -> list[str]:
    arguments = ["simulate", "--planner", PLANNER, "--scenarios", scenarios, "--out", str(out)]
    return [*arguments, "--agents", "nonreactive", "--batch", "1"]


def test_killed_run_goes_on_and_ends_with_the_same_result(
    scenarios: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, notes = tmp_path / "killed", tmp_path / "notes"
    slow = {**os.environ, "RADP_TEST_SLEEP": "0.05", "RADP_TEST_NOTES": str(notes)}
    words = [sys.executable, "-m", "radp.cli.main", *command(scenarios, out)]
    process = subprocess.Popen(words, env=slow, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while len(list(out.glob("drives/[!.]*.drive"))) < 2:
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
        assert time.monotonic() < deadline, "the run makes no progress"
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    finished = {path: path.stat() for path in out.glob("drives/[!.]*.drive")}
    assert 2 <= len(finished) < COUNT
    assert not (out / "summary.json").exists()
    begun = notes.read_text().split()

    monkeypatch.setenv("RADP_TEST_NOTES", str(notes))
    assert main(command(scenarios, out)) == 0
    for path, before in finished.items():
        assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    started_again = notes.read_text().split()[len(begun) :]
    assert not {f"{token}.drive" for token in started_again} & {path.name for path in finished}

    whole = tmp_path / "whole"
    assert main(command(scenarios, whole)) == 0
    assert drives_of(out) == drives_of(whole)
    for name in ("summary.json", "cards.jsonl"):
        assert (out / name).read_bytes() == (whole / name).read_bytes()
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["scenarios"], summary["failed"]) == (COUNT, 0)
