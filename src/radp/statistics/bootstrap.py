"""The bootstrap of every interval: whole groups of scenarios drawn with replacement, percentile method, fixed seed.

The draws depend on the seed and on the number of groups alone. All statistics of one call see the same draws, so
their differences are paired.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from radp.statistics.estimate import Estimate
from radp.statistics.groups import members
from radp.statistics.power import standard_error

LEVEL = 0.95
RESAMPLES = 10_000
Groups = Sequence[str] | np.ndarray | None
_CHUNK = 500  # resamples drawn at once, which bounds the memory; the draws do not depend on it
_TAILS = [50 * (1 - LEVEL), 50 * (1 + LEVEL)]  # percent


def draws(groups: int, seed: int = 0, resamples: int = RESAMPLES) -> Iterator[np.ndarray]:
    """How often each group is drawn, (chunk, G) float64 at a time."""
    random = np.random.default_rng([seed, groups])
    for first in range(0, resamples, _CHUNK):
        size = min(_CHUNK, resamples - first)
        drawn = random.integers(0, groups, (size, groups)) + groups * np.arange(size)[:, None]
        yield np.bincount(drawn.ravel(), minlength=size * groups).reshape(size, groups).astype(np.float64)


def resample_means(values: np.ndarray, seed: int = 0, resamples: int = RESAMPLES, groups: Groups = None) -> np.ndarray:
    """values (K, N), NaN = none -> (resamples, K): means over N scenarios, drawn in their groups (N,).

    NaN where a draw holds no value of a row.
    """
    member, known = members(groups, values.shape[1]), ~np.isnan(values)
    table = np.concatenate((np.where(known, values, 0.0), known)).T  # (N, 2K)
    together = np.zeros((member.max(initial=-1) + 1, table.shape[1]))
    np.add.at(together, member, table)
    parts = []
    for counts in draws(len(together), seed, resamples):
        total, size = np.split(counts @ together, 2, axis=1)
        parts.append(np.divide(total, size, out=np.full(total.shape, np.nan), where=size > 0))
    return np.concatenate(parts)


def means_of(values: np.ndarray, seed: int = 0, resamples: int = RESAMPLES, groups: Groups = None) -> list[Estimate]:
    """(K, N), NaN = none -> K means with their intervals, all from the same draws."""
    if values.shape[1] == 0:
        return [mean_estimate(row, np.empty(0)) for row in values]
    drawn = resample_means(values, seed, resamples, groups)
    return [mean_estimate(row, means, groups) for row, means in zip(values, drawn.T)]


def mean_of(values: np.ndarray, seed: int = 0, resamples: int = RESAMPLES, groups: Groups = None) -> Estimate:
    """Mean of the scenarios' values (N,), those with NaN left out, and its interval."""
    return means_of(values[None], seed, resamples, groups)[0]


def paired_difference(
    a: np.ndarray, b: np.ndarray, seed: int = 0, resamples: int = RESAMPLES, groups: Groups = None
) -> Estimate:
    """Mean of a - b over the scenarios that both have (N,), drawn as pairs."""
    return mean_of(a - b, seed, resamples, groups)


def mean_estimate(values: np.ndarray, drawn: np.ndarray, groups: Groups = None) -> Estimate:
    """values (N,) and their resampled means (R,) -> mean, interval, standard error of the mean."""
    known = ~np.isnan(values)
    present = len(np.unique(members(groups, len(values))[known]))
    error = standard_error(values, groups)
    return estimate_of(known_mean(values), drawn, int(known.sum()), present, error)


def macro_estimate(values: np.ndarray, drawn: np.ndarray, count: int, groups: int | None = None) -> Estimate:
    """Mean over those of E statistics (E,) that are known, and of their resamples (R, E)."""
    return estimate_of(known_mean(values), known_mean(drawn[:, ~np.isnan(values)]), count, groups)


def estimate_of(
    value: float | np.ndarray, drawn: np.ndarray, count: int, groups: int | None = None, error: float | None = None
) -> Estimate:
    """A statistic and its resamples (R,), NaN = none. Its standard error, unless given, is their deviation."""
    drawn = drawn[~np.isnan(drawn)]
    if np.isnan(value) or not len(drawn):
        return Estimate(np.nan, np.nan, np.nan, count, np.nan, groups)
    low, high = np.percentile(drawn, _TAILS)
    return Estimate(
        float(value), float(low), float(high), count, float(drawn.std()) if error is None else error, groups
    )


def known_mean(values: np.ndarray) -> np.ndarray:
    """(..., N) -> (...): mean of what is not NaN; NaN where nothing is known."""
    known = ~np.isnan(values)
    total, count = np.where(known, values, 0.0).sum(-1), known.sum(-1)
    return np.divide(total, count, out=np.full(np.shape(total), np.nan), where=count > 0)
