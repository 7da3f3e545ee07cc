"""Actors, nodes and drivers of Ray, killed for real. Each test starts a cluster, which takes about ten seconds."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from radp.runs.journal import maps_of
from radp.runs.piece import DIED
from tests.runs.made_pieces import begun, wait_until
from tests.runs.ray_driver import PIECES

pytest.importorskip("ray")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not Path("/proc").exists(), reason="looks into /proc")]


def start(how: str, out: Path) -> subprocess.Popen:
    out.mkdir(exist_ok=True)
    words = [sys.executable, "-m", "tests.runs.ray_driver", how, str(out)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def result(process: subprocess.Popen) -> dict:
    out, _ = process.communicate(timeout=900)
    assert process.returncode == 0
    return json.loads(out.splitlines()[-1])


def files(out: Path) -> list[str]:
    return sorted(path.name for path in out.glob("[!.]*.txt"))


ALL = [f"{i}.txt" for i in range(PIECES)]


def test_what_raises_or_dies_costs_only_itself(tmp_path):
    found = result(start("own", tmp_path / "out"))
    assert found["results"] == [[i, i * i] for i in range(PIECES) if i not in (3, 5)]
    assert found["failures"] == [["3", "ValueError: three is bad"], ["5", DIED]]
    (journal,) = maps_of(tmp_path / "out")
    assert journal["done"] == PIECES - 2 and journal["failed"] == 2 and not journal["again"]


def test_a_killed_actor_costs_nothing(tmp_path):
    process = start("slow", tmp_path)
    wait_until(lambda: files(tmp_path))
    os.kill(next(iter(begun(tmp_path).values()))[0], signal.SIGKILL)
    found = result(process)
    assert found["results"] == [[i, i * i] for i in range(PIECES)] and not found["failures"]
    assert files(tmp_path) == ALL


def test_a_killed_node_costs_nothing_and_no_piece_counts_twice(tmp_path):
    found = result(start("nodes", tmp_path))
    assert found["done"] == PIECES and not found["failures"]
    assert files(tmp_path) == ALL
    (journal,) = maps_of(tmp_path)
    assert journal["done"] == PIECES and not journal["again"]


def test_a_killed_driver_takes_its_workers_along_and_the_next_ends_the_work(tmp_path):
    process = start("slow", tmp_path)
    wait_until(lambda: files(tmp_path))
    process.kill()
    process.wait()
    workers = [pid for found in begun(tmp_path).values() for pid in found]
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))
    found = result(start("slow", tmp_path))
    assert found["results"] == [[i, i * i] for i in range(PIECES)]
    assert files(tmp_path) == ALL and [m["state"] for m in maps_of(tmp_path)] == ["stopped", "ended"]
