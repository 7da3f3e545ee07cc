"""Tables that others wrote (parquet, feather): bounded, checked, and read where a crash costs nothing.

pyarrow ends its process on some parquet files whose metadata contradict themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as compute

from radp.runs.apart import apart

FEATHER = ".feather"
MOST_BATCHES = 10_000
ROWS_AT_ONCE = 20_000
TEXT_TYPES = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


def read_foreign_table(path: Path, columns: Sequence[str], most_rows: int, most_bytes: int) -> pa.Table:
    """Those of the columns that a table has, in their order; ValueError where it is broken or too large.

    Texts of a parquet file may stay in dictionaries.
    """
    return apart(_Wanted(tuple(columns), most_rows, most_bytes), path)


@dataclass(frozen=True)
class _Wanted:
    """What to read of a table, and the most that may come out."""

    columns: tuple[str, ...]
    rows: int
    bytes: int

    def __call__(self, path: Path) -> pa.Table:
        if path.stat().st_size > self.bytes:
            raise ValueError(f"it is larger than {self.bytes} bytes")
        return self._feather(path) if path.suffix == FEATHER else self._parquet(path)

    def _feather(self, path: Path) -> pa.Table:
        """Arrow's own format; its rows are in its batches, which come from the disk when they are asked for."""
        reader = pa.ipc.open_file(pa.memory_map(str(path)))
        if reader.num_record_batches > MOST_BATCHES:
            raise ValueError(f"it has {reader.num_record_batches} batches")
        names = [name for name in self.columns if name in reader.schema.names]
        batches = (reader.get_batch(i).select(names) for i in range(reader.num_record_batches))
        return pa.Table.from_batches(self._bounded(batches), _part(reader.schema, names))

    def _parquet(self, path: Path) -> pa.Table:
        """Texts stay in their dictionary until it is known how much they would fill: a page that names one long text
        a million times is small."""
        import pyarrow.parquet as parquet

        schema = parquet.read_schema(path)
        names = [name for name in self.columns if name in schema.names]
        texts = [name for name in names if schema.field(name).type in TEXT_TYPES]
        file = parquet.ParquetFile(path, read_dictionary=texts)
        groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
        self._check(file.metadata.num_rows, sum(group.total_byte_size for group in groups))
        batches = file.iter_batches(batch_size=ROWS_AT_ONCE, columns=names)
        return pa.Table.from_batches(self._bounded(batches), _part(file.schema_arrow, names))

    def _bounded(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = size = 0
        for batch in batches:
            batch.validate(full=True)  # lengths and offsets that point outside would crash what reads them
            rows, size = rows + batch.num_rows, size + sum(_filled(column) for column in batch.columns)
            self._check(rows, size)
            yield batch

    def _check(self, rows: int, size: int) -> None:
        if rows > self.rows:
            raise ValueError(f"it has {rows} rows, expected at most {self.rows}")
        if size > self.bytes:
            raise ValueError(f"it would fill {size} bytes, expected at most {self.bytes}")


def _part(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    return pa.schema([schema.field(name) for name in names])


def _filled(column: pa.Array) -> int:
    """Bytes that the values of a column would fill, at most."""
    if not isinstance(column, pa.DictionaryArray):
        return column.nbytes
    return len(column) * (compute.max(compute.binary_length(column.dictionary)).as_py() or 0)


def plain_column(table: pa.Table, name: str) -> pa.ChunkedArray:
    """A column without a dictionary."""
    column = table[name]
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
