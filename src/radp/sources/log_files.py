"""Log files as they lie on disks: found by suffix, read whole, plain or compressed."""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from radp.runs.errors import BadInput, MissingExtra
from radp.sources.convert import FileItem, SourceError
from radp.sources.limits import MIB, MOST_BYTES, MOST_XZ_MEMORY
from radp.sources.settings import LogChoice
from radp.storage.unpacking import MOST_JSON_BYTES, gunzip, parse_json, unpack

XZ = b"\xfd7zXZ\x00"


def find_logs(
    options: LogChoice, suffixes: Sequence[str], keep: Callable[[Path], bool] = lambda _: True
) -> list[FileItem]:
    """Items for the file `data`, or for all files under the folder `data` whose names end in one of the suffixes.

    Each is named by its path below the folder.
    """
    place = options.data
    if place is None:
        raise BadInput("--data is missing: expected a log or a folder of logs")
    if place.is_file():
        return [FileItem(place.name, place, options.ego)]
    if not place.is_dir():
        raise BadInput(f"{place} does not exist")
    files = sorted(p for p in place.rglob("*") if p.name.endswith(tuple(suffixes)) and p.is_file() and keep(p))
    return [FileItem(file.relative_to(place).as_posix(), file, options.ego) for file in files]


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """The content of a file, decompressed by its magic (gzip, xz); SourceError where it is cut short or too large."""
    try:
        if path.stat().st_size > most:
            raise ValueError(f"it is larger than {most // MIB} MB")
        raw = path.read_bytes()
        return unpack(raw, new_xz, most) if raw[: len(XZ)] == XZ else gunzip(raw, most)
    except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
        raise SourceError(f"{path.name}: the file cannot be read ({error})") from None


def new_xz() -> lzma.LZMADecompressor:
    """Refuses files whose dictionary alone would fill the memory."""
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MOST_XZ_MEMORY)


def read_json(path: Path) -> dict[str, Any]:
    """One JSON object. NaN and infinities, which are not JSON, are refused."""

    def refuse(word: str) -> NoReturn:
        raise ValueError(f"it holds {word}, which is no JSON number")

    raw = read_bytes(path, MOST_JSON_BYTES)
    try:
        data = parse_json(raw, refuse)
    except ValueError as error:
        raise SourceError(f"{path.name}: not readable as JSON ({error})") from None
    if not isinstance(data, dict):
        raise SourceError(f"{path.name}: expected one JSON object, found {type(data).__name__}")
    return data


@contextmanager
def reading(name: str, field: str) -> Iterator[None]:
    """Whatever goes wrong while a field is read becomes one sentence with the names of the file and the field."""
    try:
        yield
    except (SourceError, MissingExtra):
        raise
    except MemoryError:
        raise SourceError(f"{name}: {field}: it needs more memory than there is") from None
    except KeyError as error:
        raise SourceError(f"{name}: {field}: {str(error)[:80]} is missing") from None
    except Exception as error:  # a damaged file may make anything of the libraries below go wrong
        text = " ".join(str(error).split()) or type(error).__name__
        raise SourceError(f"{name}: {field}: {text[:300]}") from None
