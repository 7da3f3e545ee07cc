"""A figure with its interval and its standard error, and how it is written."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from radp.statistics.power import ERRORS, POWER, SIGNIFICANCE, smallest_difference

NONE = "n/a"
NO_DIFFERENCE = "no difference shown"
FEWEST = 5  # groups
LEGEND = (
    f"d: smallest difference that could have been shown ({POWER:.0%} power, two-sided {SIGNIFICANCE:.0%}): "
    f"{ERRORS:.2f} standard errors of the figure, so of the mean, or beside a difference of the paired difference; "
    "none where all values are equal."
)


@dataclass(frozen=True)
class Estimate:
    """A value with its 95% interval and its standard error over `count` scenarios; NaN when there is none."""

    value: float
    low: float
    high: float
    count: int
    error: float = np.nan
    groups: int | None = None  # logs among the scenarios, where several may share one

    @property
    def excludes_zero(self) -> bool:
        """Whether a difference is shown; resamples of fewer than five groups show nothing, however narrow."""
        groups = self.count if self.groups is None else self.groups
        return groups >= FEWEST and (self.low > 0 or self.high < 0)

    @property
    def smallest_difference(self) -> float:
        """The smallest difference that the data could have shown; NaN where they do not vary."""
        return smallest_difference(self.error)

    def to_json(self) -> dict[str, float | int | None]:
        names = ("value", "low", "high", "error", "smallest_difference")
        known = {name: float(getattr(self, name)) for name in names}
        return {name: None if np.isnan(v) else v for name, v in known.items()} | {"count": self.count}


def interval(estimate: Estimate, digits: int = 3, times: float = 1.0, count: bool = False) -> str:
    """0.235 [0.213, 0.256] (n 110, d 0.031): n, if asked for, the number of scenarios, d as `LEGEND` says."""
    return _written(estimate, f".{digits}f", times, count)


def difference(estimate: Estimate, digits: int = 3, times: float = 1.0) -> str:
    """+1.2 [-0.4, +2.8] (d 2.3): no difference shown. An interval that holds 0 is called what it is."""
    text = _written(estimate, f"+.{digits}f", times)
    return text if text == NONE or estimate.excludes_zero else f"{text}: {NO_DIFFERENCE}"


def _written(estimate: Estimate, form: str, times: float, count: bool = False) -> str:
    if np.isnan(estimate.value):
        return NONE
    value, low, high = (format(times * v, form) for v in (estimate.value, estimate.low, estimate.high))
    smallest = times * estimate.smallest_difference
    notes = [f"n {estimate.count}"] if count else []
    notes += [] if np.isnan(smallest) else [f"d {format(smallest, form.lstrip('+'))}"]
    return f"{value} [{low}, {high}]" + (f" ({', '.join(notes)})" if notes else "")
