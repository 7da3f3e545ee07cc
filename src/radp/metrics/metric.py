"""What a metric answers with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """value in [0, 1]; valid False = there is no value here, and the metric is left out of the score."""

    value: float
    valid: bool = True


NO_VALUE = Metric(0.0, valid=False)
