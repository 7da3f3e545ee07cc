"""Parts of any split: a tenth of its logs that is held out, the rest to learn from, and every n-th scenario.

    radp data samples --scenarios runs/waymo@rest ...
    radp simulate --scenarios runs/waymo@held-out ...
    radp simulate --scenarios runs/waymo@every-5 ...        (the 1st, 6th, ...)
    radp simulate --scenarios runs/waymo@every-5+1 ...      (the 2nd, 7th, ...)

A log is held out or not with all its egos, whoever drives and wherever it was converted.
"""

from __future__ import annotations

import hashlib
import re

HELD_OUT, REST = "held-out", "rest"
EVERY = re.compile(r"every-([1-9]\d*)(?:\+(\d+))?", re.ASCII)
MARK = "@"
ONE_IN = 10


def log_of(token: str) -> str:
    """The log of a scenario: tokens are LOG or LOG:EGO."""
    return token.partition(":")[0]


def is_held_out(token: str) -> bool:
    """Whether the first 8 bytes of the SHA-256 of the log's name, read as one big-endian number, end in 0."""
    digest = hashlib.sha256(log_of(token).encode()).digest()
    return int.from_bytes(digest[:8], "big") % ONE_IN == 0


def name_and_part(split: str) -> tuple[str, str | None]:
    """runs/waymo@rest -> (runs/waymo, rest); a name without a part comes back with None."""
    name, _, part = split.rpartition(MARK)
    return (name, part) if name and (part in (HELD_OUT, REST) or EVERY.fullmatch(part)) else (split, None)


def positions(tokens: list[str], part: str) -> list[int]:
    """Where the scenarios of a part stand among all; every-n begins with the first, every-n+k with k left out."""
    if every := EVERY.fullmatch(part):
        return list(range(int(every[2] or 0), len(tokens), int(every[1])))
    return [i for i, token in enumerate(tokens) if is_held_out(token) == (part == HELD_OUT)]
