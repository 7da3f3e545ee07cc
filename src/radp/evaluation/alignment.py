"""Temporal alignment: does today's pressure foretell tomorrow's risk in the same drive? (appendix B)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numba import njit

from radp.evaluation.drives import Drives
from radp.evaluation.endpoints import ENDPOINTS, MIN_FRAMES, TOP_SHARE, Endpoint
from radp.evaluation.risk import future_risk
from radp.evaluation.series import average_precision, lift
from radp.statistics.bootstrap import RESAMPLES, known_mean, macro_estimate, mean_estimate, means_of, resample_means
from radp.statistics.estimate import Estimate
from radp.statistics.ranks import correlation, deviations, ranks, spearman

SHUFFLES = 20  # permutations averaged into the shuffled control of each scenario


@dataclass(frozen=True)
class EndpointRows:
    """What one source says about one endpoint in each of N scenarios, (N,) each; NaN where not eligible."""

    rho: np.ndarray  # temporal Spearman
    shuffled: np.ndarray  # the same with scores permuted within the scenario
    auprc: np.ndarray
    chance: np.ndarray  # positive rate of the scenarios that are eligible for AUPRC: what a random order scores
    lift: np.ndarray


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


@dataclass(frozen=True)
class Aligned:
    """All endpoints and sources of one run, with the seven endpoints averaged, and differences of those averages."""

    scenarios: int
    rows: tuple[Alignment, ...]
    macro: Mapping[str, Mapping[str, Estimate]]  # source -> statistic
    less_teacher: Mapping[str, Mapping[str, Estimate]]  # source -> statistic of source minus teacher, paired

    def row(self, endpoint: str, source: str) -> Alignment:
        return next(row for row in self.rows if (row.endpoint.name, row.source) == (endpoint, source))

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(self.macro)


def risks(drives: Drives) -> dict[str, np.ndarray]:
    """(N, T) risk of each endpoint; NaN where a frame does not count."""
    return {e.name: future_risk(drives.severity[e.name], drives.lengths, e) for e in ENDPOINTS}


def align(drives: Drives, seed: int = 0, resamples: int = RESAMPLES) -> Aligned:
    """All endpoints and sources; one set of scenario resamples serves every interval, so differences are paired."""
    found = risks(drives)
    measured = {
        (e.name, source): measure(drives.channel(source, e.channel), found[e.name], e, seed)
        for source in drives.scores
        for e in ENDPOINTS
    }
    values = np.stack([getattr(rows, name) for rows in measured.values() for name in STATISTICS])
    means = resample_means(values, seed, resamples, drives.logs)
    place = {
        (*key, name): i * len(STATISTICS) + k for i, key in enumerate(measured) for k, name in enumerate(STATISTICS)
    }

    def alignment(endpoint: Endpoint, source: str) -> Alignment:
        valid = ~np.isnan(found[endpoint.name]) & ~np.isnan(drives.channel(source, endpoint.channel))
        event = valid & (found[endpoint.name] > endpoint.threshold)
        estimates = {}
        for name in STATISTICS:
            i = place[endpoint.name, source, name]
            estimates[name] = mean_estimate(values[i], means[:, i], drives.logs)
        return Alignment(endpoint, source, float(event.sum() / max(1, valid.sum())), int(valid.sum()), **estimates)

    where = {(s, n): [place[e.name, s, n] for e in ENDPOINTS] for s in drives.scores for n in STATISTICS}
    macro = {s: {n: _macro(values, means, drives.logs, where[s, n]) for n in STATISTICS} for s in drives.scores}
    less_teacher = {
        s: {n: _macro(values, means, drives.logs, where[s, n], where["teacher", n]) for n in STATISTICS}
        for s in drives.scores
        if s != "teacher" and "teacher" in drives.scores
    }
    rows = tuple(alignment(endpoint, source) for endpoint in ENDPOINTS for source in drives.scores)
    return Aligned(len(drives.tokens), rows, macro, less_teacher)


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
    """score and risk (N, T), NaN where a frame does not count."""
    valid = ~np.isnan(risk) & ~np.isnan(score)
    risk, score = np.where(valid, risk, 0.0), np.where(valid, score, 0.0)
    event = (risk > endpoint.threshold) & valid
    score_ranks, risk_ranks = ranks(score, valid), ranks(risk, valid)
    auprc = average_precision(score, event, valid)
    rate = event.sum(1) / np.maximum(valid.sum(1), 1)
    return EndpointRows(
        rho=_enough(correlation(score_ranks, risk_ranks, valid), valid),
        shuffled=_enough(shuffled_correlation(score_ranks, risk_ranks, valid, seed), valid),
        auprc=auprc,
        chance=np.where(np.isnan(auprc), np.nan, rate),
        lift=lift(score, event, valid, TOP_SHARE),
    )


def _enough(values: np.ndarray, valid: np.ndarray) -> np.ndarray:
    return np.where(valid.sum(1) >= MIN_FRAMES, values, np.nan)


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


def temporal_spearman(score: np.ndarray, risk: np.ndarray) -> np.ndarray:
    """(N, T), NaN where a frame does not count -> (N,); NaN with fewer than 20 valid frames or a constant series."""
    valid = ~np.isnan(risk) & ~np.isnan(score)
    risk, score = np.where(valid, risk, 0.0), np.where(valid, score, 0.0)
    return _enough(spearman(score, risk, valid), valid)
