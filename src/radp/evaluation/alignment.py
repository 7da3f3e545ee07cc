"""Temporal alignment: does today's pressure foretell tomorrow's risk in the same drive? (appendix B)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from radp.evaluation.endpoints import ENDPOINTS, MIN_FRAMES, RESAMPLES, TOP_SHARE, Endpoint
from radp.evaluation.intervals import Estimate, macro_of, mean_of
from radp.evaluation.risk import future_risk
from radp.evaluation.series import average_precision, lift, spearman

SHUFFLES = 20  # permutations averaged into the shuffled control of each scenario


@dataclass(frozen=True)
class Drives:
    """N drives of at most T frames: pressure by source (N, T, M), severity by endpoint (N, T); NaN = none."""

    rules: tuple[str, ...]
    pressure: Mapping[str, np.ndarray]
    severity: Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Alignment:
    """One endpoint and one source."""

    endpoint: Endpoint
    source: str
    positive_rate: float  # of all valid frames
    rho: Estimate  # temporal Spearman, mean over eligible scenarios
    shuffled: Estimate  # the same with pressures permuted within each scenario
    auprc: Estimate
    lift: Estimate


def stack(series: Sequence[np.ndarray]) -> np.ndarray:
    """Series of different length as rows, filled up with NaN."""
    longest = max((len(s) for s in series), default=0)
    out = np.full((len(series), longest, *series[0].shape[1:]), np.nan) if series else np.zeros((0, 0))
    for row, values in zip(out, series):
        row[: len(values)] = values
    return out


def risks(drives: Drives) -> dict[str, np.ndarray]:
    """(N, T) risk of each endpoint; NaN where a frame does not count."""
    return {
        endpoint.name: np.stack([_risk_of_row(row, endpoint) for row in drives.severity[endpoint.name]])
        for endpoint in ENDPOINTS
    }


def _risk_of_row(severity: np.ndarray, endpoint: Endpoint) -> np.ndarray:
    length = int((~np.isnan(severity)).sum())
    out = np.full(len(severity), np.nan)
    out[:length] = future_risk(severity[:length], endpoint)
    return out


def align(drives: Drives, seed: int = 0, resamples: int = RESAMPLES) -> list[Alignment]:
    """All endpoints and sources, each with scenario-bootstrap intervals."""
    found = risks(drives)
    out = []
    for endpoint in ENDPOINTS:
        for source, pressure in drives.pressure.items():
            score = pressure[..., drives.rules.index(endpoint.channel)]
            out.append(_align(endpoint, source, score, found[endpoint.name], seed, resamples))
    return out


def _align(
    endpoint: Endpoint, source: str, score: np.ndarray, risk: np.ndarray, seed: int, resamples: int
) -> Alignment:
    valid = ~np.isnan(risk) & ~np.isnan(score)
    risk, score = np.where(valid, risk, 0.0), np.where(valid, score, 0.0)
    event = (risk > endpoint.threshold) & valid
    return Alignment(
        endpoint=endpoint,
        source=source,
        positive_rate=float(event.sum() / max(1, valid.sum())),
        rho=mean_of(temporal_spearman(score, risk, valid), seed, resamples),
        shuffled=mean_of(shuffled_spearman(score, risk, valid, seed), seed, resamples),
        auprc=mean_of(average_precision(score, event, valid), seed, resamples),
        lift=mean_of(lift(score, event, valid, TOP_SHARE), seed, resamples),
    )


def temporal_spearman(score: np.ndarray, risk: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """(N,) Spearman of each scenario; NaN with fewer than 20 valid frames or a constant series."""
    return np.where(valid.sum(1) >= MIN_FRAMES, spearman(score, risk, valid), np.nan)


def shuffled_spearman(score: np.ndarray, risk: np.ndarray, valid: np.ndarray, seed: int) -> np.ndarray:
    """(N,) the control: pressures permuted among the valid frames of their own scenario."""
    draw = np.random.default_rng([seed, 7])
    total = np.zeros(len(score))
    order = np.argsort(~valid, axis=1, kind="stable")  # valid frames first
    row = np.arange(len(score))[:, None]
    for _ in range(SHUFFLES):
        keys = np.where(valid[row, order], draw.random(score.shape), 2.0)
        mixed = np.zeros_like(score)
        mixed[row, order] = score[row, order[row, np.argsort(keys, axis=1)]]
        total += temporal_spearman(mixed, risk, valid)
    return total / SHUFFLES


def macro(alignments: Sequence[Alignment], drives: Drives, source: str, seed: int = 0) -> Estimate:
    """rho averaged over the seven endpoints, resampling scenarios once for all of them."""
    found = risks(drives)
    rows = []
    for endpoint in ENDPOINTS:
        risk, score = found[endpoint.name], drives.pressure[source][..., drives.rules.index(endpoint.channel)]
        valid = ~np.isnan(risk) & ~np.isnan(score)
        rows.append(temporal_spearman(np.where(valid, score, 0.0), np.where(valid, risk, 0.0), valid))
    return macro_of(np.stack(rows), seed)


def cross_table(drives: Drives, source: str) -> np.ndarray:
    """(M, 7) mean temporal Spearman of pressure i against risk j: is the matched risk the best one?"""
    found = risks(drives)
    table = np.full((len(drives.rules), len(ENDPOINTS)), np.nan)
    for i in range(len(drives.rules)):
        for j, endpoint in enumerate(ENDPOINTS):
            risk, score = found[endpoint.name], drives.pressure[source][..., i]
            valid = ~np.isnan(risk) & ~np.isnan(score)
            rho = temporal_spearman(np.where(valid, score, 0.0), np.where(valid, risk, 0.0), valid)
            if (~np.isnan(rho)).any():
                table[i, j] = np.nanmean(rho)
    return table
