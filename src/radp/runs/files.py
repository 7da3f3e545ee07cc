"""Files that are either whole or not there: written beside their place, flushed to the disk, then renamed."""

from __future__ import annotations

import hashlib
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from radp.runs.errors import BadInput, LostWrite
from radp.runs.json_text import json_text

TEMPORARY_PREFIX = ".tmp-"
LONGEST_STEM = 242  # bytes of a file name before its suffix; file systems allow 255 in all


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` to write to, its folder made; renamed to `path` on success, removed on failure.

    LostWrite if the system does not let us: a full disk, a folder that may not be written to.
    """
    temporary = path.with_name(f"{TEMPORARY_PREFIX}{_writer()}-{path.name[-200:]}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        _flush_to_disk(temporary)
        os.replace(temporary, path)
        _flush_to_disk(path.parent)
    except OSError as error:
        raise LostWrite(f"{path} cannot be written ({error.strerror or error})") from None
    finally:
        with suppress(OSError):  # it may be the folder that is gone, or may not be read
            temporary.unlink(missing_ok=True)


def _writer() -> str:
    """This process among those of all machines that write to the folder."""
    return f"{hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]}-{os.getpid()}"


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that a reader, even after a power cut, sees the old content or the new, never a part."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(data)


def write_json_atomically(path: Path, data: Any) -> None:
    """Readable JSON as of `json_text`; a half of a surrogate pair, which has no UTF-8, is written as its escape."""
    write_atomically(path, f"{json_text(data, ensure_ascii=False)}\n".encode("utf-8", "backslashreplace"))


def make_folder(path: Path) -> Path:
    """The folder, made with its parents where it is not there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LostWrite(f"{path} cannot be made ({error.strerror or error})") from None
    return path


def private_folder(path: Path) -> Path:
    """The folder, which nobody else may write to or read: what is unpickled there runs with our rights."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.stat()
    if hasattr(os, "getuid") and (found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077):
        raise BadInput(f"{path} is open to other users; delete it, or make it yours alone (chmod 700)")
    return path


def remove_temporaries(folder: Path) -> None:
    """Delete what writers that were killed left behind. Call it only while no other writer is at work."""
    for leftover in folder.glob(f"{TEMPORARY_PREFIX}*"):
        leftover.unlink(missing_ok=True)


def file_stem(name: str) -> str:
    """A file name, without suffix, for a name of any characters and length."""
    return short_stem(quote(name, safe="").replace(".", "%2E"), name)


def short_stem(stem: str, name: str) -> str:
    """The stem, or where it is too long for a file its beginning and a hash of the name that it stands for."""
    if len(stem) <= LONGEST_STEM:
        return stem
    return f"{stem[:200]}%%{hashlib.sha256(name.encode()).hexdigest()[:32]}"


def _flush_to_disk(path: Path) -> None:
    if path.is_dir() and os.name == "nt":
        return  # Windows cannot open folders
    handle = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
