"""The same commands on other engines: the same bytes, and what is told of them."""

from __future__ import annotations

import json
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
from tests.cli.engine_work import (
    cache,
    convert,
    files,
    simulate,
    skip_without,
    write_logs,
    write_planner,
    write_scenarios,
)

COUNT, LOGS = 4, 6


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


def test_workers_have_as_many_pieces_each_and_on_ray_pieces_shrink():
    assert sizes_of(100, 64, 4, "local") == [25] * 4 and sizes_of(100, 16, 4, "local") == [13] * 7 + [9]
    assert sizes_of(280, 64, 1, "local") == [64] * 4 + [24] and sizes_of(280, 64, 2, "local") == [47] * 5 + [45]
    assert sizes_of(100, 64, 4, "slurm") == [7] * 14 + [2]
    shrinking = sizes_of(1000, 64, 4, "ray")
    assert sum(shrinking) == 1000 and shrinking[0] == 64 and shrinking[-8:] == [1] * 8
    assert shrinking == sorted(shrinking, reverse=True)
    assert sizes_of(0, 64, 4, "ray") == []


@pytest.fixture(scope="module")
def scenarios(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_scenarios(tmp_path_factory.mktemp("scenarios"), COUNT)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_logs(tmp_path_factory.mktemp("logs"), LOGS)


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_planner(tmp_path_factory.mktemp("learned"))


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


def verb_words(scenarios: Path, logs: Path, learned: Path) -> dict[str, list[str]]:
    """Every kind of map but for the folder of its results."""
    split = ["--scenarios", str(scenarios)]
    drives = [*split, "--planner", "idm", "--out"]
    return {
        "samples": [
            "data",
            "samples",
            "--scenarios",
            str(scenarios),
            "--stride",
            "10",
            "--logs-per-shard",
            "1",
            "--out",
        ],
        "driven": ["data", "drive", *drives],
        "simulated": ["simulate", *drives],
        "converted": convert(logs, Path())[:-1],
        "cached": cache(learned, Path())[:-1],
        "made": ["data", "make-sumo", "--networks", "2", "--scenarios", "4", "--out"],
    }


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["slurm-local", "ray"])
def test_verbs_leave_the_same_bytes_on_every_engine(scenarios, logs, learned, tmp_path, engine):
    skip_without(engine)
    for name, words in verb_words(scenarios, logs, learned).items():
        if name == "made" and find_spec("libsumo") is None:
            continue
        here, there = tmp_path / f"{name}-local", tmp_path / f"{name}-{engine}"
        code = main([*words, str(here), "--workers", "1", "--engine", "local"])
        assert main([*words, str(there), "--workers", "2", "--engine", engine]) == code
        assert files(here) and files(here) == files(there), name


@pytest.mark.slow
def test_the_table_of_planners_is_the_same_on_all_engines(tmp_path, capsys):
    """Drives, score cards and the printed table with its intervals, of 28 scenarios of the benchmark."""
    words = ["evaluate", "planners", "--planners", "idm", "pdm_closed", "--splits", "sumo14-val@every-10", "--agents",
             "reactive", "--base", "idm", "--workers", "2"]  # fmt: skip
    tables, found = {}, {}
    for engine in ("local", "slurm-local", "ray"):
        if engine == "local" or find_spec({"ray": "ray", "slurm-local": "submitit"}[engine]) is not None:
            out = tmp_path / engine
            assert main([*words, "--engine", engine, "--out", str(out)]) == 0
            tables[engine], found[engine] = capsys.readouterr().out.replace(str(out), "OUT"), files(out)
    assert "pdm_closed" in tables["local"] and sum(name.endswith(".drive") for name in found["local"]) == 56
    for engine in tables:
        assert tables[engine] == tables["local"] and found[engine] == found["local"], engine
