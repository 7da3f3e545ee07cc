"""How a process is set up that works on the pieces of a map: threads, engine, and whose end it shares."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import wait as wait_for_sentinels

from radp.runs.allowance import Allowance, keep_to
from radp.runs.engine import VARIABLE
from radp.runs.progress import QUIET

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


def cpu_count() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def settle(threads: int) -> None:
    """For any worker: its share of threads; a map within a piece runs here; progress is the driver's to show."""
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(threads)))
    os.environ.update({VARIABLE: "local", QUIET: "1"})
    if "torch" in sys.modules:  # imported with the main module, before this limit could be read
        sys.modules["torch"].set_num_threads(threads)


def start_worker(threads: int, allowance: Allowance | None = None) -> None:
    """Ctrl-C is the parent's business; a worker whose parent was killed must not stay behind."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if allowance is not None:
        keep_to(allowance)
    settle(threads)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_leave_with, args=(parent.sentinel,), daemon=True).start()


def _leave_with(sentinel: int) -> None:
    wait_for_sentinels([sentinel])
    os._exit(1)


@contextmanager
def thread_limit(threads: int) -> Iterator[None]:
    """Spawned processes inherit the environment, and read these variables when they import torch or numba."""
    saved = {variable: os.environ.get(variable) for variable in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(threads)))
    try:
        yield
    finally:
        for variable, value in saved.items():
            if value is None:
                os.environ.pop(variable, None)
            else:
                os.environ[variable] = value
