"""SQLite files from anywhere, opened so that nothing can be done but read their tables.

A database can hold more than rows: views and generated columns that compute without end, virtual tables of other
modules, names of other files to attach. The authoriser refuses all of it, and every answer has bounds.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from radp.sources.convert import SourceError
from radp.sources.limits import MOST_SQL_ROWS, MOST_SQL_STEPS, MOST_SQL_VALUE

FUNCTIONS = ("max", "group_concat", "coalesce")  # all that our own questions use
STEPS_BETWEEN_LOOKS = 100_000


def _allow(action: int, one: str | None, two: str | None, database: str | None, inside: str | None) -> int:
    """`inside` names the view or trigger that asks; none may."""
    reads = action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ)
    calls = action == sqlite3.SQLITE_FUNCTION and (two or "").lower() in FUNCTIONS
    return sqlite3.SQLITE_OK if inside is None and (reads or calls) else sqlite3.SQLITE_DENY


class Database:
    """A file that is open for reading; every fault becomes a SourceError of one sentence that names the file.

    `what` says what it should be: a log, a map.
    """

    def __init__(self, path: Path, what: str) -> None:
        self.path, self.what = path, what
        self._looks = 0
        if not path.is_file():
            raise SourceError(f"{path}: there is no such file")
        try:
            self._connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
            self._connection.execute("PRAGMA trusted_schema = OFF")
            self._connection.execute("PRAGMA cell_size_check = ON")
            self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_SQL_VALUE)
            self._connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            self._connection.set_authorizer(_allow)
            self._connection.set_progress_handler(self._is_too_long, STEPS_BETWEEN_LOOKS)
        except (sqlite3.Error, ValueError, OSError) as error:
            raise self._fault(error) from None

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def _is_too_long(self) -> bool:
        self._looks += 1
        return self._looks * STEPS_BETWEEN_LOOKS > MOST_SQL_STEPS

    def _fault(self, error: Exception | str) -> SourceError:
        return SourceError(f"{self.path}: not a readable {self.what} ({' '.join(str(error).split())[:200]})")

    def ask(self, query: str, values: Sequence[Any] = ()) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Names of the columns, and the rows."""
        self._looks = 0
        try:
            cursor = self._connection.execute(query, values)
            found = cursor.fetchmany(MOST_SQL_ROWS + 1)
        except (sqlite3.Error, OverflowError, ValueError, MemoryError) as error:
            raise self._fault(error) from None
        if len(found) > MOST_SQL_ROWS:
            raise self._fault(f"an answer has more than {MOST_SQL_ROWS} rows")
        return [str(column[0]) for column in cursor.description], found

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self.ask(query, values)[1]

    def tables(self) -> set[str]:
        """Names of the plain tables, in small letters: views and virtual tables are none."""
        found = self.rows("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
        return {str(name).lower() for name, sql in found if not str(sql).lstrip().upper().startswith("CREATE VIRTUAL")}

    def refuse_unless_tables(self, names: Sequence[str]) -> None:
        """SourceError if something of these names is there, but no plain table."""
        plain = self.tables()
        there = {str(name).lower() for (name,) in self.rows("SELECT name FROM sqlite_master WHERE type != 'index'")}
        false = [name for name in names if name in there and name not in plain]
        if false:
            raise self._fault(f"{false[0]} is no plain table")
