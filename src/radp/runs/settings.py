"""Settings as JSON: what config.json keeps, and how an older one is compared with today's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import PurePath
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


def as_json(value: Any) -> Any:
    """A value of plain types, mappings, paths and dataclasses, as JSON would give it back."""
    return json.loads(json.dumps(value, default=_plain, allow_nan=False))


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(f"{value!r} has no place in JSON")


def checked(kind: type[T], values: Mapping[str, Any]) -> T:
    """A dataclass made of values that were read from JSON; ValueError names the first that is not of its type."""
    hints = get_type_hints(kind)
    for name, value in values.items():
        if name in hints and not _fits(value, hints[name]):
            wanted = getattr(hints[name], "__name__", None) or str(hints[name]).replace("typing.", "")
            raise ValueError(f"{name} is {value!r}, expected {wanted}")
    tuples = {name for name, hint in hints.items() if get_origin(hint) is tuple}
    return kind(**{name: tuple(value) if name in tuples else value for name, value in values.items()})


def _fits(value: Any, hint: Any) -> bool:
    """Whether a JSON value is of a plain type; of which words a Literal is made is for the dataclass to say."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is Literal:
        return type(value) in {type(part) for part in parts}
    if origin is tuple:
        return isinstance(value, list | tuple) and all(_fits(one, parts[0]) for one in value)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint in (int, str, bool, type(None)):
        return type(value) is hint
    return True


def narrowed(kind: type[T], settings: T) -> T:
    """Settings without what a subclass adds to them."""
    return kind(**{field.name: getattr(settings, field.name) for field in fields(kind)})  # type: ignore[arg-type]


def with_defaults(stored: Mapping[str, Any], settings: Any) -> dict[str, Any]:
    """`stored` with the settings that it does not know yet: they did not exist then, and count as their defaults."""
    filled = dict(stored)
    for field in fields(settings) if is_dataclass(settings) else ():
        now = getattr(settings, field.name)
        if field.name not in filled:
            if (default := _default(field)) is not MISSING:
                filled[field.name] = as_json(default)
        elif is_dataclass(now) and isinstance(filled[field.name], dict):
            filled[field.name] = with_defaults(filled[field.name], now)
    return filled


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def first_difference(before: Mapping[str, Any], after: Mapping[str, Any], within: str = "") -> str:
    """The first value that differs, in words; empty when there is none."""
    for name in [*after, *(name for name in before if name not in after)]:
        old, new = before.get(name), after.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            if difference := first_difference(old, new, f"{within}{name}."):
                return difference
        elif old != new or (name in before) != (name in after):
            return f"{within}{name} is {old!r} there and {new!r} now"
    return ""
