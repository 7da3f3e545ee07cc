"""How likely chance alone gives such a difference, and what remains of it when several are looked at."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def bootstrap_p(drawn: np.ndarray) -> float:
    """Two-sided p that a difference is 0, from its resamples (R,): twice the share on the other side of 0.

    At least 1 / (R + 1), since a resample that was not drawn may lie there; NaN without resamples.
    """
    drawn = drawn[~np.isnan(drawn)]
    if not len(drawn):
        return np.nan
    beyond = min((drawn <= 0).sum(), (drawn >= 0).sum())
    return float(min(1.0, 2 * (beyond + 1) / (len(drawn) + 1)))


def holm(values: Sequence[float]) -> list[float]:
    """p of several tests -> p that hold for all of them together (Holm 1979); NaN stays and does not count."""
    found = np.asarray(values, dtype=np.float64)
    known = np.flatnonzero(~np.isnan(found))
    order = known[np.argsort(found[known], kind="stable")]
    adjusted = np.full(len(found), np.nan)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(found[order] * np.arange(len(order), 0, -1)))
    return [float(p) for p in adjusted]
