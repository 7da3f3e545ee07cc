"""Parts of any split: a tenth of its logs that is held out, the rest to learn from, and every n-th scenario.

    radp data samples --scenarios runs/waymo@rest ...
    radp simulate --scenarios runs/waymo@held-out ...
    radp simulate --scenarios runs/waymo@every-5 ...

A log is held out or not with all its egos, whoever drives and wherever it was converted.
"""

from __future__ import annotations

import hashlib

HELD_OUT, REST, EVERY = "held-out", "rest", "every-"
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
    return (name, part) if name and (part in (HELD_OUT, REST) or _stride(part)) else (split, None)


def positions(tokens: list[str], part: str) -> list[int]:
    """Where the scenarios of a part stand among all; every-n begins with the first."""
    if stride := _stride(part):
        return list(range(0, len(tokens), stride))
    return [i for i, token in enumerate(tokens) if is_held_out(token) == (part == HELD_OUT)]


def _stride(part: str) -> int:
    """n of every-n, 0 for other words."""
    number = part.removeprefix(EVERY)
    return int(number) if part != number and number.isdecimal() else 0
