"""Files of others, compressed or plain: how much may come out of one is bounded before it is allocated."""

from __future__ import annotations

import csv
import json
import zipfile
import zlib
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np

MIB = 1 << 20
GZIP = b"\x1f\x8b"
PIECE = MIB  # bytes that are decompressed at a time
MOST_STREAMS = 4096  # compressed streams in one file; one is usual, bgzip writes one for every 64 kB
MOST_JSON_BYTES = 128 * MIB  # values of Python take up to 20 times as much as their text; largest log: 2.7 MB
MOST_JSON_CONTAINERS = 4_000_000  # lists and objects, 60 bytes and more each; largest log: 43,000
MOST_JSON_VALUES = 20_000_000  # largest log: 142,000
MOST_CSV_BYTES = 64 * MIB  # rows take ten times as much; nuPlan's largest table of results has 0.3 MB
MOST_NPZ_BYTES = 256 * MIB  # of all arrays that are wanted of one .npz; a sample has 0.3 MB


def unpack(raw: bytes, new: Callable[[], Any], most: int) -> bytes:
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


def gunzip(raw: bytes, most: int) -> bytes:
    """The content if it is gzip by its magic, else the bytes as they are."""
    return unpack(raw, lambda: zlib.decompressobj(wbits=31), most) if raw[: len(GZIP)] == GZIP else raw


def parse_json(raw: bytes, parse_constant: Callable[[str], Any] | None = None) -> Any:
    """json.loads for texts of others; ValueError for one that would fill the memory, or is nested too deeply."""
    if len(raw) > MOST_JSON_BYTES:
        raise ValueError(f"it holds more than {MOST_JSON_BYTES // MIB} MB")
    if raw.count(b"[") + raw.count(b"{") > MOST_JSON_CONTAINERS or raw.count(b",") > MOST_JSON_VALUES:
        raise ValueError("it holds more values than a log has")
    try:
        return json.loads(raw, parse_constant=parse_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read_csv(path: Path) -> list[dict[str, str]]:
    """Rows of a table with a header; ValueError for one that would fill the memory."""
    if path.stat().st_size > MOST_CSV_BYTES:
        raise ValueError(f"it holds more than {MOST_CSV_BYTES // MIB} MB")
    with path.open(newline="") as file:
        return list(csv.DictReader(file, skipinitialspace=True))


def read_npz_arrays(path: Path, names: Collection[str] | None = None) -> dict[str, np.ndarray]:
    """Arrays of an .npz by name, those of `names` that it has, or all; ValueError for what is none, or too much."""
    with zipfile.ZipFile(path) as archive:
        parts = {info.filename.removesuffix(".npy"): info.file_size for info in archive.infolist()}
    chosen = [name for name in parts if names is None or name in names]
    if sum(parts[name] for name in chosen) > MOST_NPZ_BYTES:
        raise ValueError(f"its arrays hold more than {MOST_NPZ_BYTES // MIB} MB")
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in chosen}
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):  # numpy gives a part that does not begin as an array does as bytes
            raise ValueError(f"{name} is no array")
    return arrays
