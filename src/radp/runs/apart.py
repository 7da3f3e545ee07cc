"""Calls of libraries that may take their process down: in another process, which is kept for the next call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from radp.runs.allowance import Allowance, half_of_memory, is_isolated
from radp.runs.errors import sentence
from radp.runs.piece import Raised
from radp.runs.pool import Isolated

Result = TypeVar("Result")
MOST_SECONDS = 60.0  # of processor time for one call
_process: Isolated | None = None


@dataclass(frozen=True)
class _Refused:
    reason: str


def apart(function: Callable[[Any], Result], argument: Any) -> Result:
    """function(argument); ValueError with one sentence for whatever goes wrong, a crash of the process included.

    The function must be importable (or a partial of one such), argument and result picklable. A process whose end
    costs only its piece calls the function itself.
    """
    global _process
    if is_isolated():
        result = _attempt((function, argument))
    else:
        if _process is None:
            _process = Isolated(_attempt, 1, Allowance(MOST_SECONDS, half_of_memory()))
        result = _process.call((function, argument)).value
    if isinstance(result, _Refused | Raised):
        raise ValueError(result.reason)
    return result


def _attempt(piece: tuple[Callable[[Any], Any], Any]) -> Any:
    function, argument = piece
    try:
        return function(argument)
    except Exception as error:
        return _Refused(sentence(error))
