"""Sound files made unsound: by bytes, by the numbers in them, and by the values that they hold."""

from __future__ import annotations

import copy
import gzip
import io
import json
import lzma
import pickle
import random
import re
import struct
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

INTEGERS = (0, 1, -1, 127, 255, 256, 2**15, 2**16, 2**31 - 1, -(2**31), 2**32 - 1, 2**40, 2**62, 2**63 - 1, -(2**63))
FLOATS = (0.0, -0.0, 1e-308, 1e308, -1e308, 9e8, 4e7, float("nan"), float("inf"), -float("inf"))
NASTY: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 3, 2**31, 2**40, 2**63, 10**30, 0.5, 1e-300, 1e308, -1e308, 9e8, "", "a", "x" * 300,
    "..", "../../etc/passwd", "/", "a\0b", "\x1b[2J", "\ud800", "NaN", "1e999", "1", [], {}, [[]], [None], [0], {"": 0},
    [[], {}], [0.0] * 1000, [[0.0, 0.0]] * 50,
)  # fmt: skip
NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
TEXTS = (
    b"-1",
    b"0",
    b"1e308",
    b"-1e308",
    b"9e8",
    b"40000000",
    b"1e999",
    b"NaN",
    b"null",
    b'"a"',
    b"[]",
    b"{}",
    b"0.000001",
)


def mutate(name: str, raw: bytes, chance: random.Random) -> bytes:
    """Another content for a file, by what its name says of its format, or by bytes alone."""
    if name.endswith(".xz"):
        plain = name.removesuffix(".xz")
        if chance.random() < 0.1:
            return by_bytes(raw, chance)
        return lzma.compress(mutate(plain, lzma.decompress(raw), chance), preset=0)
    if name.endswith(".gz"):
        if chance.random() < 0.1:
            return by_bytes(raw, chance)
        return gzip.compress(mutate(name.removesuffix(".gz"), gzip.decompress(raw), chance), 1)
    kinds: list[Callable[[bytes, random.Random], bytes]] = [by_bytes]
    if name.endswith((".json", ".jsonl")):
        kinds += [by_json, by_json, by_numbers]
    elif name.endswith((".xml", ".yaml", ".csv")):
        kinds += [by_numbers, by_numbers]
    elif name.endswith(".pkl"):
        kinds += [by_pickle, by_pickle]
    elif name.endswith(".msgpack"):
        kinds += [by_packed, by_packed]
    elif name.endswith(".npz"):
        kinds += [by_arrays, by_arrays]
    else:
        kinds += [by_words]
    try:
        return chance.choice(kinds)(raw, chance)
    except (ValueError, RecursionError, OverflowError):  # the values fit no file of this format
        return by_bytes(raw, chance)


def by_bytes(raw: bytes, chance: random.Random) -> bytes:
    """One to six of: flip, overwrite, cut out, repeat, insert, zero, swap, cut off."""
    data = bytearray(raw)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 6))):
        size = len(data)
        if not size:
            return bytes(chance.randbytes(chance.randrange(40)))
        first = chance.randrange(size)
        last = min(size, first + chance.choice((1, 2, 4, 8, 64, 1024)))
        way = chance.randrange(8)
        if way == 0:
            data[first] ^= 1 << chance.randrange(8)
        elif way == 1:
            data[first:last] = chance.randbytes(last - first)
        elif way == 2:
            del data[first:last]
        elif way == 3:
            data[first:first] = data[first:last] * chance.choice((1, 2, 50))
        elif way == 4:
            data[first:first] = chance.randbytes(chance.choice((1, 4, 16)))
        elif way == 5:
            data[first:last] = bytes(last - first) if chance.random() < 0.5 else b"\xff" * (last - first)
        elif way == 6:
            other = chance.randrange(size)
            data[first:last] = data[other : other + last - first]
        else:
            del data[first:]
    return bytes(data)


def by_words(raw: bytes, chance: random.Random) -> bytes:
    """Integers or floats of some width written over what is there: lengths, offsets, counts."""
    data = bytearray(raw)
    for _ in range(chance.choice((1, 1, 2, 4))):
        code = chance.choice("BHIQdf")
        value: Any = chance.choice(FLOATS if code in "df" else INTEGERS)
        try:
            word = struct.pack(f"<{code}", value if code in "df" else value % (1 << 8 * struct.calcsize(code)))
        except OverflowError:
            continue
        place = chance.randrange(max(1, len(data) - len(word)))
        if chance.random() < 0.5:  # where formats have their heads
            place = min(place, chance.randrange(256))
        data[place : place + len(word)] = word
    return bytes(data)


