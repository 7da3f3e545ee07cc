"""Records (frozen dataclasses of arrays) <-> bytes: a blob for each field, dotted names for nested records.

A record whose fields follow from each other may have two methods: `compact()` gives field -> what is written instead of
it, and the static `whole(values)` gives the values of all fields back.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, get_type_hints

import numpy as np

from radp.storage.codec import LEVEL, CodecError, decode_array, decode_strings, encode_array, encode_strings

Record = TypeVar("Record")
Blobs = Mapping[str, bytes | memoryview]
MAGIC = b"RADPBLOB"
NONE = b""


def to_bytes(record: Any, level: int = LEVEL) -> bytes:
    """The whole record, with a checksum; `level` of zstd."""
    return pack_blobs(encode_fields(record, level))


def from_bytes(kind: type[Record], data: bytes | memoryview) -> Record:
    """The inverse of `to_bytes`; CodecError if the bytes are damaged or of another record.

    A record that has `validate()` is checked, for right checksums say nothing about the values.
    """
    record = decode_fields(kind, unpack_blobs(data))
    if hasattr(record, "validate"):
        try:
            record.validate()
        except ValueError as error:
            raise CodecError(str(error)) from None
    return record


def encode_fields(record: Any, level: int = LEVEL) -> dict[str, bytes]:
    """Every field (array, str, tuple of str, None, nested dataclass) -> blob, names in declared order."""
    return {name: _encode_leaf(name, value, level) for name, value in _leaves(record, "", _compact).items()}


def decode_fields(kind: type[Record], blobs: Blobs, prefix: str = "") -> Record:
    """The inverse of `encode_fields`. A field that was unknown to the writer gets its default."""
    record_type: Any = kind
    hints, values = _hints(record_type), {}
    for field in fields(record_type):
        name, hint = prefix + field.name, hints[field.name]
        if name in blobs:
            values[field.name] = _decode_leaf(name, hint, blobs[name])
        elif is_dataclass(hint) and any(key.startswith(f"{name}.") for key in blobs):
            values[field.name] = decode_fields(hint, blobs, f"{name}.")  # type: ignore[arg-type]
        elif not _has_default(field):
            raise CodecError(f"{name} is missing")
    try:
        return kind(**(record_type.whole(values) if hasattr(kind, "whole") else values))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, MemoryError) as error:
        raise CodecError(f"not a stored {kind.__name__} ({error})") from None


def content_hash(record: Any) -> str:
    """32 hex digits that depend on every value of a dataclass and on nothing else."""
    digest = hashlib.sha256()
    for name, value in _leaves(record, "", lambda _: {}).items():
        if isinstance(value, np.ndarray):
            digest.update(f"{name}:{value.dtype.str}{value.shape}:".encode())
            digest.update(np.ascontiguousarray(value).data)
        else:
            digest.update(f"{name}={json.dumps(value)};".encode())
    return digest.hexdigest()[:32]


def _leaves(record: Any, prefix: str, instead: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    """Dotted name -> array, str, tuple of str or None; `instead` may give other values for fields of a record."""
    others = instead(record)
    leaves: dict[str, Any] = {}
    for field in fields(record):
        name, value = prefix + field.name, others.get(field.name, getattr(record, field.name))
        if is_dataclass(value):
            leaves.update(_leaves(value, f"{name}.", instead))
        else:
            leaves[name] = value
    return leaves


def _encode_leaf(name: str, value: Any, level: int) -> bytes:
    if value is None:
        return NONE
    if isinstance(value, np.ndarray):
        return encode_array(value, level)
    if isinstance(value, str):
        return encode_strings([value])
    if isinstance(value, tuple):
        return encode_strings(value)
    raise TypeError(f"{name} is a {type(value).__name__}, which has no blob")


def _decode_leaf(name: str, hint: Any, blob: bytes | memoryview) -> Any:
    """The value of a field; CodecError if it is of another type than the field."""
    if len(blob) == 0:
        if hint in (str, np.ndarray, tuple[str, ...]):
            raise CodecError(f"{name} is empty")
        return None
    if hint == tuple[str, ...]:
        return decode_strings(blob)
    if hint is str:
        strings = decode_strings(blob)
        if len(strings) != 1:
            raise CodecError(f"{name} is a list of {len(strings)} strings, expected one")
        return strings[0]
    if hint not in (np.ndarray, np.ndarray | None):
        raise CodecError(f"{name} is an array, expected a record")
    return decode_array(blob)


def _compact(record: Any) -> dict[str, Any]:
    return record.compact() if hasattr(record, "compact") else {}


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _has_default(field: Field[Any]) -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING


def pack_blobs(blobs: Blobs) -> bytes:
    """Named blobs -> one run of bytes: magic, checksum of the rest, table of names and sizes, blobs."""
    table = encode_strings([text for name, blob in blobs.items() for text in (name, str(len(blob)))])
    body = struct.pack("<I", len(table)) + table + b"".join(blobs.values())
    return MAGIC + struct.pack("<I", zlib.crc32(body)) + body


def unpack_blobs(data: bytes | memoryview) -> dict[str, memoryview]:
    """The inverse of `pack_blobs`; CodecError if the bytes are foreign, cut short or damaged."""
    view = memoryview(data)
    head = len(MAGIC) + 8
    if bytes(view[: len(MAGIC)]) != MAGIC or len(view) < head:
        raise CodecError("these are not named blobs of radp")
    checksum, size = struct.unpack_from("<II", view, len(MAGIC))
    if zlib.crc32(view[len(MAGIC) + 4 :]) != checksum:
        raise CodecError("the named blobs are cut short or damaged")
    table = decode_strings(view[head : head + size])
    blobs, position = {}, head + size
    for name, length in zip(table[::2], table[1::2]):
        if not (length.isdecimal() and position + int(length) <= len(view)):
            raise CodecError(f"the named blobs are damaged: {name!r} is said to have {length[:20]} bytes")
        blobs[name] = view[position : position + int(length)]
        position += int(length)
    return blobs
