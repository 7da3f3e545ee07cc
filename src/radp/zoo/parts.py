"""Two parts of any split: a tenth of its logs that is held out, and the rest to learn from.

    radp data samples --scenarios runs/waymo@rest ...
    radp simulate --scenarios runs/waymo@held-out ...

A log belongs to one part with all its egos, whoever drives and wherever it was converted.
"""

from __future__ import annotations

import hashlib

HELD_OUT, REST = "held-out", "rest"
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
    """ "runs/waymo@rest" -> ("runs/waymo", "rest"); a name without a part comes back with None."""
    name, _, part = split.rpartition(MARK)
    return (name, part) if name and part in (HELD_OUT, REST) else (split, None)


def positions(tokens: list[str], part: str) -> list[int]:
    """Where the scenarios of a part stand among all."""
    return [i for i, token in enumerate(tokens) if is_held_out(token) == (part == HELD_OUT)]
