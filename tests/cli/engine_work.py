"""Commands for the tests of engines, what they leave behind, and the processes that work for them."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from radp.cli.main import main
from radp.runs.journal import maps_of
from radp.scenario.neutral_json import save_json, scenario_to_json
from radp.scenario.store import ScenarioWriter
from radp.sources.synthetic import make_scenario
from tests.sources.made_logs import waymo_json

TINY = ("hidden=24", "encoder_depth=1", "decoder_depth=1", "preproj_hidden=24", "noise_draws=1")
WORKERS = {"local": b"spawn_main", "ray": b"ray::PieceActor", "slurm-local": b"submitit.core._submit"}


def skip_without(engine: str) -> None:
    """Looks for the module without importing it: Ray reads its settings when it is imported."""
    needed = {"ray": "ray", "slurm-local": "submitit"}.get(engine)
    if needed and find_spec(needed) is None:
        pytest.skip(f"no {needed}")


def write_scenarios(folder: Path, count: int) -> Path:
    """Short logs to drive."""
    for seed in range(count):
        save_json(scenario_to_json(make_scenario(seed, 4, frames=40 + seed)), folder / f"s{seed}.json")
    return folder


def write_logs(folder: Path, count: int) -> Path:
    """Logs in the format of GPUDrive, to convert."""
    for i in range(count):
        (folder / f"{i:02}.json").write_text(json.dumps({**waymo_json(), "scenario_id": f"log{i}"}))
    return folder


def write_planner(folder: Path) -> Path:
    """planner: tiny, with the levels of its rules; samples: enough for several parts of a cache."""
    with ScenarioWriter(folder / "logs") as writer:
        writer.add(make_scenario(3, agents=6, frames=301))
    planner, samples = folder / "planner", ("--data", folder / "samples")
    _run("data", "samples", "--scenarios", folder / "logs", "--stride", 1, "--workers", 1, "--out", folder / "samples")
    steps = ("--steps", 2, "--batch", 4, "--threads", 1, "--switches", *TINY)
    _run("train", "base", *samples, *steps, "--out", folder / "base")
    shutil.copytree(folder / "base" / "model", planner)
    some = ("--batches", 2, "--batch", 4, "--threads", 1)
    _run("calibrate", "--planner", planner, *samples, *some, "--out", planner)
    return folder


def _run(*words: object) -> None:
    assert main([str(word) for word in words]) == 0


def simulate(scenarios: Path, out: Path) -> list[str]:
    words = ["simulate", "--planner", "idm", "--scenarios", str(scenarios), "--agents", "nonreactive", "--batch", "1"]
    return [*words, "--out", str(out)]


def convert(logs: Path, out: Path) -> list[str]:
    return ["data", "convert", "--source", "waymo-json", "--data", str(logs), "--out", str(out)]


def cache(learned: Path, out: Path) -> list[str]:
    words = ["cache", "--planner", str(learned / "planner"), "--data", str(learned / "samples"), "--samples", "1280"]
    return [*words, "--out", str(out)]


def files(out: Path) -> dict[str, bytes]:
    """All but the books, and what each config.json says of the execution."""
    found = {str(p.relative_to(out)): p.read_bytes() for p in sorted(out.rglob("*")) if p.is_file()}
    found = {name: data for name, data in found.items() if ".radp" not in Path(name).parts}
    for name in found:
        if Path(name).name == "config.json":
            found[name] = json.dumps({**json.loads(found[name]), "execution": {}, "commit": None}).encode()
    return found


def pieces_done(out: Path) -> int:
    """How many pieces the journal of a map knows to be done."""
    return sum(found["done"] for found in maps_of(out))


def workers_of(driver: int, engine: str) -> list[int]:
    """Processes below a driver that take pieces."""
    return [process for process in _below(driver) if WORKERS[engine] in _command(process)]


def _below(process: int) -> list[int]:
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:  # it has ended
        return []
    return [found for child in map(int, children) for found in (child, *_below(child))]


def _command(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:
        return b""
