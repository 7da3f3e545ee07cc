"""Lines of JSON that grow while a run goes on, and the ledger: which pieces of a run failed, and why."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from radp.runs.errors import LostWrite
from radp.runs.json_text import json_text


class JsonLines:
    """Rows with the keys `keys`, one JSON object per line, appended as they happen."""

    def __init__(self, path: Path, *keys: str) -> None:
        self.path, self.keys = path, keys

    def rows(self) -> list[dict[str, Any]]:
        """Every whole row; a last line cut short by a kill, and lines that are something else, are passed over."""
        if not self.path.exists():
            return []
        rows = []
        for line in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if isinstance(row, dict) and all(key in row for key in self.keys):
                rows.append(row)
        return rows

    def append(self, **row: Any) -> None:
        line = (json_text(row, indent=None) + "\n").encode()
        try:
            with open(self.path, "ab+") as file:
                if file.tell():
                    file.seek(-1, os.SEEK_END)
                    if file.read(1) != b"\n":
                        line = b"\n" + line  # the last writer was killed in the middle of a line
                file.write(line)
        except OSError as error:
            raise LostWrite(f"{self.path} cannot be written ({error.strerror or error})") from None


class Ledger(JsonLines):
    """Rows {piece, reason, detail}; a later row about a piece replaces an earlier one.

    A row with reason null says that the piece has succeeded since.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, "piece", "reason")

    def record(self, piece: str, reason: str, detail: str = "") -> None:
        """`piece` failed for `reason` (one sentence); `detail` may hold a traceback."""
        self.append(piece=piece, reason=reason, detail=detail)

    def settle(self, piece: str) -> None:
        """`piece` succeeded; writes only if it is on record as failed."""
        if piece in self.failures():
            self.append(piece=piece, reason=None)

    def failures(self) -> dict[str, str]:
        """piece -> reason, for pieces that have not succeeded since, in the order of their first failure."""
        rows = [row for row in self.rows() if isinstance(row["piece"], str)]  # else the file was not written by us
        latest = {row["piece"]: None if row["reason"] is None else str(row["reason"]) for row in rows}
        return {piece: reason for piece, reason in latest.items() if reason is not None}
