"""Errors that are the user's to mend: each message is one sentence that says what was wrong and what was expected."""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from types import ModuleType

LONGEST = 600  # characters of a sentence
OWN_MODULE = "radp_user_"  # how the names of modules begin that are made of a user's file


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


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """What to put behind a complaint about a word: the known word that is nearest, or nothing.

    >>> did_you_mean("pdm-closed", ["idm", "pdm_closed"])
    "; did you mean 'pdm_closed'?"
    """
    near = get_close_matches(word.lower(), list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


def require(module: str, extra: str) -> ModuleType:
    """Import an optional module, or say which extra brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtra(f'{module} is needed here ({error}): pip install "radp[{extra}]"') from None


def one_line(text: object, longest: int = LONGEST) -> str:
    """Text on one line that a terminal can show: no control characters, no half characters, not too long."""
    shown = printable(" ".join(str(text).split()))
    return shown if len(shown) <= longest else f"{shown[: longest - 4]} ..."


def sentence(error: BaseException) -> str:
    """What an error says, on one line: the message of errors that speak of values and files, else with its kind."""
    kind = type(error).__name__
    if isinstance(error, OSError) and error.strerror:
        return one_line(f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror)
    text = one_line(error)
    if isinstance(error, ValueError | OSError):
        return text or kind
    return one_line(f"{kind}: {text}") if text else kind


@contextmanager
def reading_file(path: Path | str, what: str, kind: type[BadInput] = BadInput) -> Iterator[None]:
    """Whatever goes wrong while a user's file is read becomes one sentence that names the file and what it should be.

    Use it around everything that looks into the content: files are cut, foreign and hostile in more ways than can be
    listed.
    """
    try:
        yield
    except BadInput:
        raise
    except Exception as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else sentence(error)
        raise kind(f"{path}: not a readable {what} ({one_line(why, 300)})") from error


def own_line(error: BaseException, module: str = OWN_MODULE) -> str:
    """The last line of a user's module that an error went through: `own.py, line 7, in plan: x = 1 / 0`; or nothing."""
    if isinstance(error, SyntaxError) and error.filename:
        return one_line(f"{Path(error.filename).name}, line {error.lineno}: {error.text or ''}", 200)
    found = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        if str(frame.f_globals.get("__name__", "")).startswith(module):
            file = frame.f_code.co_filename
            found = f"{Path(file).name}, line {line}, in {frame.f_code.co_name}: {linecache.getline(file, line)}"
    return one_line(found, 200)
