"""How large a difference must be for the data to show it: 80% power, two-sided test at 5%."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

from radp.statistics.groups import members

SIGNIFICANCE = 0.05  # two-sided
POWER = 0.80
ERRORS = float(ndtri(1 - SIGNIFICANCE / 2) + ndtri(POWER))  # 1.96 + 0.84 standard errors


def standard_error(values: np.ndarray, groups: Sequence[str] | np.ndarray | None = None) -> float:
    """Of the mean of values (N,), those with NaN left out; NaN with fewer than two groups.

    sqrt(G / (G - 1) sum_g e_g^2) / n, where e_g is the sum of the deviations from the mean in group g of G. It is
    s / sqrt(n) when every scenario is its own group.
    """
    known = ~np.isnan(values)
    member = members(groups, len(values))[known]
    present, member = np.unique(member, return_inverse=True)
    if len(present) < 2:
        return np.nan
    deviation = values[known] - values[known].mean()
    total = np.bincount(member, deviation)
    return float(np.sqrt(len(present) / (len(present) - 1) * (total**2).sum()) / known.sum())


def smallest_difference(error: float) -> float:
    """(1.96 + 0.84) standard errors. NaN for an error of 0: values that are all equal do not say how they vary."""
    return ERRORS * error if error > 0 else np.nan
