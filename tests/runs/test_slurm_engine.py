"""Jobs of SLURM as processes of this machine, killed for real."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from functools import partial

import pytest

pytest.importorskip("submitit")

from radp.runs.engine import Engine, use_engine
from radp.runs.errors import LostWrite
from radp.runs.journal import maps_of
from radp.runs.parallel import parallel_map
from radp.runs.piece import DIED
from tests.runs.made_pieces import begun, slow_file, troubled, wait_until

DRIVER = """
import sys
from functools import partial
from pathlib import Path
from radp.runs.engine import Engine, use_engine
from radp.runs.parallel import parallel_map
from tests.runs.made_pieces import slow_square
folder = Path(sys.argv[1])
if __name__ == "__main__":
    with use_engine(Engine(sys.argv[2])):
        out = parallel_map(partial(slow_square, folder, 5.0), range(6), workers=2, folder=folder)
    print(sorted(out.results.items()), len(out.failures))
"""


def test_what_raises_or_dies_costs_only_itself(tmp_path):
    """4 kills its job once and is tried again; the results are the driver's, and nothing of the jobs stays."""
    with use_engine(Engine("slurm-local")):
        outcome = parallel_map(partial(troubled, tmp_path), [1, 2, 3, 4], workers=2, folder=tmp_path)
    assert outcome.results == {0: 1, 1: 4, 3: 16}
    assert [(failure.piece, failure.reason) for failure in outcome.failures] == [("3", "ValueError: three is bad")]
    assert "in troubled" in outcome.failures[0].detail
    assert [path.name for path in (tmp_path / ".radp").iterdir()] == ["pieces.jsonl"]


@pytest.mark.slow
def test_a_piece_that_always_kills_its_job_fails_and_what_ends_the_run_ends_it(tmp_path):
    with use_engine(Engine("slurm-local")):
        outcome = parallel_map(partial(troubled, tmp_path), [5, 6], workers=1, folder=tmp_path)
        assert outcome.results == {1: 36} and [failure.reason for failure in outcome.failures] == [DIED]
        with pytest.raises(LostWrite, match="no space"):
            parallel_map(loses, [1, 2], workers=1, folder=tmp_path)


def loses(x: int) -> None:
    raise LostWrite("no space")


@pytest.mark.slow
def test_jobs_outlive_a_killed_driver_and_the_next_one_takes_their_results(tmp_path):
    words = [sys.executable, "-c", DRIVER, str(tmp_path), "slurm-local"]
    first = subprocess.Popen(words)
    wait_until(lambda: (tmp_path / "0.txt").exists() or (tmp_path / "1.txt").exists())
    first.send_signal(signal.SIGKILL)
    first.wait()
    second = subprocess.run(words, capture_output=True, text=True, timeout=500)
    assert second.stdout == f"{[(i, i * i) for i in range(6)]} 0\n", second.stderr
    assert "waiting for jobs of an earlier command" in second.stderr
    assert {piece: len(processes) for piece, processes in begun(tmp_path).items()} == dict.fromkeys(range(6), 1)
    assert [(found["state"], found["done"]) for found in maps_of(tmp_path)][-1] == ("ended", 6)


@pytest.mark.slow
def test_a_preempted_job_goes_back_to_the_queue_and_goes_on(tmp_path):
    """SIGUSR2 is what SLURM sends before it takes the node away."""

    def preempt() -> None:
        wait_until(lambda: len(begun(tmp_path)) >= 2)
        os.kill(max(begun(tmp_path).items())[1][0], signal.SIGUSR2)

    thread = threading.Thread(target=preempt)
    thread.start()
    with use_engine(Engine("slurm-local")):
        outcome = parallel_map(partial(slow_file, tmp_path, 1.0), range(4), workers=1, folder=tmp_path)
    thread.join()
    assert outcome.done == 4 and not outcome.failures
    assert sorted(path.name for path in tmp_path.glob("[!.]*.txt")) == [f"{i}.txt" for i in range(4)]
    processes = {process for found in begun(tmp_path).values() for process in found}
    assert len(processes) == 2, "one job, before and after"
    assert sum(len(found) for found in begun(tmp_path).values()) == 5, "only what was under way is begun again"
