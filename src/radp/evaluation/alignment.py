"""Temporal alignment: does today's pressure foretell tomorrow's risk in the same drive? (appendix B)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numba import njit

from radp.evaluation.controls import clock, enough, other_drives, temporal_spearman
from radp.evaluation.drives import Drives
from radp.evaluation.endpoints import BESIDE, ENDPOINTS, READINGS, TOP_SHARE, Endpoint, Reading
from radp.evaluation.risk import future_risk
from radp.evaluation.series import average_precision, lift
from radp.statistics.bootstrap import RESAMPLES, known_mean, macro_estimate, mean_estimate, means_of, resample_means
from radp.statistics.estimate import Estimate
from radp.statistics.ranks import correlation, deviations, ranks

SHUFFLES = 20  # permutations averaged into the shuffled control of each scenario
CONTROLS = {
    "clock": "minus the time since the start of the drive; it knows nothing but how scenarios usually go on",
    "persistence": "the severity of the endpoint itself at this moment",
}


@dataclass(frozen=True)
class EndpointRows:
    """What one source says about one endpoint in each of N scenarios, (N,) each; NaN where not eligible."""

    rho: np.ndarray  # temporal Spearman
    shuffled: np.ndarray  # the same with scores permuted within the scenario
    auprc: np.ndarray
    chance: np.ndarray  # positive rate of the scenarios that are eligible for AUPRC: what a random order scores
    lift: np.ndarray
    other: np.ndarray  # rho with the scores of other drives at the same clock: what the common trend alone gives
    other_auprc: np.ndarray
    less_clock: np.ndarray  # rho minus that of the clock
    less_other: np.ndarray  # rho minus that of other drives


STATISTICS = tuple(field.name for field in fields(EndpointRows))


@dataclass(frozen=True)
class Alignment:
    """One endpoint and one source; the count of an estimate is the number of eligible scenarios."""

    endpoint: Endpoint
    source: str
    positive_rate: float  # of all valid frames
    frames: int  # valid
    rho: Estimate
    shuffled: Estimate
    auprc: Estimate
    chance: Estimate
    lift: Estimate
    other: Estimate
    other_auprc: Estimate
    less_clock: Estimate
    less_other: Estimate

    @property
    def is_evidence(self) -> bool:
        return beats_controls(self.less_clock, self.less_other)


def beats_controls(less_clock: Estimate, less_other: Estimate) -> bool:
    """Whether a rho lies above that of the clock and that of other drives at the same clock, each beyond noise."""
    return all(less.excludes_zero and less.low > 0 for less in (less_clock, less_other))


@dataclass(frozen=True)
class Events:
    """How often an endpoint's severity rose above its threshold, and in how many drives and logs."""

    count: int
    drives: int
    logs: int


@dataclass(frozen=True)
class Aligned:
    """All endpoints and sources of some drives, with the seven endpoints averaged, and differences of those averages.

    Endpoints that stand beside the seven are in no average.
    """

    reading: Reading
    scenarios: int
    rows: tuple[Alignment, ...]
    macro: Mapping[str, Mapping[str, Estimate]]  # source -> statistic
    less_teacher: Mapping[str, Mapping[str, Estimate]]  # source -> statistic of source minus teacher, paired
    events: Mapping[str, Events]  # by endpoint

    def row(self, endpoint: str, source: str) -> Alignment:
        return next(row for row in self.rows if (row.endpoint.name, row.source) == (endpoint, source))

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(self.macro)

    @property
    def seven(self) -> tuple[Endpoint, ...]:
        """The endpoints that are averaged."""
        return READINGS[self.reading]

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """All of them."""
        return (*READINGS[self.reading], *BESIDE[self.reading])


def risks(drives: Drives, endpoints: Sequence[Endpoint] = ENDPOINTS) -> dict[str, np.ndarray]:
    """(N, T) risk of each endpoint; NaN where a frame does not count."""
    return {e.name: future_risk(drives.severity[e.series], drives.lengths, e) for e in endpoints}


