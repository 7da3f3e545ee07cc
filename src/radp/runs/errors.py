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


def printable(text: str) -> str:
    """Text for a terminal: what would steer it, or is no character, is shown by its number. Lines stay lines."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def require(module: str, extra: str) -> ModuleType:
    """Import an optional module, or say which extra brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtra(f'{module} is needed here ({error}): pip install "radp[{extra}]"') from None
