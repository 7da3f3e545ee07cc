"""Pieces of maps for the tests of engines: importable, so that they can be sent anywhere."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from radp.runs.files import write_atomically


def square(x: int) -> int:
    return x * x


def troubled(folder: Path, x: int) -> int:
    """3 raises; 4 kills its process when it is tried first; 5 kills it always."""
    if x == 3:
        raise ValueError("three\nis bad")
    if x == 4 and not (folder / "died").exists():
        (folder / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if x == 5:
        os._exit(1)
    return x * x


def slow_file(folder: Path, seconds: float, x: int) -> None:
    """Leaves its process id, then a file; each run of it is on record."""
    (folder / f"begun-{x}-{os.getpid()}").touch()
    time.sleep(seconds)
    write_atomically(folder / f"{x}.txt", str(x).encode())


def slow_square(folder: Path, seconds: float, x: int) -> int:
    slow_file(folder, seconds, x)
    return x * x


def begun(folder: Path) -> dict[int, list[int]]:
    """Piece -> processes that began it."""
    found: dict[int, list[int]] = {}
    for file in folder.glob("begun-*"):
        _, piece, process = file.name.split("-")
        found.setdefault(int(piece), []).append(int(process))
    return found


def wait_until(condition: object, seconds: float = 300.0) -> None:
    """Until the call gives something true."""
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end, "nothing happens"
        time.sleep(0.05)
