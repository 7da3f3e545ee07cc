"""Prognosis: does pressure foretell risk better than what a safety engineer would use, and does it add to that?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from radp.evaluation.alignment import EndpointRows, Events, count_events, measure, risks, score_of
from radp.evaluation.boosted import boosted_score
from radp.evaluation.controls import clock
from radp.evaluation.drives import PRESSURES, Drives
from radp.evaluation.endpoints import BESIDE, READINGS, Endpoint, Reading
from radp.evaluation.known import MEASURES
from radp.runs.errors import BadInput
from radp.statistics.bootstrap import RESAMPLES, mean_estimate, resample_means
from radp.statistics.estimate import Estimate
from radp.statistics.significance import bootstrap_p, holm

STATISTICS = ("rho", "auprc", "lift")
CEILING, PLAIN, WITH_PRESSURE = "ceiling", "TTC + persistence", "TTC + persistence + pressure"
PREDICTORS = {
    **MEASURES,
    "cost": "raw cost J_i of the matched rule",
    "persistence": "the severity of the endpoint itself at this moment",
    "clock": "minus the time since the start of the drive",
    CEILING: "gradient-boosted trees over all of these, of other logs; no pressure among them",
    PLAIN: "gradient-boosted trees over TTC, persistence and, in place of this drive's pressure, another drive's",
}


@dataclass(frozen=True)
class Forecast:
    """One predictor of one endpoint; `lead`: what the pressure has more, paired by scenario."""

    endpoint: Endpoint
    predictor: str
    rho: Estimate
    auprc: Estimate
    lift: Estimate
    lead: Mapping[str, Estimate]  # by statistic; empty for the pressure itself
    p: float = np.nan  # of the lead in rho, Holm over the seven endpoints; NaN beside them


@dataclass(frozen=True)
class Increment:
    """What pressure adds to TTC and persistence, by trees on logs that they did not see.

    Without it they get the pressure of another drive, so both have as much to fit to.
    """

    endpoint: Endpoint
    plain: Mapping[str, Estimate]
    added: Mapping[str, Estimate]  # with pressure minus without
    p: float  # of the gain in rho, Holm over the seven endpoints; NaN beside them


@dataclass(frozen=True)
class Prognosis:
    """All predictors of all endpoints against one source of pressure."""

    source: str
    reading: Reading
    drives: int
    forecasts: tuple[Forecast, ...]
    increments: tuple[Increment, ...]
    events: Mapping[str, Events]

    def forecast(self, endpoint: str, predictor: str) -> Forecast:
        return next(f for f in self.forecasts if (f.endpoint.name, f.predictor) == (endpoint, predictor))

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        return tuple(dict.fromkeys(f.endpoint for f in self.forecasts))

    @property
    def predictors(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(f.predictor for f in self.forecasts))


def prognosis(
    drives: Drives, source: str = "teacher", reading: Reading = "main", seed: int = 0, resamples: int = RESAMPLES
) -> Prognosis:
    """One set of resamples serves every figure, so all differences are paired and clustered by log."""
    if source not in drives.scores or source not in PRESSURES or not drives.measures:
        raise BadInput(f"the drives have no pressures of {source!r} beside the measures of the moment")
    seven, endpoints = READINGS[reading], (*READINGS[reading], *BESIDE[reading])
    found, table = risks(drives, endpoints), _Table(drives.logs)
    for e in endpoints:
        for name, score in scores_for(drives, e, found[e.name], source, seed).items():
            table.add(e.name, name, measure(score, found[e.name], e, seed))
        for name in table.names(e.name):
            table.add_difference(e.name, source, name)
        table.add_difference(e.name, WITH_PRESSURE, PLAIN)
    table.resample(seed, resamples)
    names = [name for name in table.names(endpoints[0].name) if name != WITH_PRESSURE]
    leads = {name: holm([table.p(e.name, source, name) for e in seven]) for name in names}
    forecasts = []
    for e in endpoints:
        for name in names:
            lead = {s: table.difference(e.name, source, name, s) for s in STATISTICS} if name != source else {}
            p = leads[name][seven.index(e)] if lead and e in seven else np.nan
            rho, auprc, lift = (table.mean(e.name, name, s) for s in STATISTICS)
            forecasts.append(Forecast(e, name, rho, auprc, lift, lead, p))
    gains = holm([table.p(e.name, WITH_PRESSURE, PLAIN) for e in seven])
    increments = tuple(
        Increment(
            e,
            {s: table.mean(e.name, PLAIN, s) for s in STATISTICS},
            {s: table.difference(e.name, WITH_PRESSURE, PLAIN, s) for s in STATISTICS},
            gains[seven.index(e)] if e in seven else np.nan,
        )
        for e in endpoints
    )
    events = {e.name: count_events(drives, e) for e in endpoints}
    return Prognosis(source, reading, len(drives.tokens), tuple(forecasts), increments, events)


def scores_for(drives: Drives, endpoint: Endpoint, risk: np.ndarray, source: str, seed: int) -> dict[str, np.ndarray]:
    """(N, T) by predictor: the pressure, every measure, and what trees make of them."""
    pressure, now = drives.channel(source, endpoint.channel), score_of(drives, "persistence", endpoint)
    plain = {**drives.measures, "persistence": now, "clock": clock(drives.lengths, risk.shape[1])}
    if "cost" in drives.scores:
        plain["cost"] = drives.channel("cost", endpoint.channel)
    short = [drives.measures["TTC"], now]
    theirs = of_another(pressure, drives.logs)
    learned = {CEILING: list(plain.values()), PLAIN: [*short, theirs], WITH_PRESSURE: [*short, pressure]}
    return {
        source: pressure,
        **plain,
        **{name: boosted_score(features, risk, drives.logs, seed) for name, features in learned.items()},
    }


def of_another(score: np.ndarray, logs: Sequence[str]) -> np.ndarray:
    """(N, T) of another drive at the same clock, as much to fit trees to; NaN where that drive is of the same log."""
    log = np.asarray(logs)
    other = np.roll(np.arange(len(score)), len(score) // 2)
    return np.where((log != log[other])[:, None], score[other], np.nan)


class _Table:
    """Values (N,) by endpoint, predictor and statistic, and of differences of two predictors; resampled together."""

    def __init__(self, logs: Sequence[str]) -> None:
        self.logs = logs
        self.rows: dict[tuple[str, str, str], np.ndarray] = {}
        self.drawn: dict[tuple[str, str, str], np.ndarray] = {}

    def add(self, endpoint: str, name: str, measured: EndpointRows) -> None:
        self.rows |= {(endpoint, name, statistic): getattr(measured, statistic) for statistic in STATISTICS}

    def add_difference(self, endpoint: str, a: str, b: str) -> None:
        for s in STATISTICS:
            self.rows[endpoint, f"{a} - {b}", s] = self.rows[endpoint, a, s] - self.rows[endpoint, b, s]

    def names(self, endpoint: str) -> list[str]:
        return [name for e, name, s in self.rows if e == endpoint and s == "rho" and " - " not in name]

    def resample(self, seed: int, count: int) -> None:
        means = resample_means(np.stack(list(self.rows.values())), seed, count, self.logs)
        self.drawn = dict(zip(self.rows, means.T))

    def mean(self, endpoint: str, name: str, statistic: str) -> Estimate:
        key = (endpoint, name, statistic)
        return mean_estimate(self.rows[key], self.drawn[key], self.logs)

    def difference(self, endpoint: str, a: str, b: str, statistic: str) -> Estimate:
        return self.mean(endpoint, f"{a} - {b}", statistic)

    def p(self, endpoint: str, a: str, b: str) -> float:
        """Two-sided, of the difference in rho; NaN for a predictor against itself."""
        return bootstrap_p(self.drawn[endpoint, f"{a} - {b}", "rho"]) if a != b else np.nan
