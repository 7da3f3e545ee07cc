"""The same commands on other engines: the same bytes, also after a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from radp.cli import doctor
from radp.cli.main import VERBS, main
from radp.evaluation.closed_loop import sizes_of
from radp.runs.engine import Engine
from radp.runs.journal import maps_of
from radp.scenario.neutral_json import save_json, scenario_to_json
from radp.sources.synthetic import make_scenario
from tests.runs.made_pieces import wait_until
from tests.sources.made_logs import waymo_json

COUNT, LOGS = 4, 24


def verbs(found: Any = VERBS) -> Iterator[Any]:
    for verb in found.values():
        yield from verbs(verb) if isinstance(verb, dict) else (verb,)


def test_every_verb_that_has_workers_has_engines():
    for verb in verbs():
        names = {field.name: field for field in fields(verb)}
        assert ("workers" in names) == ("where" in names), verb
        if "where" in names:
            assert names["where"].default_factory is Engine


def test_the_doctor_knows_the_engines(monkeypatch):
    monkeypatch.setattr(doctor, "installed_version", {"ray": "2.60.0", "submitit": None}.get)
    found = doctor._engines()
    assert found["local"]["ready"] and found["ray"] == {"ready": True, "version": "2.60.0", "missing": []}
    assert not found["slurm"]["ready"] and 'pip install "radp[slurm]"' in found["slurm-local"]["missing"]


def test_pieces_are_as_large_as_they_were_and_shrink_on_ray():
    assert sizes_of(100, 64, 4, "local") == [25] * 4 and sizes_of(100, 16, 4, "local") == [16] * 6 + [4]
    assert sizes_of(100, 64, 4, "slurm") == [7] * 14 + [2]
    shrinking = sizes_of(1000, 64, 4, "ray")
    assert sum(shrinking) == 1000 and shrinking[0] == 64 and shrinking[-8:] == [1] * 8
    assert shrinking == sorted(shrinking, reverse=True)
    assert sizes_of(0, 64, 4, "ray") == []


@pytest.fixture(scope="module")
def scenarios(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("scenarios")
    for seed in range(COUNT):
        save_json(scenario_to_json(make_scenario(seed, 4, frames=40 + seed)), folder / f"s{seed}.json")
    return str(folder)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs in the format of GPUDrive, to convert."""
    folder = tmp_path_factory.mktemp("logs")
    for i in range(LOGS):
        (folder / f"{i:02}.json").write_text(json.dumps({**waymo_json(), "scenario_id": f"log{i}"}))
    return folder


def conversion(logs: Path, out: Path) -> list[str]:
    return ["data", "convert", "--source", "waymo-json", "--data", str(logs), "--out", str(out)]


def skip_without(engine: str) -> None:
    """Looks for the module without importing it: Ray reads its settings when it is imported."""
    needed = {"ray": "ray", "slurm-local": "submitit"}.get(engine)
    if needed and find_spec(needed) is None:
        pytest.skip(f"no {needed}")


def simulate(scenarios: str, out: Path) -> list[str]:
    words = ["simulate", "--planner", "idm", "--scenarios", scenarios, "--agents", "nonreactive", "--batch", "1"]
    return [*words, "--out", str(out)]


def files(out: Path) -> dict[str, bytes]:
    """All but the books, and what each config.json says of the execution."""
    found = {str(p.relative_to(out)): p.read_bytes() for p in sorted(out.rglob("*")) if p.is_file()}
    found = {name: data for name, data in found.items() if ".radp" not in Path(name).parts}
    for name in found:
        if Path(name).name == "config.json":
            found[name] = json.dumps({**json.loads(found[name]), "execution": {}, "commit": None}).encode()
    return found


