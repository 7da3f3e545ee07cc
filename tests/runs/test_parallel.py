import ctypes
import functools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from radp.runs.allowance import Allowance, deadline
from radp.runs.errors import LostWrite
from radp.runs.ledger import Ledger
from radp.runs.parallel import parallel_map
from radp.runs.piece import DIED
from radp.runs.worker import cpu_count


def square(x: int) -> int:
    return x * x


def troubled(x: int) -> int:
    if x == 3:
        os._exit(1)
    if x == 5:
        raise ValueError("five\nis bad")
    if x == 6:
        raise SystemExit(3)
    if x == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return x * x


def raises(x: int) -> int:
    if x % 2:
        raise ValueError(f"{x} is odd")
    return x


def unpicklable(x: int):
    return (lambda: x) if x == 1 else x


def threads(x: int) -> tuple[int, str]:
    """One of the processes asks torch, whose import takes seconds."""
    share = os.environ["OMP_NUM_THREADS"]
    if x == 0:
        return int(share), share
    import torch

    return torch.get_num_threads(), share


def hangs(x: int) -> int:
    with deadline(1.0):
        if x == 1:
            time.sleep(10_000)
        if x == 2:
            ctypes.PyDLL(None).sleep(10_000)  # with the interpreter's lock held: no thread of Python can help
    return x


def dies_once(flag: Path, x: int) -> int:
    if x == 2 and not flag.exists():
        flag.touch()
        os._exit(1)
    return x


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_results_come_in_the_order_of_the_pieces(workers):
    outcome = parallel_map(square, range(7), workers=workers)
    assert list(outcome.results.items()) == [(i, i * i) for i in range(7)]
    assert outcome.failures == [] and outcome.done == 7


def test_what_takes_longer_than_its_deadline_is_stopped_alone():
    outcome = parallel_map(hangs, range(4), allowance=Allowance(stopped="it hung"))
    assert outcome.results == {0: 0, 3: 3}
    assert [(failure.index, failure.reason) for failure in outcome.failures] == [(1, "it hung"), (2, "it hung")]


@pytest.mark.parametrize("workers", [1, 2])
def test_no_pieces(workers):
    assert parallel_map(square, [], workers=workers).results == {}


@pytest.mark.parametrize("workers", [1, 2])
def test_exceptions_become_ledger_rows_and_the_rest_goes_on(tmp_path, workers):
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.record("4", "failed in an earlier run")
    seen = {}
    failed = []
    outcome = parallel_map(
        raises, [4, 1, 2], workers=workers, ledger=ledger, on_result=seen.__setitem__, on_failure=failed.append
    )
    assert seen == {0: 4, 2: 2} and outcome.results == {} and outcome.done == 2
    assert ledger.failures() == {"1": "ValueError: 1 is odd"}
    assert [(f.index, f.piece) for f in failed] == [(1, "1")]
    assert "in raises" in outcome.failures[0].detail


def test_a_process_that_dies_fails_its_piece_alone():
    outcome = parallel_map(troubled, range(10), workers=2)
    assert outcome.results == {x: x * x for x in (0, 1, 2, 4, 8, 9)}
    assert [(f.index, f.reason) for f in outcome.failures] == [
        (3, DIED),
        (5, "ValueError: five is bad"),
        (6, "SystemExit: 3"),
        (7, DIED),
    ]


def test_a_piece_whose_process_was_killed_from_outside_runs_again(tmp_path):
    outcome = parallel_map(functools.partial(dies_once, tmp_path / "flag"), range(4), workers=2)
    assert outcome.results == {x: x for x in range(4)} and not outcome.failures


def test_a_result_that_cannot_be_sent_is_a_failure_of_its_piece():
    outcome = parallel_map(unpicklable, range(3), workers=2)
    assert outcome.results == {0: 0, 2: 2}
    assert [f.index for f in outcome.failures] == [1]


def test_a_function_that_cannot_be_sent_is_refused():
    with pytest.raises(TypeError, match="cannot be sent"):
        parallel_map(lambda x: x, range(3), workers=2)


def test_each_worker_gets_its_share_of_threads(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "77")
    share = max(1, cpu_count() // 2)
    outcome = parallel_map(threads, range(2), workers=2)
    assert list(outcome.results.values()) == [(share, str(share))] * 2
    assert os.environ["OMP_NUM_THREADS"] == "77"


@pytest.mark.parametrize("workers", [1, 2])
def test_what_on_result_raises_ends_the_map(workers):
    def full(index: int, value: int) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        parallel_map(square, range(100), workers=workers, on_result=full)


SLEEPERS = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have started the tests with it ignored
from pathlib import Path
from radp.runs.parallel import parallel_map
def sleep(name):
    import os
    Path(sys.argv[1], f"{name}-{os.getpid()}").touch()
    time.sleep(60)
if __name__ == "__main__":
    try:
        parallel_map(sleep, ["a", "b", "c"], workers=2)
    except KeyboardInterrupt:
        print("interrupted")
"""


def start_sleepers(tmp_path: Path) -> tuple[subprocess.Popen, list[int]]:
    """A map of which two pieces are under way, and the ids of their processes."""
    (tmp_path / "sleepers.py").write_text(SLEEPERS)
    marks = tmp_path / "marks"
    marks.mkdir()
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "sleepers.py"), str(marks)], stdout=subprocess.PIPE, text=True
    )
    while len(list(marks.iterdir())) < 2:
        assert process.poll() is None
        time.sleep(0.05)
    return process, [int(mark.name.split("-")[1]) for mark in marks.iterdir()]


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks into /proc")
@pytest.mark.parametrize(("number", "said"), [(signal.SIGINT, "interrupted\n"), (signal.SIGKILL, "")])
def test_no_worker_outlives_an_interrupted_or_killed_parent(tmp_path, number, said):
    process, workers = start_sleepers(tmp_path)
    process.send_signal(number)
    out, _ = process.communicate(timeout=30)
    assert out == said
    deadline = time.monotonic() + 20
    while not all(is_gone(pid) for pid in workers):
        assert time.monotonic() < deadline, "a worker stayed behind"
        time.sleep(0.05)


def loses(piece: int) -> int:
    if piece == 2:
        raise LostWrite("x.drive cannot be written (No space left on device)")
    return piece


@pytest.mark.parametrize("workers", [1, 2])
def test_a_result_that_cannot_be_kept_ends_the_map(tmp_path, workers):
    ledger, seen = Ledger(tmp_path / "ledger.jsonl"), {}
    with pytest.raises(LostWrite, match=r"^x\.drive cannot be written"):
        parallel_map(loses, [1, 2, *range(3, 40)], workers=workers, ledger=ledger, on_result=seen.__setitem__)
    assert ledger.failures() == {} and len(seen) < 39
