"""One driver on one folder: the second says so and leaves.

OUT/.radp/driver.json   who is at work on the folder; locked while he is, removed at the end
OUT/.radp/pieces.jsonl  the journal (`radp.runs.journal`)
OUT/.radp/jobs/         what jobs of SLURM need and leave (`radp.runs.slurm_engine`)
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from radp.runs.errors import BadInput, LostWrite
from radp.runs.json_text import json_text
from radp.runs.piece import host_name

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

BOOKS, DRIVER, JOBS = ".radp", "driver.json", "jobs"
BEAT_S = 15.0  # a driver touches its file this often
TRIES = 3
SILENCE_S = 60.0  # one on another machine that did not for so long is dead
LOOK_S = 1.0


class FolderTaken(BadInput):
    """A folder that another command is at work on."""


_held: dict[Path, str] = {}  # folders that this process has claimed, with the mark of the claim


@contextmanager
def claimed(folder: Path | str) -> Iterator[None]:
    """Hold the folder, made if need be, for this process; FolderTaken if another has it. Claims may be nested.

    The lock goes with the process, however it ends. Jobs that an earlier driver left in the queue are waited for.
    """
    place = Path(folder).resolve()
    if place in _held:
        yield
        return
    if place.exists() and not place.is_dir():
        raise BadInput(f"{folder} is a file; expected a folder for the run")
    made = not place.exists()
    books = _books(place)
    handle = _take(books / DRIVER, folder)
    _held[place] = mark = secrets.token_hex(8)
    stop = threading.Event()
    threading.Thread(target=_beat, args=(books / DRIVER, stop), name="claim", daemon=True).start()
    try:
        _sign(handle, mark)
        if (books / JOBS).exists():
            from radp.runs.slurm_engine import wait_for_leftovers

            wait_for_leftovers(books / JOBS)
        yield
    finally:
        stop.set()
        del _held[place]
        (books / DRIVER).unlink(missing_ok=True)
        os.close(handle)
        with suppress(OSError):  # where nothing was done, nothing stays
            books.rmdir()
            if made:
                place.rmdir()


def _books(place: Path) -> Path:
    try:
        (place / BOOKS).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LostWrite(f"{place} cannot be written ({error.strerror or error})") from None
    return place / BOOKS


def mark_of(folder: Path) -> str:
    """What tells a claimed folder from one of the same name on another disk."""
    return _held[folder.resolve()]


def is_marked(folder: Path, mark: str) -> bool:
    """Whether the folder, seen from here, is the one that its driver has claimed."""
    return (driver_of(folder) or {}).get("mark") == mark


def driver_of(folder: Path) -> dict[str, Any] | None:
    """Who is at work on the folder: host, process, command; None if nobody is.

    On the driver's own machine his lock decides; elsewhere that he signed it, since locks may not be seen there.
    """
    file = folder / BOOKS / DRIVER
    try:
        said = json.loads(file.read_bytes())
        if said.get("host") == host_name() and not _is_locked(file):
            return None
        return said
    except (OSError, ValueError, AttributeError):
        return None


def _take(file: Path, folder: Path | str) -> int:
    """The locked file; taken again if its last owner removed it between opening and locking."""
    while True:
        try:
            handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
        except FileNotFoundError:  # the last owner has just tidied up
            _books(file.parents[1])
            continue
        except OSError as error:
            raise LostWrite(f"{file} cannot be written ({error.strerror or error})") from None
        if not _lock(handle) or _lives_elsewhere(file, handle):
            said = _read(handle)
            os.close(handle)
            who = f"process {said.get('process', '?')} on {said.get('host', '?')}"
            raise FolderTaken(
                f"{folder} is being written by another command ({who}); let it end, or choose another folder"
            )
        with suppress(FileNotFoundError):
            if os.fstat(handle).st_ino == os.stat(file).st_ino:
                return handle
        os.close(handle)


def _lock(handle: int) -> bool:
    """False if another process has it. Where the file system has no locks, only the signature protects."""
    if fcntl is None:
        return True
    for _ in range(TRIES):  # somebody may just be looking
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                return True
        time.sleep(0.05)
    return False


def _is_locked(file: Path) -> bool:
    if fcntl is None:
        return True
    handle = os.open(file, os.O_RDWR)
    try:
        return not _lock(handle)
    finally:
        os.close(handle)


def _lives_elsewhere(file: Path, handle: int) -> bool:
    """Signed on another machine and touched while we look: some file systems keep locks to one machine.

    Silence is measured by the clock of the file system, not by ours.
    """
    if _read(handle).get("host") in (None, host_name()):
        return False
    before = os.fstat(handle).st_mtime
    while _file_time(file) - before < SILENCE_S:
        if os.fstat(handle).st_mtime != before:
            return True
        time.sleep(LOOK_S)
    return False


def _file_time(file: Path) -> float:
    """What time it is where the file lies."""
    probe = file.with_name(f"{file.name}.{os.getpid()}")
    probe.touch()
    now = probe.stat().st_mtime
    probe.unlink()
    return now


def _read(handle: int) -> dict[str, Any]:
    try:
        found = json.loads(os.pread(handle, 10_000, 0))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _sign(handle: int, mark: str) -> None:
    os.ftruncate(handle, 0)
    os.pwrite(handle, json_text({"host": host_name(), "process": os.getpid(), "mark": mark}).encode(), 0)
    os.fsync(handle)


def _beat(file: Path, stop: threading.Event) -> None:
    while not stop.wait(BEAT_S):
        with suppress(OSError):
            os.utime(file)
