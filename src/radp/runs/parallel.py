"""The one map over many independent pieces: in this process, or in a pool of processes.

Results arrive in any order; each comes with the position of its piece, so that what is made of them can be the same
whatever the number of workers. A piece that raises, or kills its process, is a failure of that piece alone.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for_sentinels
from typing import Any, Generic, TypeVar

from radp.runs.errors import EndOfRun
from radp.runs.ledger import Ledger
from radp.runs.progress import Progress

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

Piece = TypeVar("Piece")
Result = TypeVar("Result")

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
DIED = "the worker process died (killed, out of memory, or crashed)"


@dataclass(frozen=True)
class Failure:
    """A piece that gave no result: its position, its name, one sentence, and the traceback if there is one."""

    index: int
    piece: str
    reason: str
    detail: str = ""


@dataclass
class Outcome(Generic[Result]):
    """results: position -> result, in the order of the pieces (empty when `on_result` took them); failures likewise."""

    results: dict[int, Result] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    done: int = 0


@dataclass(frozen=True)
class Allowance:
    """What a piece may take in a process of its own; one that takes more dies, and costs only itself."""

    seconds: float | None = None  # of processor time, and ten times as much on the clock; `renew` counts from 0 again
    bytes: int | None = None  # of memory that the process may ask for
    stopped: str = "it took longer than a piece may take, and was stopped"  # what is said of one that took too long


@dataclass(frozen=True)
class _Raised:
    """What a worker sends back instead of a result; `end` is raised again here and ends the map."""

    reason: str
    detail: str
    end: type[EndOfRun] | None = None


def cpu_count() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def parallel_map(
    function: Callable[[Piece], Result],
    pieces: Sequence[Piece],
    *,
    workers: int = 1,
    on_result: Callable[[int, Result], None] | None = None,
    on_failure: Callable[[Failure], None] | None = None,
    name: Callable[[Piece], str] = str,
    ledger: Ledger | None = None,
    label: str = "pieces",
    size: Callable[[Piece], int] = lambda piece: 1,
    allowance: Allowance | None = None,
) -> Outcome[Result]:
    """Apply `function` to every piece. workers <= 1: here, in order; else in that many spawned processes.

    `size`: how much of what the label counts a piece is.

    With an allowance every piece runs in another process, also if there is one worker, and within its bounds.

    `on_result(position, result)` runs in this process as results arrive; what it raises ends the map, and so does an
    EndOfRun of a piece (a LostWrite: the next ones could not be written either). With workers, `function` must be
    importable (a module-level function or a partial of one), pieces and results picklable.
    """
    outcome: Outcome[Result] = Outcome()
    failed_before = set(ledger.failures()) if ledger is not None else set()

    def take(index: int, value: Any) -> None:
        if isinstance(value, _Raised):
            if value.end is not None:
                raise value.end(value.reason)
            failure = Failure(index, name(pieces[index]), value.reason, value.detail)
            outcome.failures.append(failure)
            if ledger is not None:
                ledger.record(failure.piece, failure.reason, failure.detail)
            if on_failure is not None:
                on_failure(failure)
        else:
            outcome.done += 1
            if on_result is None:
                outcome.results[index] = value
            else:
                on_result(index, value)
            if ledger is not None and name(pieces[index]) in failed_before:
                ledger.settle(name(pieces[index]))
        count = size(pieces[index])
        progress.advance(count, failed=count if isinstance(value, _Raised) else 0)

    with Progress(label, sum(size(piece) for piece in pieces)) as progress:
        here = workers <= 1 and allowance is None
        source = _in_process(function, pieces) if here else _in_pool(function, pieces, workers, allowance)
        with closing(source):
            for index, value in source:
                take(index, value)
    outcome.results = dict(sorted(outcome.results.items()))
    outcome.failures.sort(key=lambda failure: failure.index)
    return outcome


def _in_process(function: Callable[[Piece], Result], pieces: Sequence[Piece]) -> Generator[tuple[int, Any], None, None]:
    for index in range(len(pieces)):
        yield index, _call(function, pieces[index])


def _call(function: Callable[[Piece], Result], piece: Piece) -> Result | _Raised:
    """The result, or what was raised in a form that always pickles."""
    renew()
    try:
        return function(piece)
    except EndOfRun as error:
        return _Raised(str(error), "", type(error))
    except MemoryError:
        return _Raised("it needs more memory than it may take", traceback.format_exc())
    except (Exception, SystemExit) as error:
        text = " ".join(str(error).split())
        reason = f"{type(error).__name__}: {text}" if text else type(error).__name__
        return _Raised(reason, traceback.format_exc())
    finally:
        _rest()


def _in_pool(
    function: Callable[[Piece], Result], pieces: Sequence[Piece], workers: int, allowance: Allowance | None
) -> Generator[tuple[int, Any], None, None]:
    """When a process dies, its pool is lost: the few pieces then under way run again, each alone in a fresh process,
    so that the piece which kills its process is found and only that one fails."""
    try:
        pickle.dumps(function)
    except Exception as error:
        raise TypeError(f"{function!r} cannot be sent to another process ({error})") from None
    workers = min(max(workers, 1), max(len(pieces), 1))
    threads = max(1, cpu_count() // workers)
    waiting = iter(range(len(pieces)))
    with _thread_limit(threads):
        suspects: list[int] = []
        exhausted = False
        while not exhausted:
            suspects.clear()
            exhausted = yield from _drain(function, pieces, waiting, workers, threads, suspects, allowance)
            for index in suspects:
                yield index, _alone(function, pieces[index], threads, allowance)


def _drain(
    function: Callable[[Piece], Result],
    pieces: Sequence[Piece],
    waiting: Iterator[int],
    workers: int,
    threads: int,
    suspects: list[int],
    allowance: Allowance | None,
) -> Generator[tuple[int, Any], None, bool]:
    """Run pieces until none is waiting (returns True) or the pool breaks (False, `suspects` = pieces under way)."""
    with _pool(workers, threads, allowance) as pool:
        running: dict[Future[Any], int] = {}
        broken = False
        while True:
            while not broken and len(running) < 2 * workers and (index := next(waiting, None)) is not None:
                try:
                    running[pool.submit(_call, function, pieces[index])] = index
                except BrokenProcessPool:
                    suspects.append(index)
                    broken = True
            if not running:
                return not broken
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                index = running.pop(future)
                error = future.exception()
                if isinstance(error, BrokenProcessPool):
                    suspects.append(index)
                    broken = True
                elif error is not None:  # the piece or its result could not be pickled
                    yield index, _Raised(f"{type(error).__name__}: {error}", "")
                else:
                    yield index, future.result()


def _alone(function: Callable[[Piece], Result], piece: Piece, threads: int, allowance: Allowance | None) -> Any:
    """The result of one piece in a process of its own, or how that process ended."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(there, function, piece, threads, allowance))
    process.start()
    there.close()
    try:
        return here.recv()
    except (EOFError, OSError):
        process.join()
        return _Raised(_epitaph(process.exitcode, allowance or Allowance()), "")
    finally:
        here.close()
        process.kill()
        process.join()


