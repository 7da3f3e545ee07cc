"""Log files as they lie on disks: found by suffix, read whole, plain or compressed."""

from __future__ import annotations

import json
import lzma
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from radp.runs.errors import BadInput, MissingExtra
from radp.sources.convert import FileItem, SourceError
from radp.sources.limits import (
    MIB,
    MOST_BYTES,
    MOST_JSON_BYTES,
    MOST_JSON_CONTAINERS,
    MOST_JSON_VALUES,
    MOST_STREAMS,
    MOST_XZ_MEMORY,
)
from radp.sources.settings import LogChoice

GZIP, XZ = b"\x1f\x8b", b"\xfd7zXZ\x00"
PIECE = MIB  # bytes that are decompressed at a time


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
        if raw[: len(GZIP)] == GZIP:
            return unpack(raw, lambda: zlib.decompressobj(wbits=31), most)
        return unpack(raw, new_xz, most) if raw[: len(XZ)] == XZ else raw
    except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
        raise SourceError(f"{path.name}: the file cannot be read ({error})") from None


def new_xz() -> lzma.LZMADecompressor:
    """Refuses files whose dictionary alone would fill the memory."""
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MOST_XZ_MEMORY)


def unpack(raw: bytes, new: Callable[[], Any], most: int = MOST_BYTES) -> bytes:
    """All streams of compressed bytes, one behind the other; ValueError before more than `most` bytes come out."""
    rest, parts, total = memoryview(raw), [], 0
    for _ in range(MOST_STREAMS):
        engine = new()
        while not engine.eof:
            taken, rest = rest[:PIECE], rest[PIECE:]
            if not len(taken):
                raise EOFError("it is cut short")
            parts.append(engine.decompress(taken, most - total + 1))
            total += len(parts[-1])
            if total > most:
                raise ValueError(f"it holds more than {most // MIB} MB")
        rest = memoryview(raw)[len(raw) - len(rest) - len(engine.unused_data) :]
        if not bytes(rest[:4]).strip(b"\0"):  # padding
            return b"".join(parts)
    raise ValueError(f"it has more than {MOST_STREAMS} compressed streams")


def read_json(path: Path) -> dict[str, Any]:
    """One JSON object. NaN and infinities, which are not JSON, are refused."""

    def refuse(word: str) -> NoReturn:
        raise ValueError(f"it holds {word}, which is no JSON number")

    raw = read_bytes(path, MOST_JSON_BYTES)
    if raw.count(b"[") + raw.count(b"{") > MOST_JSON_CONTAINERS or raw.count(b",") > MOST_JSON_VALUES:
        raise SourceError(f"{path.name}: it holds more values than a log has")
    try:
        data = json.loads(raw, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
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
