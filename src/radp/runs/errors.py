"""Errors that are the user's to mend: each message is one sentence that says what was wrong and what was expected."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


class BadInput(ValueError):
    """A file, a name or an option that cannot be used; the command line prints the message and exits with code 2."""


class EndOfRun(BadInput):
    """What ends a whole run, although only one piece of it met it."""


class LostWrite(EndOfRun):
    """A result that cannot be kept (full disk, a folder that may not be written to): going on would lose more."""


class MissingExtra(BadInput, ImportError):
    """An optional dependency is not installed; the message names the extra that brings it."""


def require(module: str, extra: str) -> ModuleType:
    """Import an optional module, or say which extra brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtra(f'{module} is needed here ({error}): pip install "radp[{extra}]"') from None
