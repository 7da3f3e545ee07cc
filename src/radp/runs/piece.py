"""One piece of a map: how it is called, and what comes back, wherever it runs."""

from __future__ import annotations

import os
import socket
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from radp.runs.allowance import Allowance, renew, rest
from radp.runs.errors import EndOfRun

DIED = "the worker process died (killed, out of memory, or crashed)"
MOST_DEATHS = 3  # workers that a piece may take with it on other machines, where nodes die for reasons of their own


@dataclass(frozen=True)
class Work:
    """What a map has to do. `function` and `pieces` can be pickled, unless all happens in this process."""

    function: Callable[[Any], Any]
    pieces: Sequence[Any]
    name: Callable[[Any], str]
    workers: int
    allowance: Allowance | None = None
    folder: Path | None = None  # of the results; it is claimed


@dataclass(frozen=True)
class Raised:
    """What a worker sends back instead of a result; `end` is raised again by the map and ends it."""

    reason: str
    detail: str = ""
    end: type[EndOfRun] | None = None


@dataclass(frozen=True)
class Answer:
    """The result of a piece, or what it raised; how long it took, and where."""

    value: Any
    seconds: float = 0.0
    node: str = ""


def call(function: Callable[[Any], Any], piece: Any) -> Answer:
    """The answer, in a form that always pickles if the result does."""
    begin = time.perf_counter()
    value = _value(function, piece)
    return Answer(value, time.perf_counter() - begin, node_name())


_leaving = False


def leave_soon() -> None:
    """From now on a SystemExit ends this process instead of its piece."""
    global _leaving
    _leaving = True


def _value(function: Callable[[Any], Any], piece: Any) -> Any:
    renew()
    try:
        return function(piece)
    except EndOfRun as error:
        return Raised(str(error), "", type(error))
    except MemoryError:
        return Raised("it needs more memory than it may take", traceback.format_exc())
    except (Exception, SystemExit) as error:
        if _leaving and isinstance(error, SystemExit):
            raise  # it is this process that has to end, not the piece that wants to
        text = " ".join(str(error).split())
        reason = f"{type(error).__name__}: {text}" if text else type(error).__name__
        return Raised(reason, traceback.format_exc())
    finally:
        rest()


def node_name() -> str:
    """Where this process runs, as the journal of a run names it: SLURM's name of the node, else the machine's."""
    return os.environ.get("SLURMD_NODENAME") or host_name()


@cache
def host_name() -> str:
    return socket.gethostname()
