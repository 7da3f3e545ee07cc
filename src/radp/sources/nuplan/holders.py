"""Pickles of nuplan-devkit's objects without the devkit: every class that a file names becomes an empty holder.

Nothing of the file runs. Names are never looked up; what would be a call keeps its arguments, what would be an object
keeps its state.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from radp.sources.limits import MOST_BYTES
from radp.sources.scenarionet.plain_arrays import PickleFault
from radp.sources.scenarionet.unpickle import CALLS, FUNCTIONS, HANDLERS, OLD_MODULES, PickleMachine

NEWOBJ, NEWOBJ_EX = 0x81, 0x92
HOLDER_BYTES = 200  # what a holder takes in memory, roughly


class NamedClass:
    """A name that a pickle asked for."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Holder:
    """An object of a class that is not known here: the class' name, arguments, and the state as the pickle has it."""

    __slots__ = ("args", "kind", "state")

    def __init__(self, kind: str, args: Any = ()) -> None:
        self.kind, self.args, self.state = kind, args, None

    def get(self, *names: str) -> Any:
        """A field of the state by the first of its names that is there."""
        for name, value in self.fields():
            if name in names:
                return value
        raise KeyError(f"{self.kind} has no {names[0]}")

    def fields(self) -> Iterator[tuple[Any, Any]]:
        """Fields of an object: its __dict__, and those of its slots."""
        parts = self.state if isinstance(self.state, tuple) else (self.state,)
        for part in parts:
            if isinstance(part, dict):
                yield from part.items()


class HolderMachine(PickleMachine):
    """Runs a pickle of plain data and holders."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.names: dict[tuple[str, str], NamedClass] = {}

    def name(self, module: str, name: str) -> None:
        old = next((before for before in OLD_MODULES if module == before or module.startswith(f"{before}.")), None)
        today = module if old is None else OLD_MODULES[old] + module[len(old) :]
        if (today, name) in CALLS:
            super().name(module, name)
        else:
            self.stack.append(self.names.setdefault((module, name), NamedClass(f"{module}.{name}")))

    def call(self) -> None:
        if id(self.stack[-2]) in FUNCTIONS:
            super().call()
        else:
            self.hold(self.stack.pop())

    def hold(self, args: Any) -> None:
        """Put a holder where the class (or what else would be called) stands."""
        what = self.stack[-1]
        self.made += HOLDER_BYTES
        if self.made > MOST_BYTES:
            raise PickleFault(f"it makes more than {MOST_BYTES} bytes")
        self.stack[-1] = Holder(what.name if isinstance(what, NamedClass) else "", args)

    def fill(self) -> None:
        target = self.stack[-2]
        if not isinstance(target, Holder):
            super().fill()
            return
        target.state = self.stack.pop()

    def add(self, kind: type, values: list[Any]) -> None:
        if isinstance(self.stack[-1], Holder):  # a container of a class that is not known: what it holds is not needed
            return
        if kind is dict:
            pairs = [pair for pair in zip(values[::2], values[1::2], strict=True) if isinstance(pair[0], (str, int))]
            values = [value for pair in pairs for value in pair]
        super().add(kind, values)


def _new(m: PickleMachine, drop: int) -> None:
    if not isinstance(m, HolderMachine):
        raise PickleFault("it makes an object, which plain data do not need")
    args = m.stack.pop()
    del m.stack[len(m.stack) - drop :]
    m.hold(args)


HANDLERS[NEWOBJ] = lambda m: _new(m, 0)
HANDLERS[NEWOBJ_EX] = lambda m: _new(m, 1)
