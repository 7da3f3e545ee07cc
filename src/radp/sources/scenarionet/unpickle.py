"""Pickles without their danger: plain containers, numbers, strings and arrays, read by a small machine of our own.

Python's unpickler allocates what a file asks for and hands its bytes to numpy. This machine knows the instructions that
plain data need, counts what it makes, and calls nothing but the few functions in CALLS.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from radp.sources.convert import SourceError
from radp.sources.limits import MOST_BYTES, MOST_KEY, MOST_PICKLE_DEPTH, MOST_PICKLE_INTEGER, MOST_PICKLE_STEPS
from radp.sources.log_files import read_bytes
from radp.sources.scenarionet import plain_arrays as arrays
from radp.sources.scenarionet.plain_arrays import PickleFault, Unfilled

OLD_MODULES = {"__builtin__": "builtins", "numpy.core": "numpy._core"}
LEAVES = (str, int, float, bool, type(None), bytes, bytearray, np.generic)
NUMBERS = frozenset((int, float, bool, type(None)))
UNFILLED = frozenset((arrays.PlainKind, arrays.EmptyArray))
CUT_SHORT = "it is cut short"
MEMOIZE, BINFLOAT, BINGET, LONG_BINGET, SHORT_BINUNICODE, BININT1, MARK, EMPTY_LIST, STOP = b"\x94Ghj\x8cK(]."
_double, _unsigned = struct.Struct(">d").unpack_from, struct.Struct("<I").unpack_from


def _encode(text: Any, encoding: Any = "latin1") -> bytes:
    """How the bytes of old protocols are written."""
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise PickleFault("it encodes something in a way that plain data do not need")
    return text.encode("latin1")


def _collect(kind: type) -> Callable[..., Any]:
    def make(values: Any = ()) -> Any:
        if not isinstance(values, (list, tuple)):
            raise PickleFault(f"it makes a {kind.__name__} of a {type(values).__name__}")
        return kind(_as_key(value) for value in values) if kind in (set, frozenset) else kind(values)

    return make


def _bytes(kind: type) -> Callable[..., Any]:
    def make(values: Any = b"", encoding: Any = "latin1") -> Any:
        raw = _encode(values, encoding) if isinstance(values, str) else values
        if not isinstance(raw, (bytes, bytearray)):
            raise PickleFault(f"it makes a {kind.__name__} of a {type(values).__name__}")
        return kind(raw)

    return make


CALLS: dict[tuple[str, str], Callable[..., Any]] = {
    **{("builtins", kind.__name__): _collect(kind) for kind in (list, tuple, set, frozenset)},
    **{("builtins", kind.__name__): _bytes(kind) for kind in (bytes, bytearray)},
    ("builtins", "dict"): dict,
    ("collections", "OrderedDict"): OrderedDict,
    ("_codecs", "encode"): _encode,
    ("numpy", "ndarray"): arrays.ndarray,
    ("numpy", "dtype"): arrays.dtype,
    ("numpy._core.multiarray", "_reconstruct"): arrays.reconstruct,
    ("numpy._core.multiarray", "scalar"): arrays.scalar,
    ("numpy._core.numeric", "_frombuffer"): arrays.frombuffer,
    **{("numpy.dtypes", name): arrays.dtype_class(name) for name in arrays.BY_CLASS},
}
FUNCTIONS = {id(function) for function in CALLS.values()}


def _as_key(value: Any) -> Any:
    """A key of a dict or a member of a set: nested ones would be hashed to any depth, others to chosen hashes."""
    if type(value) not in (str, int, bool, bytes, type(None)) or (type(value) is int and abs(value) > MOST_KEY):
        raise PickleFault(f"a {type(value).__name__} is the key of a dict or in a set")
    return value


class PickleMachine:
    """Runs one pickle; `load` gives what it holds."""

    def __init__(self, data: bytes) -> None:
        self.data, self.place = data, 0
        self.stack: list[Any] = []
        self.outer: list[list[Any]] = []  # stacks below the marks
        self.memo: dict[int, Any] = {}
        self.made = 0  # bytes that calls made, which the file does not hold

    def load(self) -> Any:
        """The instructions that make up nine tenths of a log are done here, the others by their handlers."""
        data, memo, stack, place, end = self.data, self.memo, self.stack, 0, len(self.data)
        for _ in range(MOST_PICKLE_STEPS):
            code = data[place]
            place += 1
            if code == MEMOIZE and type(stack[-1]) not in UNFILLED:
                memo[len(memo)] = stack[-1]
            elif code == BINFLOAT:
                stack.append(_double(data, place)[0])
                place += 8
            elif code == BINGET:
                stack.append(memo[data[place]])
                place += 1
            elif code == LONG_BINGET:
                stack.append(memo[_unsigned(data, place)[0]])
                place += 4
            elif code == SHORT_BINUNICODE:
                first, place = place + 1, place + 1 + data[place]
                if place > end:
                    raise PickleFault(CUT_SHORT)
                stack.append(str(data[first:place], "utf-8"))
            elif code == BININT1:
                stack.append(data[place])
                place += 1
            elif code == MARK:
                self.outer.append(stack)
                stack = []
            elif code == EMPTY_LIST:
                stack.append([])
            elif code == STOP:
                return stack.pop()
            else:
                handler = HANDLERS[code]
                if handler is None:
                    raise PickleFault(f"it holds the instruction {bytes([code])!r}, which plain data do not need")
                self.place, self.stack = place, stack
                handler(self)
                place, stack = self.place, self.stack
        raise PickleFault(f"it takes more than {MOST_PICKLE_STEPS} steps")

    def take(self, count: int) -> bytes:
        first, self.place = self.place, self.place + count
        if self.place > len(self.data):
            raise PickleFault(CUT_SHORT)
        return self.data[first : self.place]

    def counted(self, width: int) -> bytes:
        """As many bytes as the number before them says."""
        return self.take(int.from_bytes(self.take(width), "little"))

    def line(self) -> str:
        end = self.data.find(b"\n", self.place)
        if end < 0:
            raise PickleFault(CUT_SHORT)
        return self.take(end + 1 - self.place)[:-1].decode("latin1")

    def since_mark(self) -> list[Any]:
        found, self.stack = self.stack, self.outer.pop()
        return found

    def remember(self, number: int) -> None:
        value = self.stack[-1]
        if not 0 <= number < MOST_PICKLE_STEPS:
            raise PickleFault(f"it remembers something by the number {number}")
        if isinstance(value, Unfilled):
            value.places.append(number)
        self.memo[number] = value

    def name(self, module: str, name: str) -> None:
        old = next((before for before in OLD_MODULES if module == before or module.startswith(f"{before}.")), None)
        known = CALLS.get((module if old is None else OLD_MODULES[old] + module[len(old) :], name))
        if known is None:
            raise PickleFault(f"it asks for {module}.{name}, which plain data do not need")
        self.stack.append(known)

    def call(self) -> None:
        given = self.stack.pop()
        function = self.stack[-1]
        if id(function) not in FUNCTIONS or type(given) is not tuple or (function in (dict, OrderedDict) and given):
            raise PickleFault("it calls something that is no function of plain data")
        self.made += 64 + sum(len(value) for value in given if isinstance(value, (str, bytes, bytearray, list, tuple)))
        if self.made > MOST_BYTES:
            raise PickleFault(f"it makes more than {MOST_BYTES} bytes")
        self.stack[-1] = function(*given)

    def fill(self) -> None:
        state, target = self.stack.pop(), self.stack[-1]
        if not isinstance(target, Unfilled):
            raise PickleFault(f"it changes the inside of a {type(target).__name__}")
        self.stack[-1] = whole = target.filled(state)
        for number in target.places:
            self.memo[number] = whole
        if isinstance(whole, Unfilled):
            whole.places.extend(target.places)

    def add(self, kind: type, values: list[Any]) -> None:
        target: Any = self.stack[-1]
        if type(target) not in (kind, OrderedDict if kind is dict else kind):
            raise PickleFault(f"it adds to a {type(target).__name__}")
        if kind is dict:
            target.update(zip(map(_as_key, values[::2]), values[1::2], strict=True))
        elif kind is list:
            target.extend(values)
        else:
            target.update(map(_as_key, values))


Handler = Callable[[PickleMachine], Any]


def _push(make: Callable[[PickleMachine], Any]) -> Handler:
    return lambda m: m.stack.append(make(m))


def _last(count: int) -> Handler:
    """A tuple of the last values."""

    def handle(m: PickleMachine) -> None:
        if len(m.stack) < count:
            raise IndexError
        m.stack[-count:] = [tuple(m.stack[-count:])]

    return handle


def _marked(make: Callable[[list[Any]], Any]) -> Handler:
    def handle(m: PickleMachine) -> None:
        found = m.since_mark()
        m.stack.append(make(found))

    return handle


def _add(kind: type, count: int = 0) -> Handler:
    """Add the last `count` values, or those since the mark, to the container below them."""

    def handle(m: PickleMachine) -> None:
        if count:
            if len(m.stack) <= count:
                raise IndexError
            values = m.stack[-count:]
            del m.stack[-count:]
        else:
            values = m.since_mark()
        m.add(kind, values)

    return handle


def _pop(m: PickleMachine) -> None:
    m.stack = m.stack[:-1] if m.stack else m.outer.pop()


def _integer(raw: bytes) -> int:
    if len(raw) > MOST_PICKLE_INTEGER:
        raise PickleFault(f"it holds an integer of {len(raw)} bytes")
    return int.from_bytes(raw, "little", signed=True)


def _int_line(m: PickleMachine) -> int | bool:
    line = m.line()
    return line == "01" if line in ("00", "01") else int(line.removesuffix("L")[:40])


def _quoted(m: PickleMachine) -> str:
    line = m.line()
    if len(line) < 2 or line[0] != line[-1] or line[0] not in "'\"":
        raise PickleFault("a text has no quotes")
    return line[1:-1].encode("ascii").decode("unicode_escape")


def _names(m: PickleMachine) -> None:
    name, module = m.stack.pop(), m.stack.pop()
    if not isinstance(name, str) or not isinstance(module, str):
        raise PickleFault("a name is no text")
    m.name(module, name)


def _dict(values: list[Any]) -> dict[Any, Any]:
    return dict(zip(map(_as_key, values[::2]), values[1::2], strict=True))


BY_CODE: dict[bytes, Handler] = {
    b"\x80": lambda m: m.take(1),  # PROTO
    b"\x95": lambda m: m.take(8),  # FRAME
    b"0": _pop,
    b"1": lambda m: m.since_mark(),
    b"2": lambda m: m.stack.append(m.stack[-1]),
    b"N": _push(lambda _: None),
    b"\x88": _push(lambda _: True),
    b"\x89": _push(lambda _: False),
    b"I": _push(_int_line),
    b"L": _push(_int_line),
    b"J": _push(lambda m: int.from_bytes(m.take(4), "little", signed=True)),
    b"M": _push(lambda m: int.from_bytes(m.take(2), "little")),
    b"\x8a": _push(lambda m: _integer(m.counted(1))),
    b"\x8b": _push(lambda m: _integer(m.counted(4))),
    b"F": _push(lambda m: float(m.line()[:40])),
    b"S": _push(_quoted),
    b"T": _push(lambda m: m.counted(4).decode("ascii")),
    b"U": _push(lambda m: m.counted(1).decode("ascii")),
    b"V": _push(lambda m: m.line().encode("latin1").decode("raw_unicode_escape")),
    b"X": _push(lambda m: m.counted(4).decode("utf-8")),
    b"\x8d": _push(lambda m: m.counted(8).decode("utf-8")),
    b"B": _push(lambda m: m.counted(4)),
    b"C": _push(lambda m: m.counted(1)),
    b"\x8e": _push(lambda m: m.counted(8)),
    b"\x96": _push(lambda m: bytearray(m.counted(8))),
    b")": _push(lambda _: ()),
    b"}": _push(lambda _: {}),
    b"\x8f": _push(lambda _: set()),
    b"\x85": _last(1),
    b"\x86": _last(2),
    b"\x87": _last(3),
    b"t": _marked(tuple),
    b"l": _marked(list),
    b"d": _marked(_dict),
    b"\x91": _marked(lambda values: frozenset(map(_as_key, values))),
    b"a": _add(list, 1),
    b"e": _add(list),
    b"s": _add(dict, 2),
    b"u": _add(dict),
    b"\x90": _add(set),
    b"c": lambda m: m.name(m.line(), m.line()),
    b"\x93": _names,
    b"R": lambda m: m.call(),
    b"b": lambda m: m.fill(),
    b"g": _push(lambda m: m.memo[int(m.line()[:20])]),
    b"p": lambda m: m.remember(int(m.line()[:20])),
    b"q": lambda m: m.remember(m.take(1)[0]),
    b"r": lambda m: m.remember(int.from_bytes(m.take(4), "little")),
    b"\x94": lambda m: m.remember(len(m.memo)),
}  # fmt: skip
HANDLERS: list[Handler | None] = [BY_CODE.get(bytes([code])) for code in range(256)]


def check_size(value: Any, known: dict[int, tuple[int, int]], depth: int = 0) -> tuple[int, int]:
    """Bytes and depth of a value when everything that is named twice is counted twice; PickleFault beyond the limits.

    A few lists that name each other would otherwise grow without end when they are read as arrays.
    """
    if isinstance(value, np.ndarray):
        return 64 + value.nbytes, 0
    if isinstance(value, LEAVES):
        return 8 + (4 * len(value) if isinstance(value, (str, bytes, bytearray)) else 0), 0
    if not isinstance(value, (dict, list, tuple, set, frozenset)):
        raise PickleFault("it holds something that is no plain value")
    if id(value) in known:
        return known[id(value)]
    if depth > MOST_PICKLE_DEPTH:
        raise PickleFault(f"it is nested more than {MOST_PICKLE_DEPTH} deep")
    size, deepest = 64 + 8 * len(value), 0
    for part in (*value, *value.values()) if isinstance(value, dict) else value:
        if type(part) is str:
            size += 4 * len(part)
        elif type(part) not in NUMBERS:
            more, below = check_size(part, known, depth + 1)
            size, deepest = size + more, max(deepest, below)
    if deepest >= MOST_PICKLE_DEPTH or size > MOST_BYTES:
        raise PickleFault("it is nested too deep or names the same things too often")
    known[id(value)] = size, deepest + 1
    return known[id(value)]


def load_plain(path: Path) -> dict[str, Any]:
    """The dict in a pickle; SourceError where the file is broken or asks for anything else."""
    try:
        data = PickleMachine(read_bytes(path)).load()
        check_size(data, {})
    except SourceError:
        raise
    except (IndexError, KeyError):
        raise SourceError(f"{path.name}: the pickle cannot be read (it is damaged)") from None
    except (ValueError, TypeError, struct.error, ArithmeticError) as error:
        text = " ".join(str(error).split()) or type(error).__name__
        raise SourceError(f"{path.name}: the pickle cannot be read ({text})") from None
    if not isinstance(data, dict):
        raise SourceError(f"{path.name}: expected a dict, found {type(data).__name__}")
    return data