def _answer(
    to: Connection, function: Callable[[Piece], Result], piece: Piece, threads: int, allowance: Allowance | None
) -> None:
    _start_worker(threads, allowance)
    try:
        to.send(_call(function, piece))
    except Exception as error:  # the result could not be pickled
        to.send(_Raised(f"{type(error).__name__}: {error}", ""))


def _epitaph(code: int | None, allowance: Allowance) -> str:
    """How a process ended, in words."""
    if code is not None and code < 0:
        if -code in (_signal("SIGPROF"), _signal("SIGALRM")):
            return allowance.stopped
        if -code in (_signal("SIGSEGV"), _signal("SIGBUS"), _signal("SIGABRT"), _signal("SIGILL"), _signal("SIGFPE")):
            return f"the worker process crashed ({signal.Signals(-code).name})"
    return DIED


def _signal(name: str) -> int | None:
    """A signal by name; Windows has few of them."""
    return getattr(signal, name, None)


@contextmanager
def _pool(workers: int, threads: int, allowance: Allowance | None) -> Iterator[ProcessPoolExecutor]:
    """A pool of spawned processes that is gone on leaving, at once if we leave because of an exception."""
    before = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker, initargs=(threads, allowance))
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - before:
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_seconds: float | None = None  # that a piece may take in this process


def _start_worker(threads: int, allowance: Allowance | None = None) -> None:
    """Ctrl-C is the parent's business; a worker whose parent was killed must not stay behind."""
    global _seconds
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if allowance is not None:
        _seconds = allowance.seconds
        _limit_memory(allowance.bytes)
    if "torch" in sys.modules:  # imported with the main module, before this limit could be read
        sys.modules["torch"].set_num_threads(threads)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_leave_with, args=(parent.sentinel,), daemon=True).start()


def _limit_memory(most: int | None) -> None:
    """Asking for more raises MemoryError; a crash leaves no core file."""
    if most is not None and resource is not None and sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (most if hard < 0 else min(most, hard), hard))


def renew() -> None:
    """Start to count the seconds of a piece again: it has come a step further. Does nothing without an allowance."""
    if _seconds is not None and hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, _seconds)
        signal.setitimer(signal.ITIMER_REAL, 10 * _seconds)


def _rest() -> None:
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


def half_of_memory(workers: int = 1) -> int:
    """Bytes: half of the machine's memory, shared by the workers, but 2 GiB at least."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 8 << 30
    return max(2 << 30, pages // 2 // max(workers, 1))


def _leave_with(sentinel: int) -> None:
    wait_for_sentinels([sentinel])
    os._exit(1)


@contextmanager
def _thread_limit(threads: int) -> Iterator[None]:
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
