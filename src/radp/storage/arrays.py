"""Named arrays in one file that is memory-mapped: the safetensors layout, which anyone can read."""

from __future__ import annotations

import json
import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import save_file

from radp.runs.errors import LostWrite
from radp.runs.files import atomic_path
from radp.runs.json_text import json_text
from radp.storage.errors import StoreError

DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "u1", "BOOL": "?"}
NOTE = "radp"  # the one metadata key: several would be written in an order that changes from run to run


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray], note: Any = None) -> None:
    """Write all arrays and a JSON-able note; the same input gives the same bytes, and the file is whole or absent."""
    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    try:
        with atomic_path(path) as temporary:
            save_file(whole, temporary, metadata={NOTE: json_text(note, indent=None, sort_keys=True)})
    except SafetensorError as error:
        raise LostWrite(f"{path} cannot be written ({error})") from None


def map_arrays(path: Path) -> tuple[dict[str, np.ndarray], Any]:
    """Arrays that come from the disk when they are touched, and the note. Writing to them never reaches the file."""
    try:
        with path.open("rb") as file:
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        head = 8 + int.from_bytes(memory[:8], "little")
        entries = json.loads(memory[8:head])
        note = json.loads(entries.pop("__metadata__", {}).get(NOTE, "null"))
        return {name: _array(memory, head, entry) for name, entry in entries.items()}, note
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise StoreError(f"{path}: not a readable array file ({error})") from None


def _array(memory: mmap.mmap, head: int, entry: dict[str, Any]) -> np.ndarray:
    dtype, (first, last) = np.dtype(DTYPES[entry["dtype"]]), entry["data_offsets"]
    if not 0 <= first <= last <= len(memory) - head:
        raise ValueError("it ends too early")
    flat = np.frombuffer(memory, dtype, (last - first) // dtype.itemsize, head + first)
    if flat.dtype == np.bool_ and flat.size and flat.view(np.uint8).max() > 1:
        raise ValueError("a truth value is neither 0 nor 1")  # compiled code takes such a value for both
    return flat.reshape(entry["shape"])
