"""numpy arrays as pickles describe them, built by our own code out of shape, plain kind of number and bytes.

numpy's own way back from a pickle trusts the file: a forged dtype or an object array makes pointers of its bytes. So
the names that a pickle calls lead to the functions here, which know numbers and texts of fixed width and nothing else.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from radp.sources.limits import MOST_DIMENSIONS, MOST_TEXT_WIDTH

CODE = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248]|[US]\d{1,4})")
ORDERS = ("<", ">", "|", "=")
BY_CLASS = {  # numpy.dtypes
    "BoolDType": "b1", "Int8DType": "i1", "Int16DType": "i2", "Int32DType": "i4", "Int64DType": "i8",
    "UInt8DType": "u1", "UInt16DType": "u2", "UInt32DType": "u4", "UInt64DType": "u8",
    "Float16DType": "f2", "Float32DType": "f4", "Float64DType": "f8",
}  # fmt: skip


class PickleFault(ValueError):
    """What is wrong with a pickle, in half a sentence."""


@dataclass(eq=False)
class Unfilled:
    """What a call made, waiting for the state that the pickle brings next; `places` are its numbers in the memo."""

    places: list[int] = field(default_factory=list)

    def filled(self, state: Any) -> Any:
        raise NotImplementedError


@dataclass(eq=False)
class PlainKind(Unfilled):
    """A plain kind of number or text, in numpy's code without the byte order."""

    code: str = "f8"
    order: str = "<"

    def filled(self, state: Any) -> PlainKind:
        """State of a dtype: version, byte order, and fields that only structured ones have."""
        if not isinstance(state, tuple) or len(state) < 5 or state[1] not in ORDERS or any(state[2:5]):
            raise PickleFault("it holds an array of a structured or damaged dtype")
        return PlainKind([], self.code, state[1])

    def read(self, raw: bytes) -> np.ndarray:
        """(n,) the values that bytes spell; n follows from their number."""
        dtype = np.dtype(("<" if self.order == "=" else self.order) + self.code)
        if dtype.itemsize == 0 or len(raw) % dtype.itemsize:
            raise PickleFault(f"an array of {self.code} has {len(raw)} bytes")
        if self.code == "b1":
            return np.frombuffer(raw, np.uint8) != 0  # other bytes than 0 and 1 would break numpy's counting
        values = np.frombuffer(raw, dtype)
        if dtype.kind == "U" and (np.frombuffer(raw, dtype.byteorder.replace("=", "<") + "u4") > 0x10FFFF).any():
            raise PickleFault("a text in an array holds what is no character")
        return values


@dataclass(eq=False)
class EmptyArray(Unfilled):
    """What numpy's `_reconstruct` stands for."""

    def filled(self, state: Any) -> np.ndarray:
        """State of an array: version, shape, dtype, whether in Fortran order, bytes."""
        if not isinstance(state, tuple) or len(state) != 5:
            raise PickleFault("an array has a damaged state")
        return shaped(state[4], state[2], state[1], "F" if state[3] else "C")


def shaped(raw: Any, kind: Any, shape: Any, order: Any) -> np.ndarray:
    """The array of a shape whose bytes are `raw`: neither more of them nor fewer."""
    if not isinstance(kind, PlainKind) or not isinstance(raw, (bytes, bytearray)) or order not in ("C", "F"):
        raise PickleFault("it holds an array of something else than plain numbers or text")
    sizes = shape if isinstance(shape, tuple) else (shape,)
    if len(sizes) > MOST_DIMENSIONS or not all(type(size) is int and 0 <= size < 1 << 40 for size in sizes):
        raise PickleFault("an array has a damaged shape")
    values = kind.read(bytes(raw))
    if math.prod(sizes) != len(values):
        raise PickleFault(f"an array of shape {sizes} has {len(values)} values")
    return values.reshape(sizes, order=order)


def dtype(code: Any, *rest: Any) -> PlainKind:
    """For numpy.dtype; `rest` are flags that change nothing for plain kinds."""
    text = code.decode("ascii", "replace") if isinstance(code, bytes) else code
    found = CODE.fullmatch(text) if isinstance(text, str) else None
    if found is None or (text[-1].isdigit() and found[1][0] in "US" and int(found[1][1:]) > MOST_TEXT_WIDTH):
        shown = repr(text)[:40]
        raise PickleFault(f"it holds an array of dtype {shown}; only plain numbers and text are read")
    return PlainKind([], found[1])


def dtype_class(name: str) -> Callable[[], PlainKind]:
    """For the classes of numpy.dtypes, which are called without arguments."""
    return lambda: PlainKind([], BY_CLASS[name])


def reconstruct(array: Any, shape: Any = None, code: Any = None) -> EmptyArray:
    """For numpy's `_reconstruct(ndarray, (0,), b'b')`."""
    if array is not ndarray:
        raise PickleFault("it rebuilds something else than an array")
    return EmptyArray()


def ndarray(*_: Any) -> Any:
    """Stands for the class numpy.ndarray, which pickles name but never call."""
    raise PickleFault("it calls numpy.ndarray, which plain data do not need")


def scalar(kind: Any, raw: Any = None) -> np.generic:
    """For numpy's `scalar(dtype, bytes)`."""
    values = shaped(raw, kind, (1,), "C")
    return values[0]


def frombuffer(raw: Any, kind: Any, shape: Any, order: Any) -> np.ndarray:
    """For numpy's `_frombuffer`, by which newer pickles hold arrays."""
    return shaped(raw, kind, shape, order)
