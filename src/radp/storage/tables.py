"""Rows in Arrow files that are memory-mapped: one record batch each, format and version in the metadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from radp.runs.files import atomic_path
from radp.storage.errors import StoreError


@dataclass(frozen=True)
class ArrowTable:
    """One kind of such files."""

    format: str
    version: int
    schema: pa.Schema

    def write(self, path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write rows, whole or not at all. The same rows give the same bytes."""
        schema = self.schema.with_metadata({"radp.format": self.format, "radp.version": str(self.version)})
        columns = [pa.array([row[field.name] for row in rows], field.type) for field in schema]
        with atomic_path(path) as file, pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, schema) as out:
            out.write_batch(pa.record_batch(columns, schema=schema))

    def open(self, path: Path, rows: int | None = None) -> pa.RecordBatch:
        """Memory-map a file; StoreError if it is missing, cut short, foreign, of another version, not `rows` long."""
        try:
            reader = pa.ipc.open_file(pa.memory_map(str(path)))
            metadata = {key: value.decode("utf-8", "replace") for key, value in (reader.schema.metadata or {}).items()}
            if metadata.get(b"radp.format") != self.format:
                raise StoreError(f"{path} is an Arrow file, but not one of {self.format}")
            if metadata.get(b"radp.version") != str(self.version):
                found = metadata.get(b"radp.version")
                raise StoreError(f"{path} has version {found}; this radp reads version {self.version}")
            if not reader.schema.equals(self.schema) or reader.num_record_batches != 1:
                raise StoreError(f"{path} does not have the columns of {self.format}")
            batch = reader.get_batch(0)
            batch.validate(full=True)
            if any(column.null_count for column in batch.columns):
                raise StoreError(f"{path} has rows in which something is missing")
        except FileNotFoundError:
            raise StoreError(f"{path} is missing") from None
        except (OSError, pa.ArrowException) as error:
            reason = str(error).strip().splitlines() or [type(error).__name__]
            raise StoreError(f"{path} is not a readable Arrow file, it may be cut short ({reason[0]})") from None
        if rows is not None and batch.num_rows != rows:
            raise StoreError(f"{path} holds {batch.num_rows} rows where the manifest says {rows}")
        return batch
