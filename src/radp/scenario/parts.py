"""Parts of any split: a tenth of its logs that is held out, the rest to learn from, and every n-th scenario.

    radp data samples --scenarios runs/waymo@rest ...
    radp simulate --scenarios runs/waymo@held-out ...
    radp simulate --scenarios runs/waymo@dev ...            (a tenth of the logs, of the rest: to choose recipes on)
    radp data samples --scenarios runs/waymo@train ...      (the rest without these)
    radp simulate --scenarios runs/waymo@every-5 ...        (the 1st, 6th, ...)
    radp simulate --scenarios runs/waymo@every-5+1 ...      (the 2nd, 7th, ...)

A log is held out or not with all its egos, whoever drives and wherever it was converted.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter

HELD_OUT, REST, DEV, TRAIN = "held-out", "rest", "dev", "train"
LAST_DIGITS = {HELD_OUT: {0}, REST: set(range(1, 10)), DEV: {1}, TRAIN: set(range(2, 10))}
EVERY = re.compile(r"every-([1-9]\d*)(?:\+(\d+))?", re.ASCII)
MARK = "@"


def log_of(token: str) -> str:
    """The log of a scenario: tokens are LOG or LOG:EGO."""
    return token.partition(":")[0]


def last_digit(token: str) -> int:
    """Of the first 8 bytes of the SHA-256 of the log's name, read as one big-endian number."""
    digest = hashlib.sha256(log_of(token).encode()).digest()
    return int.from_bytes(digest[:8], "big") % 10


def is_held_out(token: str) -> bool:
    """Whether nothing may learn from this scenario's log, nor be chosen on it."""
    return last_digit(token) in LAST_DIGITS[HELD_OUT]


def name_and_part(split: str) -> tuple[str, str | None]:
    """runs/waymo@rest -> (runs/waymo, rest); a name without a part comes back with None."""
    name, _, part = split.rpartition(MARK)
    return (name, part) if name and (part in LAST_DIGITS or EVERY.fullmatch(part)) else (split, None)


def positions(tokens: list[str], part: str) -> list[int]:
    """Where the scenarios of a part stand among all; every-n begins with the first, every-n+k with k left out."""
    if every := EVERY.fullmatch(part):
        return list(range(int(every[2] or 0), len(tokens), int(every[1])))
    return [i for i, token in enumerate(tokens) if last_digit(token) in LAST_DIGITS[part]]


def spread_over_kinds(kinds: list[str], limit: int) -> list[int]:
    """Positions of `limit` scenarios: the first of each kind, then the second of each, and so on; in order.

    A larger limit takes what a smaller one takes, and more.

    >>> spread_over_kinds(["turn", "turn", "turn", "stop", "stop"], 3)
    [0, 1, 3]
    """
    seen: Counter[str] = Counter()
    turns = []
    for i, kind in enumerate(kinds):
        turns.append((seen[kind], i))
        seen[kind] += 1
    return sorted(i for _, i in sorted(turns)[:limit])
