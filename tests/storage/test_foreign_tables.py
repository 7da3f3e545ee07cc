"""Tables that others wrote: what comes out, and that none takes the reader's process down."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from radp.runs.errors import BadInput
from radp.sources.argoverse.source import read_forecasting
from radp.sources.convert import SourceError
from radp.sources.nuplan.results import read_results
from radp.storage import foreign_tables
from radp.storage.foreign_tables import plain_column, read_foreign_table
from tests.sources import made_formats

MADE = pa.table({"name": ["a", "b", "a"], "x": [1.0, 2.0, 3.0], "list": [[1], [2], [3]]})


def written(folder: Path, kind: str, table: pa.Table = MADE) -> Path:
    path = folder / f"made.{kind}"
    (pa.parquet.write_table if kind == "parquet" else pa.feather.write_feather)(table, path)
    return path


@pytest.mark.parametrize("kind", ("parquet", "feather"))
def test_wanted_columns_come_in_their_order(tmp_path: Path, kind: str) -> None:
    table = read_foreign_table(written(tmp_path, kind), ("x", "missing", "name"), 3, 1 << 20)
    assert table.column_names == ["x", "name"] and table["x"].to_pylist() == [1.0, 2.0, 3.0]
    assert (
        plain_column(table, "name").to_pylist() == ["a", "b", "a"] and plain_column(table, "name").type == pa.string()
    )


@pytest.mark.parametrize("kind", ("parquet", "feather"))
def test_what_is_too_large_cut_or_foreign_is_refused(tmp_path: Path, kind: str) -> None:
    path = written(tmp_path, kind)
    with pytest.raises(ValueError, match="it has 3 rows, expected at most 2"):
        read_foreign_table(path, ("x",), 2, 1 << 20)
    with pytest.raises(ValueError, match="it is larger than 100 bytes"):
        read_foreign_table(path, ("x",), 3, 100)
    long = written(tmp_path, kind, pa.table({"name": ["x" * 100] * 5000}))
    with pytest.raises(ValueError, match=r"it would fill [0-9]+ bytes, expected at most 100000"):
        read_foreign_table(long, ("name",), 5000, 100_000)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError):
        read_foreign_table(path, ("x",), 3, 1 << 20)
    with pytest.raises(ValueError, match="No such file"):
        read_foreign_table(tmp_path / f"none.{kind}", ("x",), 3, 1 << 20)


def contradictory(path: Path) -> Path:
    """A parquet file whose metadata call a column of texts one of booleans, but count its bytes of text: pyarrow throws
    where nothing can catch it, and its process ends."""
    raw = path.read_bytes()
    head = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")
    texts = b"\x15\x0c\x25"  # thrift: the type of a column in the schema, a byte array; then its repetition
    assert texts in raw[head:]
    path.write_bytes(raw[:head] + raw[head:].replace(texts, b"\x15\x00\x25"))
    return path


def test_metadata_that_end_the_process_of_their_reader_cost_one_sentence(tmp_path: Path) -> None:
    path = contradictory(written(tmp_path, "parquet"))
    with pytest.raises(ValueError):
        read_foreign_table(path, ("name", "x"), 3, 1 << 20)
    assert read_foreign_table(written(tmp_path, "parquet"), ("x",), 3, 1 << 20).num_rows == 3
    log = contradictory(made_formats.write_forecasting(tmp_path))
    with pytest.raises(SourceError, match=r"scenario_made\.parquet: the file cannot be read"):
        read_forecasting(log)


def test_a_score_table_that_ends_its_process_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever pyarrow does to its process, `radp score` says one sentence."""
    path = written(tmp_path, "parquet")
    monkeypatch.setattr(foreign_tables, "_Wanted", lambda *_: ends_its_process)
    with pytest.raises(BadInput, match=r"not a readable table \(the worker process crashed"):
        read_results(path)


def ends_its_process(_: Path) -> None:
    os.abort()
