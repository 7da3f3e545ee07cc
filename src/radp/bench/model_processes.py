"""Processes that take training steps together on demand, so that they can be timed from outside."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import distributed, nn
from torch.multiprocessing import get_context, spawn

MakeStep = Callable[[Callable[[nn.Module], nn.Module]], Callable[[], None]]  # how a model is wrapped -> one step


@contextmanager
def stepping_together(make_step: MakeStep, processes: int) -> Iterator[tuple[Callable[[], None], Any]]:
    """Inside the block: a call that makes all processes take one step, and their processor seconds of the last one.

    Each process runs on one thread, builds its own step with `make_step`, and shares its gradients with the others.
    """
    context = get_context("spawn")
    begin, end = context.Barrier(processes + 1), context.Barrier(processes + 1)
    seconds, over = context.Array("d", processes), context.Event()

    def step() -> None:
        begin.wait()
        end.wait()

    with TemporaryDirectory() as folder:
        meeting = Path(folder, "meeting").as_uri()
        members = spawn(
            _member, (make_step, processes, meeting, begin, end, seconds, over), nprocs=processes, join=False
        )
        try:
            yield step, seconds
        finally:
            over.set()
            begin.wait()
            while not members.join():
                pass


def _member(
    rank: int, make_step: MakeStep, processes: int, meeting: str, begin: Any, end: Any, seconds: Any, over: Any
) -> None:
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=meeting, rank=rank, world_size=processes)
    step = make_step(nn.parallel.DistributedDataParallel)
    while True:
        begin.wait()
        if over.is_set():
            break
        start = time.process_time()
        step()
        seconds[rank] = time.process_time() - start
        end.wait()
    distributed.destroy_process_group()
