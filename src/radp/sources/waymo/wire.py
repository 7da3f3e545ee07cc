"""Protocol buffers without their compiler: TFRecord files and the fields of a message, by number."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np

from radp.sources.limits import MOST_RECORD_BYTES

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
Message = dict[int, list[int | bytes]]  # field number -> its values in order


def records(data: bytes) -> Iterator[bytes]:
    """Records of a TFRecord file: length (8), checksum (4), content, checksum (4). ValueError where it is cut short."""
    place = 0
    while place < len(data):
        if place + 12 > len(data):
            raise ValueError("the last record is cut short")
        (length,) = struct.unpack_from("<Q", data, place)
        if length > MOST_RECORD_BYTES:
            raise ValueError(f"a record has {length} bytes, expected at most {MOST_RECORD_BYTES}")
        end = place + 12 + length
        if end + 4 > len(data):
            raise ValueError("the last record is cut short")
        yield data[place + 12 : end]
        place = end + 4


def fields(data: bytes) -> Message:
    """A message as lists of raw values: varints and fixed widths as unsigned integers, the rest as bytes."""
    out: Message = {}
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        number, kind = key >> 3, key & 7
        value: int | bytes
        if kind == VARINT:
            value, place = _varint(data, place)
        elif kind in (FIXED64, FIXED32):
            width = 8 if kind == FIXED64 else 4
            value, place = int.from_bytes(data[place : place + width], "little"), place + width
        elif kind == BYTES:
            length, place = _varint(data, place)
            value, place = data[place : place + length], place + length
        else:
            raise ValueError(f"field {number} has the unknown wire type {kind}")
        if place > len(data) or number == 0:
            raise ValueError(f"field {number} is cut short")
        out.setdefault(number, []).append(value)
    return out


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while place < len(data) and shift < 70:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
    raise ValueError("a number is cut short")


def double(message: Message, number: int, default: float = 0.0) -> float:
    value = message.get(number)
    return struct.unpack("<d", _raw(value[-1], 8))[0] if value else default


def single(message: Message, number: int, default: float = 0.0) -> float:
    value = message.get(number)
    return struct.unpack("<f", _raw(value[-1], 4))[0] if value else default


def _raw(value: int | bytes, width: int) -> bytes:
    return value.to_bytes(width, "little") if isinstance(value, int) else value


def integer(message: Message, number: int, default: int = 0) -> int:
    value = message.get(number)
    if not value or not isinstance(value[-1], int):
        return default
    return value[-1] - (1 << 64) if value[-1] >= 1 << 63 else value[-1]


def integers(message: Message, number: int) -> list[int]:
    """A repeated integer, packed or not."""
    out: list[int] = []
    for value in message.get(number, ()):
        if isinstance(value, int):
            out.append(value)
            continue
        place = 0
        while place < len(value):
            one, place = _varint(value, place)
            out.append(one)
    return out


def doubles(message: Message, number: int) -> np.ndarray:
    """A repeated double, packed or not."""
    return np.frombuffer(b"".join(_raw(value, 8) for value in message.get(number, ())), dtype="<f8")


def messages(message: Message, number: int) -> list[Message]:
    """Repeated messages."""
    return [fields(value) for value in message.get(number, ()) if isinstance(value, bytes)]
