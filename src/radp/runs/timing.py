"""Timing calls that take turns, so that what else the machine does meets all of them alike."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Taken:
    """Seconds of one call over the rounds: wall clock, and processor time of all threads."""

    wall: tuple[float, ...]
    processor: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.wall)

    @property
    def mean(self) -> float:
        return statistics.fmean(self.wall)

    @property
    def deviation(self) -> float:
        return statistics.stdev(self.wall) if len(self.wall) > 1 else 0.0

    @property
    def best(self) -> float:
        return min(self.wall)

    @property
    def cpu(self) -> float:
        """Least processor time: what is left when nobody else disturbs."""
        return min(self.processor)


def alternate(*calls: Callable[[], Any], repeats: int, warm_up: int = 2) -> list[Taken]:
    """Run the calls in turn, `repeats` times after the warm-up rounds."""
    wall: list[list[float]] = [[] for _ in calls]
    cpu: list[list[float]] = [[] for _ in calls]
    for _ in range(repeats + warm_up):
        for i, call in enumerate(calls):
            start, start_cpu = time.perf_counter(), time.process_time()
            call()
            wall[i].append(time.perf_counter() - start)
            cpu[i].append(time.process_time() - start_cpu)
    return [Taken(tuple(w[warm_up:]), tuple(c[warm_up:])) for w, c in zip(wall, cpu)]


def load_average() -> float:
    """Load average of the last minute: above the number of our own threads, somebody else was at work."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """torch runs on `count` threads inside the block."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