def align(drives: Drives, seed: int = 0, resamples: int = RESAMPLES, reading: Reading = "main") -> Aligned:
    """All endpoints, sources and controls; one set of resamples serves every interval, so differences are paired."""
    mean_of, endpoints = READINGS[reading], (*READINGS[reading], *BESIDE[reading])
    found = risks(drives, endpoints)
    measured = measure_all(drives, endpoints, found, seed)
    sources = (*drives.scores, *CONTROLS)
    values = np.stack([getattr(rows, name) for rows in measured.values() for name in STATISTICS])
    means = resample_means(values, seed, resamples, drives.logs)
    place = {
        (*key, name): i * len(STATISTICS) + k for i, key in enumerate(measured) for k, name in enumerate(STATISTICS)
    }

    def alignment(endpoint: Endpoint, source: str) -> Alignment:
        valid = ~np.isnan(found[endpoint.name]) & ~np.isnan(score_of(drives, source, endpoint))
        event = valid & (found[endpoint.name] > endpoint.threshold)
        estimates = {}
        for name in STATISTICS:
            i = place[endpoint.name, source, name]
            estimates[name] = mean_estimate(values[i], means[:, i], drives.logs)
        return Alignment(endpoint, source, float(event.sum() / max(1, valid.sum())), int(valid.sum()), **estimates)

    where = {(s, n): [place[e.name, s, n] for e in mean_of] for s in sources for n in STATISTICS}
    macro = {s: {n: _macro(values, means, drives.logs, where[s, n]) for n in STATISTICS} for s in sources}
    less_teacher = {
        s: {n: _macro(values, means, drives.logs, where[s, n], where["teacher", n]) for n in STATISTICS}
        for s in sources
        if s != "teacher" and "teacher" in drives.scores
    }
    rows = tuple(alignment(endpoint, source) for endpoint in endpoints for source in sources)
    events = {e.name: count_events(drives, e) for e in endpoints}
    return Aligned(reading, len(drives.tokens), rows, macro, less_teacher, events)


def measure_all(
    drives: Drives, endpoints: Sequence[Endpoint], found: Mapping[str, np.ndarray], seed: int
) -> dict[tuple[str, str], EndpointRows]:
    """Rows by endpoint and source, the controls among the sources."""
    measured = {}
    for e in endpoints:
        ticks = measure(score_of(drives, "clock", e), found[e.name], e, seed)
        for source in (*drives.scores, *CONTROLS):
            score = score_of(drives, source, e)
            rows = ticks if source == "clock" else measure(score, found[e.name], e, seed)
            rho, auprc = other_drives(score, found[e.name], e.threshold, drives.logs, seed)
            measured[e.name, source] = replace(
                rows, other=rho, other_auprc=auprc, less_clock=rows.rho - ticks.rho, less_other=rows.rho - rho
            )
    return measured


def score_of(drives: Drives, source: str, endpoint: Endpoint) -> np.ndarray:
    """(N, T) what a source or control says about an endpoint; NaN where it says nothing."""
    if source == "clock":
        return clock(drives.lengths, drives.severity[endpoint.series].shape[1])
    if source == "persistence":
        return drives.severity[endpoint.persistence]
    return drives.channel(source, endpoint.channel)


def count_events(drives: Drives, endpoint: Endpoint) -> Events:
    """Unbroken stretches of samples above the threshold, and the drives and logs that have any."""
    above = np.nan_to_num(drives.severity[endpoint.series], nan=-np.inf) > endpoint.threshold
    begins = above.copy()
    begins[:, 1:] &= ~above[:, :-1]
    having = np.flatnonzero(above.any(1))
    return Events(int(begins.sum()), len(having), len({drives.logs[i] for i in having}))


def _macro(
    values: np.ndarray,
    means: np.ndarray,
    logs: Sequence[str],
    ours: Sequence[int],
    theirs: Sequence[int] | None = None,
) -> Estimate:
    """Mean over the endpoints of ours, or of ours minus theirs over the endpoints that both have, from the same draws.

    values (K, N) and their resampled means (R, K); ours and theirs are rows of them.
    """
    centre, drawn = known_mean(values[ours]), means[:, ours]
    if theirs is not None:
        centre, drawn = centre - known_mean(values[theirs]), drawn - means[:, theirs]
    known = ~np.isnan(values[ours][~np.isnan(centre)]).all(0)
    return macro_estimate(centre, drawn, int(known.sum()), len({log for log, k in zip(logs, known) if k}))


