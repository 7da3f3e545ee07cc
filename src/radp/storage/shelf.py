"""Results in the order of their pieces, although they arrive in any."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from radp.runs.parallel import Failure

Result = TypeVar("Result")


class Shelf(Generic[Result]):
    """Hands on what `parallel_map` makes, in the order of the pieces; what is early waits, what failed is passed over.

    So what is written of it is the same whatever the number of workers.
    """

    def __init__(self, use: Callable[[int, Result], None]) -> None:
        self.use = use
        self._waiting: dict[int, tuple[Result, ...]] = {}  # position -> the result, or nothing
        self._turn = 0

    def put(self, index: int, result: Result) -> None:
        """For `on_result`."""
        self._take(index, (result,))

    def lose(self, failure: Failure) -> None:
        """For `on_failure`."""
        self._take(failure.index, ())

    def _take(self, index: int, results: tuple[Result, ...]) -> None:
        self._waiting[index] = results
        while self._turn in self._waiting:
            for result in self._waiting.pop(self._turn):
                self.use(self._turn, result)
            self._turn += 1
