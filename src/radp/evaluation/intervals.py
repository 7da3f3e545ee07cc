"""Scenario-level bootstrap: percentile intervals of means, of macro means, and of paired differences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LEVEL = 95.0
RESAMPLES = 10_000
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
        return self.low > 0 or self.high < 0

    def to_json(self) -> dict[str, float | int | None]:
        clean = [None if np.isnan(v) else float(v) for v in (self.value, self.low, self.high)]
        return {"value": clean[0], "low": clean[1], "high": clean[2], "count": self.count}


NOTHING = Estimate(np.nan, np.nan, np.nan, 0)


def mean_of(values: np.ndarray, seed: int = 0, resamples: int = RESAMPLES) -> Estimate:
    """Mean of the scenarios' values (N,), those with NaN left out, and its percentile interval."""
    known = values[~np.isnan(values)]
    if not len(known):
        return NOTHING
    means = np.concatenate([c @ known / len(known) for c in _counts(len(known), seed, resamples)])
    return _estimate(float(known.mean()), means, len(known))


def paired_difference(a: np.ndarray, b: np.ndarray, seed: int = 0, resamples: int = RESAMPLES) -> Estimate:
    """Mean of a - b over scenarios that both have (N,), resampled as pairs."""
    return mean_of(a - b, seed, resamples)


def macro_of(values: np.ndarray, seed: int = 0, resamples: int = RESAMPLES) -> Estimate:
    """values (E, N): mean over E of the means over N, NaN left out; scenarios are resampled for all E together."""
    known = ~np.isnan(values)
    rows = known.any(1)
    if not rows.any():
        return NOTHING
    values, known = np.where(known, values, 0.0)[rows], known[rows]
    parts = []
    for counts in _counts(values.shape[1], seed, resamples):
        total, size = counts @ values.T, counts @ known.T
        with np.errstate(invalid="ignore"):
            parts.append(np.nanmean(np.where(size > 0, total / np.maximum(size, 1), np.nan), axis=1))
    value = float((values.sum(1) / known.sum(1)).mean())
    return _estimate(value, np.concatenate(parts), values.shape[1])


def _counts(scenarios: int, seed: int, resamples: int):
    """How often each scenario is drawn, (chunk, N) at a time."""
    draw = np.random.default_rng([seed, scenarios])
    for first in range(0, resamples, _CHUNK):
        size = min(_CHUNK, resamples - first)
        yield draw.multinomial(scenarios, np.full(scenarios, 1 / scenarios), size=size).astype(np.float64)


def _estimate(value: float, means: np.ndarray, count: int) -> Estimate:
    low, high = np.nanpercentile(means, [(100 - LEVEL) / 2, (100 + LEVEL) / 2])
    return Estimate(value, float(low), float(high), count)