def by_numbers(raw: bytes, chance: random.Random) -> bytes:
    """One of the numbers that a text spells replaced by another."""
    one = NUMBER.search(raw, chance.randrange(len(raw) + 1)) or NUMBER.search(raw)
    if one is None:
        return by_bytes(raw, chance)
    return raw[: one.start()] + chance.choice(TEXTS) + raw[one.end() :]


def by_json(raw: bytes, chance: random.Random) -> bytes:
    """One value of a document (or of one of its lines) replaced, removed or repeated."""
    lines = raw.split(b"\n") if raw.count(b"\n") and not raw.lstrip().startswith((b"{\n", b"[\n")) else [raw]
    place = chance.randrange(len(lines))
    data = json.loads(lines[place] or b"{}")
    lines[place] = json.dumps(changed(data, chance)).encode()
    return b"\n".join(lines)


def by_pickle(raw: bytes, chance: random.Random) -> bytes:
    """One value of what our own pickle holds replaced."""
    return pickle.dumps(changed(pickle.loads(raw), chance), protocol=chance.randrange(6))


def by_packed(raw: bytes, chance: random.Random) -> bytes:
    """The pickle in a block of msgpack changed by bytes or words, with a length that fits it."""
    inner = chance.choice((by_bytes, by_words))(raw[5:], chance)
    return raw[:1] + len(inner).to_bytes(4, "big") + inner


def by_arrays(raw: bytes, chance: random.Random) -> bytes:
    """One array of an .npz replaced, or its head rewritten."""
    with np.load(io.BytesIO(raw)) as arrays:
        content = {name: arrays[name] for name in arrays.files}
    name = chance.choice(list(content))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", chance.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for key, array in content.items():
            part = io.BytesIO()
            np.save(part, changed_array(array, chance) if key == name else array, allow_pickle=True)
            body = part.getvalue()
            if key == name and chance.random() < 0.4:
                body = by_numbers(body[:128], chance) + body[128:]
            archive.writestr(f"{key}.npy", body)
    return out.getvalue()


def changed(data: Any, chance: random.Random) -> Any:
    """Nested containers in which one value is made another."""
    at, way = data, []
    while isinstance(at, (dict, list)) and at and (not way or chance.random() < 0.9):
        key = chance.choice(list(at)) if isinstance(at, dict) else chance.randrange(len(at))
        way.append((at, key))
        at = at[key]
    if not way:
        return chance.choice(NASTY)
    holder, key = way[-1]
    how = chance.random()
    if how < 0.1:
        del holder[key]
    elif how < 0.2 and isinstance(holder, list):
        holder[key:key] = [holder[key]] * chance.choice((1, 2, 100))
    elif isinstance(at, np.ndarray):
        holder[key] = changed_array(at, chance)
    else:
        holder[key] = copy.deepcopy(chance.choice(NASTY))
    return data


def changed_array(array: np.ndarray, chance: random.Random) -> Any:
    """Another type, another shape, or other values."""
    way = chance.randrange(8)
    flat = np.array(array).ravel()
    if way == 0:
        return (
            array.astype(chance.choice(("f2", "f4", "i1", "i8", "u1", "U3", "S2", "O", "c16"))) if array.size else array
        )
    if way == 1:
        return flat[: chance.randrange(flat.size + 1)]
    if way == 2:
        return array[None] if chance.random() < 0.5 else array.T
    if way == 3:
        return np.array(chance.choice(NASTY[:14]), dtype=object if chance.random() < 0.2 else None)
    if way == 4:
        return np.concatenate((array, array)) if array.ndim else array
    if not flat.size or flat.dtype.kind not in "fiub":
        return np.zeros((0, *array.shape[1:]), array.dtype) if array.ndim else array
    with np.errstate(all="ignore"):
        values = np.array(chance.choice(FLOATS if flat.dtype.kind == "f" else INTEGERS)).astype(flat.dtype)
    flat[chance.randrange(flat.size) :: chance.choice((1, 7, flat.size))] = values
    return flat.reshape(array.shape)