def test_the_state_of_a_run_is_told_in_words_and_in_json(scenarios, tmp_path, capsys):
    out = tmp_path / "run"
    assert main(simulate(scenarios, out)) == 0
    assert main(["runs", "show", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert f"{COUNT} of {COUNT} scenarios done, 0 failed, 0 missing; nobody is at work on it" in text
    drive = sorted((out / "drives").iterdir())[0]
    drive.unlink()
    assert main(["runs", "show", str(out), "--json"]) == 1
    (state,) = json.loads(capsys.readouterr().out)["runs"]
    assert (state["done"], state["missing"], state["missing_first"]) == (COUNT - 1, 1, [drive.stem])
    assert state["maps"][0]["done"] == COUNT and len(state["maps"][0]["nodes"]) == 1
    assert main(["runs", "show", str(tmp_path / "nowhere")]) == 2
    assert main(["runs", "forget", str(out)]) == 0
    assert not (out / ".radp").exists() and main(["runs", "forget", str(out)]) == 2


def test_a_dry_run_prints_the_script_and_does_nothing(tmp_path, capsys):
    pytest.importorskip("submitit")
    words = simulate("sumo14-val", tmp_path / "out")
    slurm = ["--workers", "8", "--slurm", "partition=main", "mem=4G"]
    assert main([*words, *slurm, "--engine", "slurm", "--dry-run"]) == 0
    text = capsys.readouterr().out
    assert "#SBATCH --array=0-7%8" in text and "#SBATCH --partition=main" in text
    assert not (tmp_path / "out").exists()
    assert main([*words, "--dry-run"]) == 2


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["slurm-local", "ray"])
def test_verbs_leave_the_same_bytes_on_every_engine(scenarios, logs, tmp_path, engine):
    skip_without(engine)
    converted = conversion(logs, Path())[:-1]
    samples = ["data", "samples", "--scenarios", scenarios, "--stride", "10", "--logs-per-shard", "1", "--out"]
    driven = ["data", "drive", "--scenarios", scenarios, "--planner", "idm", "--out"]
    table = ["evaluate", "planners", "--planners", "idm", "log_replay", "--splits", scenarios, "--agents",
             "nonreactive", "--out"]  # fmt: skip
    for name, words in (
        ("samples", samples), ("driven", driven), ("table", table), ("converted", converted),
    ):  # fmt: skip
        here, there = tmp_path / f"{name}-local", tmp_path / f"{name}-{engine}"
        code = main([*words, str(here), "--workers", "1", "--engine", "local"])
        assert main([*words, str(there), "--workers", "2", "--engine", engine]) == code
        assert files(here) and files(here) == files(there), name


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["local", "slurm-local", "ray"])
def test_a_run_whose_driver_is_killed_ends_with_the_same_files(scenarios, tmp_path, engine):
    skip_without(engine)
    out, whole = tmp_path / "killed", tmp_path / "whole"
    words = [*simulate(scenarios, out), "--workers", "2", "--engine", engine]
    process = subprocess.Popen([sys.executable, "-m", "radp.cli.main", *words], env=dict(os.environ))
    wait_until(lambda: list(out.glob("drives/[!.]*.drive")) or process.poll() is not None, 600)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "it was over before it could be killed"
    assert main(words) == main(simulate(scenarios, whole)) == 0
    assert files(out) == files(whole)
    assert main(["runs", "show", str(out)]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["local", "slurm-local", "ray"])
def test_a_conversion_whose_driver_is_killed_ends_with_the_same_files(logs, tmp_path, engine):
    skip_without(engine)
    out, whole = tmp_path / "killed", tmp_path / "whole"
    words = [*conversion(logs, out), "--workers", "2", "--engine", engine]
    process = subprocess.Popen([sys.executable, "-m", "radp.cli.main", *words], env=dict(os.environ))
    wait_until(lambda: pieces_done(out) or process.poll() is not None, 600)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "it was over before it could be killed"
    assert main(words) == main(conversion(logs, whole)) == 0
    assert files(out) == files(whole)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").exists(), reason="looks into /proc")
def test_a_killed_worker_costs_a_conversion_nothing(logs, tmp_path):
    out, whole = tmp_path / "killed", tmp_path / "whole"
    words = [*conversion(logs, out), "--workers", "2"]
    process = subprocess.Popen([sys.executable, "-m", "radp.cli.main", *words], env=dict(os.environ))
    wait_until(lambda: pieces_done(out) or process.poll() is not None, 600)
    workers = workers_of(process.pid)
    assert workers, "it was over before a worker could be killed"
    os.kill(workers[0], signal.SIGKILL)
    assert process.wait() == main(conversion(logs, whole)) == 0
    assert files(out) == files(whole)


def pieces_done(out: Path) -> int:
    """How many pieces the journal of a map knows to be done."""
    return sum(found["done"] for found in maps_of(out))


def workers_of(driver: int) -> list[int]:
    """Processes that a driver started to work for it."""
    children = [int(word) for word in Path(f"/proc/{driver}/task/{driver}/children").read_text().split()]
    return [child for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]
