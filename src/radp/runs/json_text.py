"""JSON that every reader takes: the one place where values become text."""

from __future__ import annotations

import json
import math
from typing import Any


def json_text(data: Any, indent: int | None = 1, **style: Any) -> str:
    """Plain values as JSON, keys in the given order. NaN and infinities, which JSON does not have, become null.

    >>> json_text({"score": float("nan"), "lanes": [1.0, float("inf")]}, indent=None)
    '{"score": null, "lanes": [1.0, null]}'
    """
    try:
        return json.dumps(data, indent=indent, allow_nan=False, **style)
    except ValueError:
        return json.dumps(_finite(data), indent=indent, allow_nan=False, **style)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    return [_finite(entry) for entry in value] if isinstance(value, list | tuple) else value
