"""The ledger: which pieces of a run failed, and why, one JSON object per line."""

from __future__ import annotations

import json
import os
from pathlib import Path


class Ledger:
    """Rows {piece, reason, detail}, appended as they happen; a later row about a piece replaces an earlier one.

    A row with reason null says that the piece has succeeded since.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def record(self, piece: str, reason: str, detail: str = "") -> None:
        """`piece` failed for `reason` (one sentence); `detail` may hold a traceback."""
        self._append({"piece": piece, "reason": reason, "detail": detail})

    def settle(self, piece: str) -> None:
        """`piece` succeeded; writes only if it is on record as failed."""
        if piece in self.failures():
            self._append({"piece": piece, "reason": None})

    def failures(self) -> dict[str, str]:
        """piece -> reason, for pieces that have not succeeded since, in the order of their first failure."""
        latest = {row["piece"]: row["reason"] for row in self.rows()}
        return {piece: reason for piece, reason in latest.items() if reason is not None}

    def rows(self) -> list[dict[str, str]]:
        """Every whole row; a last line cut short by a kill is passed over."""
        if not self.path.exists():
            return []
        rows = []
        for line in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if isinstance(row, dict) and "piece" in row and "reason" in row:
                rows.append(row)
        return rows

    def _append(self, row: dict[str, str | None]) -> None:
        line = (json.dumps(row) + "\n").encode()
        with open(self.path, "ab+") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    line = b"\n" + line  # the last writer was killed in the middle of a line
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
