"""What a job of SLURM does: its share of the pieces, one after the other, each noted in the ledger of the job."""

from __future__ import annotations

import os
import pickle
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from radp.runs.files import write_atomically
from radp.runs.ledger import JsonLines
from radp.runs.piece import MOST_DEATHS, Answer, Raised, call, leave_soon
from radp.runs.pool import Isolated


def ledger_of(place: Path, shard: int) -> Path:
    return place / f"shard-{shard:05d}.jsonl"


@dataclass
class ShardJob:
    """Goes on where the ledger ends, so it may be killed, preempted and started again."""

    place: Path
    shard: int
    share: Sequence[int]
    again: bool = False  # SLURM will put it back into the queue

    def __call__(self) -> int:
        ledger = JsonLines(ledger_of(self.place, self.shard))
        function, payload, station, allowance = pickle.loads((self.place / "work.pkl").read_bytes())
        station.enter()
        isolated = None if allowance is None else Isolated(function, station.threads, allowance)
        caller: Callable[[Any], Answer] = (lambda p: call(function, p)) if isolated is None else isolated.call
        try:
            for index in self._left(ledger):
                result, piece = payload[index]
                ledger.append(begun=index)
                answer = caller(piece)
                self._note(ledger, index, result, answer)
                if isinstance(answer.value, Raised) and answer.value.end is not None:
                    break
        finally:
            if isolated is not None:
                isolated.close()
        return 0

    def _left(self, ledger: JsonLines) -> list[int]:
        """Pieces to do; those that ended too many jobs are left to the driver to judge."""
        rows = ledger.rows()
        ended = {row["ended"] for row in rows if "ended" in row}
        begun = Counter(row["begun"] for row in rows if "begun" in row)
        begun.subtract(row["pardoned"] for row in rows if "pardoned" in row)
        if self.again or os.environ.get("SLURM_RESTART_COUNT", "0") != "0":
            for index in [i for i in begun if i not in ended and begun[i] > 0]:
                ledger.append(pardoned=index)
                begun[index] -= 1
        return [index for index in self.share if index not in ended and begun[index] < MOST_DEATHS]

    def _note(self, ledger: JsonLines, index: int, result: Path, answer: Answer) -> None:
        row: dict[str, Any] = {"ended": index, "seconds": round(answer.seconds, 6), "node": answer.node}
        if isinstance(answer.value, Raised):
            end = answer.value.end
            row |= {"reason": answer.value.reason, "detail": answer.value.detail}
            row |= {} if end is None else {"end": end.__name__}
        elif answer.value is not None:
            write_atomically(result, pickle.dumps(answer.value))
            row["kept"] = True
        ledger.append(**row)

    def checkpoint(self) -> Any:
        """Called by submitit when the job is about to be preempted or to run out of time: it goes back to the queue."""
        from submitit.helpers import DelayedSubmission

        leave_soon()
        return DelayedSubmission(ShardJob(self.place, self.shard, self.share, again=True))
