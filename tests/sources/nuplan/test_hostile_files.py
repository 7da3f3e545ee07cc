"""Databases, maps and filters that attack: views without end, functions, names of other folders, references."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from radp.sources.convert import SourceError
from radp.sources.nuplan import database
from radp.sources.nuplan.database import Database
from radp.sources.nuplan.filter import read_filter
from radp.sources.nuplan.layers import VERSIONS, epsg, find_map, read_layers, well_known
from radp.sources.nuplan.log_db import LogDb
from tests.sources.nuplan.made_files import TABLES


def made(path: Path, **instead: str) -> Path:
    """A log of empty tables, some of them replaced by other statements."""
    with sqlite3.connect(path) as connection:
        for table, columns in TABLES.items():
            connection.execute(instead.get(table, f"CREATE TABLE {table} ({columns})"))
        for name, statement in instead.items():
            if name not in TABLES:
                connection.execute(statement)
    connection.close()
    return path


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT"
HOSTILE = {
    "view without end": {"log": f"CREATE VIEW log AS {ENDLESS} x AS token, 'a' AS map_version FROM n"},
    "view of a constant": {"log": "CREATE VIEW log AS SELECT 1 AS token, 'a' AS map_version"},
    "view of another table": {
        "other": "CREATE TABLE other (token, map_version)",
        "log": "CREATE VIEW log AS SELECT * FROM other",
    },
    "computed column": {
        "log": "CREATE TABLE log (token, map_version AS (hex(zeroblob(100000000))))",
        "row": "INSERT INTO log (token) VALUES (1)",
    },
    "full text": {"log": "CREATE VIRTUAL TABLE log USING fts5(token, map_version)"},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_only_plain_tables_are_read(tmp_path: Path, name: str) -> None:
    try:
        path = made(tmp_path / "x.db", **HOSTILE[name])
    except sqlite3.OperationalError as error:
        pytest.skip(f"this SQLite cannot make it: {error}")
    with pytest.raises(SourceError, match="not a readable log") as caught, LogDb(path) as log:
        log.map_name()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "query",
    (
        "ATTACH DATABASE 'other.db' AS other",
        "SELECT load_extension('x')",
        "SELECT writefile('x', 'y')",
        "SELECT zeroblob(1000000000)",
        "PRAGMA writable_schema = ON",
        "CREATE TABLE x (y)",
        "DELETE FROM log",
        f"{ENDLESS} x FROM n",
    ),
)
def test_nothing_but_reading_is_allowed(tmp_path: Path, query: str) -> None:
    with Database(made(tmp_path / "x.db"), "log") as log, pytest.raises(SourceError, match="not a readable log"):
        log.rows(query)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.db"]


def test_an_answer_without_end_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that all match each other: a few thousand of them join to millions."""
    path = made(tmp_path / "x.db")
    with sqlite3.connect(path) as connection:
        connection.executemany("INSERT INTO track VALUES (1, 1)", [()] * 2000)
        connection.executemany("INSERT INTO category VALUES (1, 'a')", [()] * 2000)
    connection.close()
    query = "SELECT t.token, c.name FROM track AS t JOIN category AS c ON c.token = t.category_token"
    monkeypatch.setattr(database, "MOST_SQL_ROWS", 1_000_000)
    with LogDb(path) as log, pytest.raises(SourceError, match="more than 1000000 rows"):
        log.rows(query)
    monkeypatch.setattr(database, "MOST_SQL_STEPS", 1_000_000)
    with LogDb(path) as log, pytest.raises(SourceError, match="interrupted"):
        log.rows(query)


@pytest.mark.parametrize(
    "name", ("..", ".", "", "../../etc", "/etc", "a/b", "a\0b", "a\nb", "\ud800", "x" * 300, "*", "a*", "..gpkg", "é")
)
def test_names_of_maps_stay_inside_their_folder(tmp_path: Path, name: str) -> None:
    maps = tmp_path / "maps"
    (maps / "1").mkdir(parents=True)
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "map.gpkg").write_bytes(b"")
    with pytest.raises(SourceError) as caught:
        find_map(maps, name)
    assert str(caught.value).isprintable()


def test_versions_of_maps_stay_inside_their_folder(tmp_path: Path) -> None:
    (tmp_path / "city").mkdir()
    (tmp_path / "map.gpkg").write_bytes(b"")
    (tmp_path / VERSIONS).write_text('{"city": {"version": "../city/.."}}')
    with pytest.raises(SourceError, match="is no version of a map"):
        find_map(tmp_path, "city")


@pytest.mark.parametrize("text", ("+proj=pipeline +grids=/etc/passwd", "file.prj", "EPSG:1; x", "epsg:", "urn:x", "7"))
def test_only_numbered_projections_are_known(text: str) -> None:
    with pytest.raises(ValueError, match="no coordinate system"):
        epsg(text)


@pytest.mark.parametrize("blob", (b"", b"GP", b"XX\0\0\0\0\0\0", b"GP\0\x0b\0\0\0\0", b"GP\0\x21\0\0\0\0", "text", 7))
def test_broken_geometries(blob: object) -> None:
    with pytest.raises(ValueError, match="geometry"):
        well_known(blob)


def test_a_map_that_is_none(tmp_path: Path) -> None:
    pytest.importorskip("pyproj")
    (tmp_path / "x.gpkg").write_bytes(b"SQLite format 3\0" + bytes(range(256)) * 20)
    made(tmp_path / "y.gpkg", meta="CREATE TABLE meta (key, value)")
    for name in ("x.gpkg", "y.gpkg", "z.gpkg"):
        with pytest.raises(SourceError, match=rf"{name}: "):
            read_layers(tmp_path / name)


def test_a_filter_that_refers_to_itself_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    (tmp_path / "x.yaml").write_text("\n".join([*lines, "expand_scenarios: *a11"]))
    with pytest.raises(SourceError, match="refers to other parts of itself"):
        read_filter(tmp_path / "x.yaml")
