"""Frozen dataclasses of arrays <-> named blobs: `tracks.state` -> bytes. Nested dataclasses give dotted names.

Two things are not written in full because they follow from others: states of tracks where they are not valid (zeros),
and lane areas that are the left border and the reversed right border.
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

from radp.geometry.ragged import Polygons, Ragged
from radp.road.road_map import RoadMap
from radp.scenario.codec import LEVEL, CodecError, decode_array, decode_strings, encode_array, encode_strings
from radp.scenario.scenario import Tracks

Record = TypeVar("Record")
Blobs = Mapping[str, bytes | memoryview]
MAGIC = b"RADPBLOB"
NONE = b""


def encode_fields(record: Any, level: int = LEVEL) -> dict[str, bytes]:
    """Every field (array, str, tuple of str, None, nested dataclass) -> blob, names in declared order."""
    return {name: _encode_leaf(name, value, level) for name, value in _leaves(record, "", _derivable).items()}


def decode_fields(kind: type[Record], blobs: Blobs, prefix: str = "") -> Record:
    """The inverse of `encode_fields`. A field that was unknown to the writer gets its default."""
    record_type: Any = kind
    hints, values = _hints(record_type), {}
    for field in fields(record_type):
        name, hint = prefix + field.name, hints[field.name]
        if name in blobs:
            values[field.name] = _decode_leaf(hint, blobs[name])
        elif is_dataclass(hint) and any(key.startswith(f"{name}.") for key in blobs):
            values[field.name] = decode_fields(hint, blobs, f"{name}.")  # type: ignore[arg-type]
        elif not _has_default(field):
            raise CodecError(f"{name} is missing")
    return kind(**_whole(kind, values))


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


def _decode_leaf(hint: Any, blob: bytes | memoryview) -> Any:
    if len(blob) == 0:
        return None
    if hint is str:
        return decode_strings(blob)[0]
    if hint == tuple[str, ...]:
        return decode_strings(blob)
    return decode_array(blob)


def _derivable(record: Any) -> dict[str, Any]:
    """Field -> what is written instead of it, where the rest of the record gives it back."""
    if isinstance(record, Tracks) and _is_zero_where(record.state, ~record.valid):
        return {"state": record.state[record.valid]}
    if isinstance(record, RoadMap) and _same_areas(record.lane_polygons, _strips(record.left, record.right)):
        return {"lane_polygons": None}
    return {}


def _is_zero_where(state: np.ndarray, mask: np.ndarray) -> bool:
    """All bits zero: -0.0 would not come back."""
    return state.shape[:2] == mask.shape and not state[mask].tobytes().strip(b"\0")


def _same_areas(a: Polygons, b: Polygons) -> bool:
    pairs = ((a.offsets, b.offsets), (a.rings.offsets, b.rings.offsets), (a.rings.values, b.rings.values))
    return all(x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes() for x, y in pairs)


def _whole(kind: type, values: dict[str, Any]) -> dict[str, Any]:
    """The inverse of `_derivable`."""
    if kind is Tracks and values["state"].ndim == 2:
        packed, valid = values["state"], values["valid"]
        state = np.zeros((*valid.shape, packed.shape[-1]), dtype=packed.dtype)
        state[valid] = packed
        return {**values, "state": state}
    if kind is RoadMap and values["lane_polygons"] is None:
        return {**values, "lane_polygons": _strips(values["left"], values["right"])}
    return values


def _strips(left: Ragged, right: Ragged) -> Polygons:
    """Areas between borders: left border, then the right one backwards."""
    return Polygons.from_exteriors([np.concatenate((a, b[::-1])) for a, b in zip(left, right)])


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
        blobs[name] = view[position : position + int(length)]
        position += int(length)
    return blobs
