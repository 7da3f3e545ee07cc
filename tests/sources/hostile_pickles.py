"""Pickles that attack: each is small, and asks for memory, time, code, or numpy's trust in its bytes."""

from __future__ import annotations

import pickle
import struct
from typing import Any

import numpy as np


class _Calls:
    """Pickles as a call, with a state for the result if there is one."""

    def __init__(self, function: Any, *given: Any, state: Any = None) -> None:
        self.parts = (function, given) if state is None else (function, given, state)

    def __reduce__(self) -> tuple[Any, ...]:
        return self.parts


def _array(shape: Any, dtype: Any, raw: Any, fortran: bool = False) -> bytes:
    rebuild = np._core.multiarray._reconstruct
    return pickle.dumps({"x": _Calls(rebuild, np.ndarray, (0,), b"b", state=(1, shape, dtype, fortran, raw))})


def _dtype(code: str, *state: Any) -> _Calls:
    return _Calls(np.dtype, code, False, True, state=state or None)


def _laughs(levels: int, each: int) -> list[Any]:
    value: list[Any] = [0.0] * each
    for _ in range(levels):
        value = [value] * each
    return value


def _nested_key(depth: int) -> bytes:
    """A dict whose key is a tuple in a tuple in a tuple: hashing it takes as many frames of the C stack."""
    return b"}(" + b")" + b"\x85" * depth + b"K\x00u."


_MODULUS = (1 << 61) - 1  # its multiples share one hash
_REBUILT = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tC\x01btR"
PLAIN = _dtype("f8", 3, "<", None, None, None, -1, -1, 0)
OBJECTS = _dtype("O8", 3, "|", None, None, None, -1, -1, 63)
HOSTILE: dict[str, bytes] = {
    "object array over bytes": _array((4,), OBJECTS, b"AAAAAAAA" * 4),
    "object array over a list": _array((2,), OBJECTS, [1, 2]),
    "object array": pickle.dumps({"x": np.array([{}, None], dtype=object)}),
    "structured dtype": pickle.dumps({"x": np.zeros(2, dtype=[("a", "f8"), ("b", "O")])}),
    "dtype with forged fields": _array(
        (1,), _dtype("V8", 3, "|", None, ("a",), {"a": (np.dtype("O"), 0)}, 8, 1, 27), b"AAAAAAAA"
    ),
    "dtype with forged size": _array((1,), _dtype("f8", 3, "<", ("a",), None, None, 1 << 30, 1, 63), b"AAAAAAAA"),
    "scalar of an object": pickle.dumps({"x": _Calls(np._core.multiarray.scalar, OBJECTS, b"AAAAAAAA")}),
    "more values than bytes": _array((1 << 40,), PLAIN, b"12345678"),
    "negative shape": _array((-1,), PLAIN, b"12345678"),
    "shape that wraps around": _array((1 << 32, 1 << 32), PLAIN, b""),
    "a hundred dimensions": _array((1,) * 100, PLAIN, b"12345678"),
    "state of another kind": _array("ab", PLAIN, 7),
    "no characters": _array((1,), _dtype("U1", 3, "<", None, None, None, 4, 4, 8), b"\xff\xff\xff\xff"),
    "call of ndarray": b"cnumpy\nndarray\n(K\x05tR.",
    "array never filled": b"}(X\x01\x00\x00\x00x" + _REBUILT + b"u.",
    "bytes of 4 GB": b"\x8e" + struct.pack("<Q", 4 << 30) + b"x.",
    "bytearray of 1 TB": b"\x96" + struct.pack("<Q", 1 << 40) + b"x.",
    "bytearray by number": b"cbuiltins\nbytearray\n(J\xff\xff\xff\x7ftR.",
    "memo of 32 GB": b"Nr\xff\xff\xff\xff}.",
    "integer of a megabyte": b"\x8b" + struct.pack("<I", 1 << 20) + b"\x01" * (1 << 20) + b".",
    "digits": b"I" + b"9" * 100_000 + b"\n.",
    "laughs": pickle.dumps({"tracks": _laughs(12, 12)}),
    "laughs of text": pickle.dumps({"x": [["a" * 100_000] * 10_000] * 10}),
    "list in itself": b"](h\x00e.".replace(b"](", b"]\x94("),
    "deep lists": b"]" * 100_000 + b"a" * 99_999 + b".",
    "deep tuples": b")" + b"\x85" * 200_000 + b".",
    "deep key": _nested_key(200_000),
    "deep set": b"\x8f(" + b")" + b"\x85" * 200_000 + b"\x90.",
    "one hash": b"}(" + b"".join(b"\x8a\x10" + (_MODULUS * k).to_bytes(16, "little") + b"N" for k in (1, 2, 3)) + b"u.",
    "copies": b"(X\x00\x00\x01\x00" + b"a" * 65_536 + b"\x940" + b"c_codecs\nencode\nh\x00\x85R" * 9000 + b"t.",
    "persistent id": b"Pos.system\n.",
    "extension": b"\x82\x01.",
    "instance": b"(ios\nsystem\n.",
    "new object": b"cbuiltins\nlist\n)\x81.",
    "attributes of a dict": b"}}(X\x01\x00\x00\x00aNub.",
    "empty": b"",
    "no stop": b"}",
    "empty stack": b".",
    "marks": b"(" * 1000 + b".",
    "nothing below": b"\x87.",
    "unknown memo": b"h\x05.",
    "a number": b"K\x05.",
}  # fmt: skip
