"""Files that are either whole or not there: written beside their place, flushed to the disk, then renamed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TEMPORARY_PREFIX = ".tmp-"


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` to write to; renamed to `path` on success, removed on failure."""
    temporary = path.with_name(f"{TEMPORARY_PREFIX}{os.getpid()}-{path.name}")
    try:
        yield temporary
        _flush_to_disk(temporary)
        os.replace(temporary, path)
        _flush_to_disk(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that a reader, even after a power cut, sees the old content or the new, never a part."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(data)


def write_json_atomically(path: Path, data: Any) -> None:
    """Readable JSON, keys in the given order; NaN and infinity are refused because JSON has neither."""
    write_atomically(path, (json.dumps(data, indent=1, allow_nan=False, ensure_ascii=False) + "\n").encode())


def remove_temporaries(folder: Path) -> None:
    """Delete what writers that were killed left behind. Call it only while no other writer is at work."""
    for leftover in folder.glob(f"{TEMPORARY_PREFIX}*"):
        leftover.unlink(missing_ok=True)


def _flush_to_disk(path: Path) -> None:
    if path.is_dir() and os.name == "nt":
        return  # Windows cannot open folders
    handle = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
