"""Scenario-level bootstrap: percentile intervals of means, of macro means, and of paired differences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

LEVEL = 95.0
RESAMPLES = 10_000
NO_DIFFERENCE = "no difference shown"
FEWEST = 5  # scenarios
_CHUNK = 1_000  # resamples drawn at once


@dataclass(frozen=True)
class Estimate:
    """A value with its 95% interval over `count` scenarios; all NaN when there is none."""

    value: float
    low: float
    high: float
    count: int

    @property
    def excludes_zero(self) -> bool:
        """Whether a difference is shown; resamples of fewer than five scenarios show nothing, however narrow."""
        return self.count >= FEWEST and (self.low > 0 or self.high < 0)

    def to_json(self) -> dict[str, float | int | None]:
        clean = [None if np.isnan(v) else float(v) for v in (self.value, self.low, self.high)]
        return {"value": clean[0], "low": clean[1], "high": clean[2], "count": self.count}

    @classmethod
    def from_json(cls, data: dict[str, float | int | None]) -> Estimate:
        value, low, high = (np.nan if data[k] is None else float(data[k]) for k in ("value", "low", "high"))  # type: ignore[arg-type]
        return cls(value, low, high, int(data["count"] or 0))


NOTHING = Estimate(np.nan, np.nan, np.nan, 0)


def resample_means(
    values: np.ndarray, seed: int = 0, resamples: int = RESAMPLES, groups: np.ndarray | None = None
) -> np.ndarray:
    """values (K, N), NaN = none -> (resamples, K): means over N scenarios drawn with replacement.

    All K rows see the same draws, so their differences are paired. NaN where a draw holds no value of a row.
    Scenarios with one name in `groups` (N,) are drawn together: egos of one log share traffic and are not independent.
    """
    known = ~np.isnan(values)
    table = np.concatenate((np.where(known, values, 0.0), known)).T  # (N, 2K)
    if groups is not None:
        names, member = np.unique(groups, return_inverse=True)
        together = np.zeros((len(names), table.shape[1]))
        np.add.at(together, member, table)
        table = together
    parts = []
    for counts in _counts(len(table), seed, resamples):
        total, size = np.split(counts @ table, 2, axis=1)
        parts.append(np.divide(total, size, out=np.full(total.shape, np.nan), where=size > 0))
    return np.concatenate(parts)


def means_of(
    values: np.ndarray, seed: int = 0, resamples: int = RESAMPLES, groups: np.ndarray | None = None
) -> list[Estimate]:
    """(K, N), NaN = none -> K means with percentile intervals, all from the same draws."""
    if values.shape[1] == 0:
        return [NOTHING] * len(values)
    return [estimate(row, means) for row, means in zip(values, resample_means(values, seed, resamples, groups).T)]


def mean_of(
    values: np.ndarray, seed: int = 0, resamples: int = RESAMPLES, groups: np.ndarray | None = None
) -> Estimate:
    """Mean of the scenarios' values (N,), those with NaN left out, and its percentile interval."""
    return means_of(values[None], seed, resamples, groups)[0]


def paired_difference(
    a: np.ndarray, b: np.ndarray, seed: int = 0, resamples: int = RESAMPLES, groups: np.ndarray | None = None
) -> Estimate:
    """Mean of a - b over scenarios that both have (N,), resampled as pairs."""
    return mean_of(a - b, seed, resamples, groups)


def macro_of(values: np.ndarray, seed: int = 0, resamples: int = RESAMPLES) -> Estimate:
    """values (E, N): mean over E of the means over N, NaN left out; scenarios are resampled for all E together."""
    values = values[~np.isnan(values).all(1)]
    if values.size == 0:
        return NOTHING
    return macro_estimate(values, resample_means(values, seed, resamples))


def macro_estimate(values: np.ndarray, means: np.ndarray) -> Estimate:
    """values (E, N) and their resampled means (R, E) -> the mean over those of the E rows that have any value."""
    some = ~np.isnan(values).all(1)
    if not some.any():
        return NOTHING
    drawn = means[:, some]
    drawn = drawn[~np.isnan(drawn).all(1)]
    low, high = np.percentile(np.nanmean(drawn, axis=1), _TAILS)
    value = float(np.nanmean(values[some], axis=1).mean())
    return Estimate(value, float(low), float(high), int((~np.isnan(values)).any(0).sum()))


def estimate(row: np.ndarray, means: np.ndarray) -> Estimate:
    """row (N,) of values and its resampled means (R,) -> mean and interval."""
    known, drawn = row[~np.isnan(row)], means[~np.isnan(means)]
    if not len(known) or not len(drawn):
        return NOTHING
    low, high = np.percentile(drawn, _TAILS)
    return Estimate(float(known.mean()), float(low), float(high), len(known))


_TAILS = [(100 - LEVEL) / 2, (100 + LEVEL) / 2]


def _counts(scenarios: int, seed: int, resamples: int) -> Iterator[np.ndarray]:
    """How often each scenario is drawn, (chunk, N) at a time."""
    draw = np.random.default_rng([seed, scenarios])
    for first in range(0, resamples, _CHUNK):
        size = min(_CHUNK, resamples - first)
        drawn = draw.integers(0, scenarios, (size, scenarios)) + scenarios * np.arange(size)[:, None]
        yield np.bincount(drawn.ravel(), minlength=size * scenarios).reshape(size, scenarios).astype(np.float64)
