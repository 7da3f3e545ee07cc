"""Drivers, workers and nodes killed with SIGKILL in the middle of a command: the same files, nothing twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from radp.cli.main import main
from tests.cli.engine_work import (
    cache,
    convert,
    files,
    pieces_done,
    simulate,
    skip_without,
    workers_of,
    write_logs,
    write_planner,
    write_scenarios,
)
from tests.runs.made_pieces import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not Path("/proc").exists(), reason="looks into /proc")]
ENGINES = pytest.mark.parametrize("engine", ["local", "slurm-local", "ray"])
Words = Callable[[Path], list[str]]
PATIENCE_S = 1800.0  # Ray needs minutes to begin where it gets a few percent of a processor


@pytest.fixture(scope="module", params=["simulate", "convert", "cache"])
def command(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Words, dict[str, bytes]]:
    """A verb with its input: folder of results -> words; and the files of a run that nobody disturbed."""
    folder, whole = tmp_path_factory.mktemp("input"), tmp_path_factory.mktemp("whole") / "out"
    words: Words = {
        "simulate": lambda: partial(simulate, write_scenarios(folder, 8)),
        "convert": lambda: partial(convert, write_logs(folder, 24)),
        "cache": lambda: partial(cache, write_planner(folder)),
    }[request.param]()
    assert main([*words(whole), "--workers", "1"]) == 0
    return words, files(whole)


@contextmanager
def begun(words: list[str], module: str = "radp.cli.main") -> Iterator[subprocess.Popen[bytes]]:
    """A process that does not outlive the block."""
    process = subprocess.Popen([sys.executable, "-m", module, *words])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def until_a_piece_is_done(process: subprocess.Popen[bytes], out: Path) -> None:
    wait_until(lambda: pieces_done(out) or process.poll() is not None, PATIENCE_S)
    assert process.poll() is None, "it was over before anything could be killed"


def check(out: Path, whole: dict[str, bytes], capsys: pytest.CaptureFixture[str]) -> None:
    """All files are there, and nothing is left to do."""
    assert files(out) == whole
    capsys.readouterr()
    assert main(["runs", "show", str(out), "--json"]) == 0
    for state in json.loads(capsys.readouterr().out)["runs"]:
        assert state["done"] == state["total"] > 0 and not state["missing"] and not state["driver"]
        assert all(not found["again"] for found in state["maps"]), "a piece counts once"


@ENGINES
def test_a_killed_driver(command, tmp_path, capsys, engine):
    skip_without(engine)
    (words, whole), out = command, tmp_path / "out"
    order = [*words(out), "--workers", "2", "--engine", engine]
    with begun(order) as process:
        until_a_piece_is_done(process, out)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    assert main(order) == 0
    check(out, whole, capsys)


@ENGINES
def test_a_killed_worker(command, tmp_path, capsys, engine):
    skip_without(engine)
    (words, whole), out = command, tmp_path / "out"
    with begun([*words(out), "--workers", "2", "--engine", engine]) as process:
        until_a_piece_is_done(process, out)
        workers = workers_of(process.pid, engine)
        assert workers, "it was over before a worker could be killed"
        os.kill(workers[0], signal.SIGKILL)
        assert process.wait() == 0
    check(out, whole, capsys)


def test_a_killed_node_of_ray(command, tmp_path, capsys):
    skip_without("ray")
    (words, whole), out = command, tmp_path / "out"
    order = [str(out), *words(out), "--workers", "2", "--engine", "ray"]
    with begun(order, "tests.cli.two_nodes") as process:
        assert process.wait() == 0
    check(out, whole, capsys)
