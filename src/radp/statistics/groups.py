"""Scenarios that are not independent: egos of one log share their traffic, so they are drawn and counted together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def members(groups: Sequence[str] | np.ndarray | None, count: int) -> np.ndarray:
    """Name of the group of each scenario (N,) -> its number (N,), from 0 in the order of first appearance.

    Without names each of `count` scenarios is its own group.
    """
    if groups is None:
        return np.arange(count)
    _, first, member = np.unique(np.asarray(groups), return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[member]
