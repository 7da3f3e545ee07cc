"""What was worked out about a road map, kept as long as the map lives."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from radp.road.road_map import RoadMap

Value = TypeVar("Value")

_memories: dict[int, tuple[weakref.ref[RoadMap], dict[Hashable, Any]]] = {}


def remember(road_map: RoadMap, key: Hashable, compute: Callable[[], Value]) -> Value:
    """`compute()`, done once for this map object and key. Maps differ by identity, not by content."""
    number = id(road_map)
    known = _memories.get(number)
    if known is None or known[0]() is not road_map:
        known = (weakref.ref(road_map, lambda _: _memories.pop(number, None)), {})
        _memories[number] = known
    if key not in known[1]:
        known[1][key] = compute()
    return known[1][key]
