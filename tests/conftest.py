"""Workers of one run share the processors: each takes one thread, unless the environment says otherwise."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
# Compiled kernels lie beside the sources; with bytecode there, too, the processes of tests need not compile radp again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


@pytest.fixture(autouse=True)
def same_threads() -> Iterator[None]:
    """A command that is called in this process sets its own number of threads; the next test has as many as before.

    Two workers of two threads each on two processors wait for each other in every operation of a network.
    """
    before = sys.modules["torch"].get_num_threads() if "torch" in sys.modules else None
    yield
    if before is not None and sys.modules["torch"].get_num_threads() != before:
        sys.modules["torch"].set_num_threads(before)
