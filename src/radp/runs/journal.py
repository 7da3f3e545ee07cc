"""The journal of a folder: which map ran there, and of each piece where it ran, how long, and whether it succeeded."""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter, defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from radp.runs.claim import BOOKS, JOBS, claimed, driver_of
from radp.runs.ledger import JsonLines
from radp.runs.piece import Answer, Raised, host_name

FILE = "pieces.jsonl"
SLOWEST = 5  # pieces that are named


class Journal:
    """Appends to the journal of a folder; without a folder it keeps nothing."""

    def __init__(self, folder: Path | None, label: str, pieces: int, engine: str, workers: int) -> None:
        self._lines = None if folder is None or not pieces else JsonLines(folder / BOOKS / FILE)
        self._begin = time.monotonic()
        if self._lines is not None:
            at = datetime.now(UTC).isoformat(timespec="seconds")
            driver = f"{host_name()}:{os.getpid()}"
            self._lines.append(map=label, pieces=pieces, engine=engine, workers=workers, at=at, driver=driver)

    def note(self, piece: str, answer: Answer) -> None:
        """One more piece is over."""
        if self._lines is not None:
            ok = not isinstance(answer.value, Raised)
            self._lines.append(piece=piece, ok=ok, seconds=round(answer.seconds, 6), node=answer.node)

    def end(self) -> None:
        """All pieces are over."""
        if self._lines is not None:
            self._lines.append(ended=round(time.monotonic() - self._begin, 3))


def forget(folder: Path) -> None:
    """Delete the journal and what jobs left behind; FolderTaken while somebody is at work."""
    with claimed(folder):
        shutil.rmtree(folder / BOOKS / JOBS, ignore_errors=True)
        (folder / BOOKS / FILE).unlink(missing_ok=True)


def maps_of(folder: Path) -> list[dict[str, Any]]:
    """What the journal tells of each map, oldest first, ready for JSON; empty if the folder has none."""
    maps: list[dict[str, Any]] = []
    rows: list[list[dict[str, Any]]] = []
    for row in JsonLines(folder / BOOKS / FILE).rows():
        if "map" in row:
            maps.append({"label": row["map"], **{k: row.get(k) for k in ("pieces", "engine", "workers", "at")}})
            rows.append([])
        elif maps and "piece" in row:
            rows[-1].append(row)
        elif maps and "ended" in row:
            maps[-1]["seconds"] = row["ended"]
    for found, pieces in zip(maps, rows):
        found.update(_counted(found, pieces))
    if maps and driver_of(folder) is not None and "seconds" not in maps[-1]:
        maps[-1]["state"] = "running"
    return maps


def _counted(found: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Counts and times of one map."""
    done, failed = ([row for row in rows if bool(row.get("ok")) is ok] for ok in (True, False))
    nodes: dict[str, dict[str, float]] = defaultdict(lambda: {"pieces": 0, "seconds": 0.0})
    for row in rows:
        node = nodes[str(row.get("node") or "unknown")]
        node["pieces"] += 1
        node["seconds"] = round(node["seconds"] + float(row.get("seconds") or 0.0), 3)
    times = sorted(float(row.get("seconds") or 0.0) for row in done)
    slow = sorted(done, key=lambda row: -float(row.get("seconds") or 0.0))[:SLOWEST]
    return {
        "state": "ended" if "seconds" in found else "stopped",
        "done": len(done),
        "failed": len(failed),
        "missing": max(0, int(found["pieces"] or 0) - len(rows)),
        "nodes": dict(sorted(nodes.items())),
        "piece_seconds": {"median": times[len(times) // 2], "most": times[-1]} if times else {},
        "slowest": [{k: row.get(k) for k in ("piece", "seconds", "node")} for row in slow],
        "again": {piece: n for piece, n in Counter(str(row["piece"]) for row in rows).items() if n > 1},
    }
