"""Calls that may take their process down cost nothing but themselves."""

from __future__ import annotations

import os

import pytest

from radp.runs import apart as module
from radp.runs.allowance import Allowance
from radp.runs.apart import apart
from radp.runs.pool import Isolated


def process_of(_: object) -> int:
    return os.getpid()


def crash(_: object) -> None:
    os.abort()


def refuse(words: str) -> None:
    raise ValueError(f"it holds {words}\nand more")


def apart_again(_: object) -> tuple[int, int]:
    return os.getpid(), apart(process_of, None)


def test_a_crash_is_one_sentence_and_the_next_call_is_answered() -> None:
    first = apart(process_of, None)
    assert first != os.getpid() and apart(process_of, None) == first  # kept for the next call
    with pytest.raises(ValueError, match=r"the worker process crashed \(SIGABRT\)"):
        apart(crash, None)
    assert apart(process_of, None) not in (first, os.getpid())
    with pytest.raises(ValueError, match=r"^it holds nonsense and more$"):
        apart(refuse, "nonsense")


def test_a_process_whose_end_costs_only_its_piece_calls_by_itself() -> None:
    isolated = Isolated(apart_again, 1, Allowance())
    try:
        here, there = isolated.call(None).value
    finally:
        isolated.close()
    assert here == there != os.getpid() and module.is_isolated() is False
