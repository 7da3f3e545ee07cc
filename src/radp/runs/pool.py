"""The pieces of a map on this machine: in this process, or in a pool of spawned ones."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

from radp.runs.allowance import Allowance
from radp.runs.piece import DIED, Answer, Raised, Work, call
from radp.runs.worker import cpu_count, start_worker, thread_limit

Answers = Generator[tuple[int, Answer], None, None]  # of pieces by their position, in any order


def in_process(work: Work) -> Answers:
    """One after the other, here."""
    for index in range(len(work.pieces)):
        yield index, call(work.function, work.pieces[index])


def in_pool(work: Work) -> Answers:
    """When a process dies, its pool is lost: the few pieces then under way run again, each alone in a fresh process,
    so that the piece which kills its process is found and only that one fails."""
    workers = min(max(work.workers, 1), max(len(work.pieces), 1))
    threads = max(1, cpu_count() // workers)
    waiting = iter(range(len(work.pieces)))
    with thread_limit(threads):
        suspects: list[int] = []
        exhausted = False
        while not exhausted:
            suspects.clear()
            exhausted = yield from _drain(work, waiting, workers, threads, suspects)
            for index in suspects:
                yield index, _alone(work.function, work.pieces[index], threads, work.allowance)


def check_sendable(function: Callable[[Any], Any]) -> None:
    """TypeError if it cannot be called in another process."""
    try:
        pickle.dumps(function)
    except Exception as error:
        raise TypeError(f"{function!r} cannot be sent to another process ({error})") from None


def _drain(
    work: Work, waiting: Iterator[int], workers: int, threads: int, suspects: list[int]
) -> Generator[tuple[int, Answer], None, bool]:
    """Run pieces until none is waiting (returns True) or the pool breaks (False, `suspects` = pieces under way)."""
    with _pool(workers, threads, work.allowance) as pool:
        running: dict[Future[Answer], int] = {}
        broken = False
        while True:
            while not broken and len(running) < 2 * workers and (index := next(waiting, None)) is not None:
                try:
                    running[pool.submit(call, work.function, work.pieces[index])] = index
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
                else:
                    yield index, future.result() if error is None else _not_sent(error)


def _not_sent(error: BaseException) -> Answer:
    """The piece or its result could not be pickled."""
    return Answer(Raised(f"{type(error).__name__}: {error}"))


class Isolated:
    """Calls a function in one process of its own, within an allowance, piece after piece; close it at the end."""

    def __init__(self, function: Callable[[Any], Any], threads: int, allowance: Allowance) -> None:
        self.function, self.threads, self.allowance = function, threads, allowance
        self._executor: ProcessPoolExecutor | None = None

    def call(self, piece: Any) -> Answer:
        """The answer; a process that dies is replaced, and the piece gets one more of its own."""
        if self._executor is None:
            self._executor = _executor(1, self.threads, self.allowance)
        try:
            return self._executor.submit(call, self.function, piece).result()
        except BrokenProcessPool:
            self.close()
            return _alone(self.function, piece, self.threads, self.allowance)
        except Exception as error:
            return _not_sent(error)

    def close(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)
            self._executor = None


def _alone(function: Callable[[Any], Any], piece: Any, threads: int, allowance: Allowance | None) -> Answer:
    """The answer of one piece in a process of its own, or how that process ended."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(there, function, piece, threads, allowance))
    process.start()
    there.close()
    try:
        return here.recv()
    except (EOFError, OSError):
        process.join()
        return Answer(Raised(_epitaph(process.exitcode, allowance or Allowance())))
    finally:
        here.close()
        process.kill()
        process.join()


def _answer(
    to: Connection, function: Callable[[Any], Any], piece: Any, threads: int, allowance: Allowance | None
) -> None:
    start_worker(threads, allowance)
    try:
        to.send(call(function, piece))
    except Exception as error:
        to.send(_not_sent(error))


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


def _executor(workers: int, threads: int, allowance: Allowance | None) -> ProcessPoolExecutor:
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, mp_context=context, initializer=start_worker, initargs=(threads, allowance))


@contextmanager
def _pool(workers: int, threads: int, allowance: Allowance | None) -> Iterator[ProcessPoolExecutor]:
    """A pool of spawned processes that is gone on leaving, at once if we leave because of an exception."""
    before = set(multiprocessing.active_children())
    pool = _executor(workers, threads, allowance)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - before:
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
