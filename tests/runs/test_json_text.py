"""All JSON that radp writes is JSON: one writer, and nobody else writes."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import radp
from radp.runs.json_text import json_text

NUMBERS = st.floats() | st.integers(-9, 9) | st.booleans() | st.none() | st.text(max_size=3)
VALUES = st.recursive(NUMBERS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner))
# What these make never holds a number, or is read by radp alone and refused there if it holds NaN.
MAY_DUMP = {
    "runs/json_text.py": "the writer",
    "runs/settings.py": "refuses NaN",
    "scenario/neutral_json.py": "refuses NaN",
    "storage/codec.py": "strings alone",
    "storage/records.py": "strings alone, for a hash",
    "cli/train.py": "part of a sentence",
}


def refuse(token: str) -> None:
    raise AssertionError(f"{token} is no JSON")


@given(VALUES)
def test_what_is_written_is_json(value: Any) -> None:
    json.loads(json_text(value), parse_constant=refuse)


@given(VALUES)
def test_what_json_can_hold_stays_as_it_is(value: Any) -> None:
    try:
        wanted = json.dumps(value, allow_nan=False)
    except ValueError:
        return
    assert json_text(value, indent=None) == wanted


def test_what_json_cannot_hold_becomes_null() -> None:
    odd = {"a": [np.float64("nan"), 1.5], "b": (float("inf"), {"c": -float("inf")})}
    assert json.loads(json_text(odd)) == {"a": [None, 1.5], "b": [None, {"c": None}]}
    with pytest.raises(TypeError):
        json_text({"a": object()})


def test_nobody_else_writes_json() -> None:
    root, found = Path(radp.__file__).parent, set()
    for file in root.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Attribute) and ast.unparse(node) in ("json.dumps", "json.dump"):
                found.add(str(file.relative_to(root)))
    assert found == set(MAY_DUMP)
