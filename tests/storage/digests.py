"""Short digests of everything that a record holds: what tells whether old files still give the same bits."""

from __future__ import annotations

import hashlib
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def digests(record: Any, prefix: str = "") -> dict[str, str]:
    """Dotted name of each field that is no record itself -> 8 hex digits of its type, shape and bytes."""
    found: dict[str, str] = {}
    names = [field.name for field in fields(record)] if is_dataclass(record) else record._fields  # or a named tuple
    for name in names:
        value = getattr(record, name)
        found |= digests(value, f"{prefix}{name}.") if is_dataclass(value) else {prefix + name: digest(value)}
    return found


def digest(value: Any) -> str:
    if hasattr(value, "detach"):
        value = value.detach().numpy()
    if not isinstance(value, np.ndarray):
        return hashlib.sha256(repr(value).encode()).hexdigest()[:8]
    head = f"{value.dtype.str}{value.shape}".encode()
    return hashlib.sha256(head + np.ascontiguousarray(value).tobytes()).hexdigest()[:8]
