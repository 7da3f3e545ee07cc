"""The one map over many independent pieces: in this process, in a pool of processes, on a cluster.

Results arrive in any order; each comes with the position of its piece, so that what is made of them can be the same
whatever the number of workers and the engine. A piece that raises, or kills its process, is a failure of that piece
alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from radp.runs.allowance import Allowance
from radp.runs.claim import claimed
from radp.runs.engine import current_engine
from radp.runs.journal import Journal
from radp.runs.ledger import Ledger
from radp.runs.piece import Answer, Raised, Work
from radp.runs.pool import Answers, check_sendable, in_pool, in_process
from radp.runs.progress import Progress

Piece = TypeVar("Piece")
Result = TypeVar("Result")


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


def runs_here(workers: int, allowance: Allowance | None = None) -> bool:
    """Whether a map with so many workers stays in this process."""
    return workers <= 1 and allowance is None and current_engine().is_local


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
    folder: Path | None = None,
) -> Outcome[Result]:
    """Apply `function` to every piece, where the current engine says (`radp.runs.engine`).

    Locally: workers <= 1: here, in order; else in that many spawned processes. With an allowance every piece runs in
    another process, also if there is one worker, and within its bounds. `size`: how much of what the label counts a
    piece is.

    `on_result(position, result)` runs in this process as results arrive; what it raises ends the map, and so does an
    EndOfRun of a piece (a LostWrite: the next ones could not be written either). With workers, `function` must be
    importable (a module-level function or a partial of one), pieces and results picklable. On a cluster a piece may
    run more than once (a node that died may have finished it): it must leave the same files then.

    `folder`: where the results go; it is claimed for this process, and its journal tells the times of the pieces.
    """
    outcome: Outcome[Result] = Outcome()
    failed_before = set(ledger.failures()) if ledger is not None else set()
    engine = current_engine()

    def take(index: int, answer: Answer) -> None:
        value, piece = answer.value, name(pieces[index])
        journal.note(piece, answer)
        if isinstance(value, Raised):
            if value.end is not None:
                raise value.end(value.reason)
            failure = Failure(index, piece, value.reason, value.detail)
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
            if ledger is not None and piece in failed_before:
                ledger.settle(piece)
        count = size(pieces[index])
        progress.advance(count, failed=count if isinstance(value, Raised) else 0)

    work = Work(function, pieces, name, workers, allowance, folder)
    total = sum(size(piece) for piece in pieces)
    with nullcontext() if folder is None else claimed(folder), Progress(label, total) as progress:
        journal = Journal(folder, label, len(pieces), engine.name, workers)
        with closing(_answers(work)) as source:
            for index, answer in source:
                take(index, answer)
        journal.end()
    outcome.results = dict(sorted(outcome.results.items()))
    outcome.failures.sort(key=lambda failure: failure.index)
    return outcome


def _answers(work: Work) -> Answers:
    """What the pieces give, from wherever they run."""
    engine = current_engine()
    if runs_here(work.workers, work.allowance) or not work.pieces:
        return in_process(work)
    check_sendable(work.function)
    if engine.name == "ray":
        from radp.runs.ray_engine import in_ray

        return in_ray(work, engine)
    if not engine.is_local:
        from radp.runs.slurm_engine import in_slurm

        return in_slurm(work, engine)
    return in_pool(work)
