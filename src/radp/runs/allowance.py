"""What a piece may take of time and memory in a process whose end costs only that piece."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from radp.runs.errors import BadInput

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]


LONGEST_DEADLINE = 1e6  # s


@dataclass(frozen=True)
class Allowance:
    """What a piece may take in a process of its own; one that takes more dies, and costs only itself."""

    seconds: float | None = None  # of processor time, and ten times as much on the clock; `renew` counts from 0 again
    bytes: int | None = None  # of memory that the process may ask for
    stopped: str = "it took longer than a piece may take, and was stopped"  # what is said of one that took too long


_seconds: float | None = None  # that a piece may take in this process
_isolated = False


def is_isolated() -> bool:
    """Whether the end of this process costs only the piece that it works on."""
    return _isolated


def keep_to(allowance: Allowance) -> None:
    """Hold this process to it. Asking for more memory raises MemoryError; a crash leaves no core file."""
    global _seconds, _isolated
    _seconds, most, _isolated = allowance.seconds, allowance.bytes, True
    if most is not None and resource is not None and sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (most if hard < 0 else min(most, hard), hard))


def renew() -> None:
    """Start to count the seconds of a piece again: it has come a step further. Does nothing without an allowance."""
    if _seconds is not None and hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, _seconds)
        signal.setitimer(signal.ITIMER_REAL, 10 * _seconds)


def rest() -> None:
    """Between pieces no time is counted."""
    if _seconds is not None and hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """If what is inside takes longer, the system ends this process, whatever it is doing: Python, a loop in C, a wait.

    For processes whose end costs only their piece (`parallel_map` with an allowance), and for their main thread.
    """
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def check_deadline(seconds: float | None) -> None:
    """BadInput if `deadline` could not keep it."""
    if seconds is not None and not (0 < seconds < LONGEST_DEADLINE and hasattr(signal, "setitimer")):
        raise BadInput(f"a plan timeout of {seconds} s cannot be kept here")


def half_of_memory(workers: int = 1) -> int:
    """Bytes: half of the machine's memory, shared by the workers, but 2 GiB at least."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 8 << 30
    return max(2 << 30, pages // 2 // max(workers, 1))
