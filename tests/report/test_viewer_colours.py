"""Colours of planners are not taken for those of rules."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest

from radp.report.viewer.page import static

FURTHEST = 60.0  # least distance of red, green and blue together, of 442


def palettes() -> list[dict[str, np.ndarray]]:
    """Light, and dark with what it takes over from light."""
    blocks = re.findall(r":root[^{]*\{([^}]*)\}", static("base.css"))
    found = [
        {
            name: np.array([int(code[i : i + 2], 16) for i in (0, 2, 4)])
            for name, code in re.findall(r"--([\w-]+): #(\w{6})", block)
        }
        for block in blocks
    ]
    return [found[0], found[0] | found[1]]


@pytest.mark.parametrize("dark", [False, True])
def test_planners_and_rules_differ(dark: bool) -> None:
    colours = palettes()[dark]
    rules = {name: rgb for name, rgb in colours.items() if name.startswith("rule-")}
    assert len(rules) == 14
    for ego, (name, rgb) in product(("ego-a", "ego-b"), rules.items()):
        assert np.linalg.norm(colours[ego] - rgb) > FURTHEST, (ego, name)
    assert np.linalg.norm(colours["ego-a"] - colours["ego-b"]) > 2 * FURTHEST