def measure(score: np.ndarray, risk: np.ndarray, endpoint: Endpoint, seed: int = 0) -> EndpointRows:
    """score and risk (N, T), NaN where a frame does not count; what compares drives is left open."""
    valid = ~np.isnan(risk) & ~np.isnan(score)
    risk, score = np.where(valid, risk, 0.0), np.where(valid, score, 0.0)
    event = (risk > endpoint.threshold) & valid
    score_ranks, risk_ranks = ranks(score, valid), ranks(risk, valid)
    auprc = average_precision(score, event, valid)
    nothing = np.full(len(score), np.nan)
    rate = event.sum(1) / np.maximum(valid.sum(1), 1)
    return EndpointRows(
        rho=enough(correlation(score_ranks, risk_ranks, valid), valid),
        shuffled=enough(shuffled_correlation(score_ranks, risk_ranks, valid, seed), valid),
        auprc=auprc,
        chance=np.where(np.isnan(auprc), np.nan, rate),
        lift=lift(score, event, valid, TOP_SHARE),
        other=nothing,
        other_auprc=nothing,
        less_clock=nothing,
        less_other=nothing,
    )


def shuffled_correlation(a: np.ndarray, b: np.ndarray, valid: np.ndarray, seed: int) -> np.ndarray:
    """(N,) mean correlation over permutations of `a` among the valid frames of its own row.

    A permutation changes neither mean nor spread, so only the products are summed anew.
    """
    da, db = deviations(a, valid), deviations(b, valid)
    scale = np.sqrt((da**2).sum(1) * (db**2).sum(1))
    order = np.argsort(~valid, axis=1, kind="stable")  # valid frames first
    da, db = np.take_along_axis(da, order, 1), np.take_along_axis(db, order, 1)
    product = shuffled_product(da, db, valid.sum(1), SHUFFLES, np.random.default_rng([seed, 7]))
    return np.divide(product, scale, out=np.full(len(a), np.nan), where=scale > 0)


@njit(cache=True, nogil=True)
def shuffled_product(
    a: np.ndarray, b: np.ndarray, count: np.ndarray, shuffles: int, draw: np.random.Generator
) -> np.ndarray:
    """(N,) mean over `shuffles` of sum(permuted a * b), both over the first count[i] frames of row i."""
    out = np.zeros(len(a))
    for i in range(len(a)):
        mixed = a[i].copy()
        for _ in range(shuffles):
            for k in range(count[i] - 1, 0, -1):  # Fisher and Yates
                other = int(draw.random() * (k + 1))
                mixed[k], mixed[other] = mixed[other], mixed[k]
            for k in range(count[i]):
                out[i] += mixed[k] * b[i, k]
    return out / shuffles


@dataclass(frozen=True)
class CrossTable:
    """rho[i][j] of pressure i against risk j, and by risk what the matched pressure has more than the best other."""

    source: str
    rules: tuple[str, ...]
    rho: tuple[tuple[Estimate, ...], ...]  # M rows of 7
    best: tuple[str, ...]  # (7,) the rule with the highest rho for each risk
    lead: tuple[Estimate, ...]  # (7,) matched minus best other, paired by scenario


def cross_table(drives: Drives, source: str, seed: int = 0, resamples: int = RESAMPLES) -> CrossTable:
    """Is the matched pressure the one that predicts a risk best? Temporal Spearman of all pairs."""
    found, count = risks(drives), len(drives.rules)
    values = np.stack(
        [temporal_spearman(drives.channel(source, rule), found[e.name]) for rule in drives.rules for e in ENDPOINTS]
    ).reshape(count, len(ENDPOINTS), -1)
    means = means_of(values.reshape(count * len(ENDPOINTS), -1), seed, resamples, drives.logs)
    table = tuple(tuple(means[i * len(ENDPOINTS) : (i + 1) * len(ENDPOINTS)]) for i in range(count))
    centre = np.array([[cell.value for cell in row] for row in table])
    best, ahead = [], []
    for j, endpoint in enumerate(ENDPOINTS):
        mine = drives.rules.index(endpoint.channel)
        column = np.where(np.isnan(centre[:, j]), -np.inf, centre[:, j])
        best.append(drives.rules[int(column.argmax())] if np.isfinite(column).any() else "none")
        column[mine] = -np.inf
        ahead.append(values[mine, j] - values[int(column.argmax()), j])
    lead = means_of(np.stack(ahead), seed, resamples, drives.logs)
    return CrossTable(source, drives.rules, table, tuple(best), tuple(lead))
