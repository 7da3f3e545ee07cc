"""Ranks and rank correlation of many series at once, and of resampled frames.

Series are rows (N, T), and a mask of the same shape says which of their frames count; each row gives one value, NaN
where it is not defined.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from radp.geometry.compiled import kernel


def ranks(
    values: np.ndarray, valid: np.ndarray | bool = True, method: Literal["average", "max"] = "average"
) -> np.ndarray:
    """Ranks from 1 among the valid, finite frames of each row, 0 elsewhere; ties share their mean or largest rank."""
    from scipy.stats import rankdata  # half as long to load as torch; most commands rank nothing

    return np.where(valid, rankdata(np.where(valid, values, np.inf), method, axis=-1), 0.0)


def spearman(a: np.ndarray, b: np.ndarray, valid: np.ndarray | None = None) -> np.ndarray:
    """(N,) rank correlation of a and b over the valid frames, without a mask all; NaN where either is constant."""
    valid = np.ones(a.shape, dtype=bool) if valid is None else valid
    return correlation(ranks(a, valid), ranks(b, valid), valid)


def correlation(a: np.ndarray, b: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """(N,) Pearson correlation over the valid frames; NaN where either is constant or nothing is valid."""
    da, db = deviations(a, valid), deviations(b, valid)
    scale = np.sqrt((da**2).sum(1) * (db**2).sum(1))
    return np.divide((da * db).sum(1), scale, out=np.full(len(a), np.nan), where=scale > 0)


def deviations(values: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """(N, T) differences from the row's mean over its valid frames, 0 elsewhere."""
    count = np.maximum(valid.sum(1, keepdims=True), 1)
    return np.where(valid, values - np.where(valid, values, 0.0).sum(1, keepdims=True) / count, 0.0)


def resampled_spearman(a: np.ndarray, b: np.ndarray, group: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """a, b (F, M) values, group (F,) of each frame, counts (R, G) how often each group is drawn -> (R, M).

    A group drawn twice counts as if its frames were there twice. Frames are sorted once; each resample then needs one
    walk along them. NaN where either column is constant.
    """
    out = np.full((len(counts), a.shape[1]), np.nan)
    group = np.ascontiguousarray(group, dtype=np.int64)
    weights = np.ascontiguousarray(counts, dtype=np.float64)
    for m in range(a.shape[1]):
        place_a, scratch_a = _sorted(a[:, m]), np.zeros(len(a))
        place_b, scratch_b = _sorted(b[:, m]), np.zeros(len(a))
        column = np.full(len(counts), np.nan)
        _correlations(*place_a, *place_b, group, weights, scratch_a, scratch_b, column)
        out[:, m] = column
    return out


def _sorted(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Order of the frames by value, and where in that order a new value begins."""
    order = np.argsort(values, kind="stable")
    new = np.ones(len(values), dtype=np.bool_)
    new[1:] = values[order][1:] != values[order][:-1]
    return order, new


@kernel
def _correlations(
    order_a: np.ndarray, new_a: np.ndarray, order_b: np.ndarray, new_b: np.ndarray, group: np.ndarray,
    counts: np.ndarray, rank_a: np.ndarray, rank_b: np.ndarray, out: np.ndarray,
) -> None:  # fmt: skip
    """Spearman for each row of counts (R, G); rank_a and rank_b (F,) are scratch space."""
    for r in range(counts.shape[0]):
        total = _weighted_ranks(order_a, new_a, group, counts[r], rank_a)
        _weighted_ranks(order_b, new_b, group, counts[r], rank_b)
        middle = (total + 1.0) / 2.0  # the mean of ranks 1..total, ties or not
        product, square_a, square_b = 0.0, 0.0, 0.0
        for f in range(len(group)):
            weight = counts[r, group[f]]
            da, db = rank_a[f] - middle, rank_b[f] - middle
            product += weight * da * db
            square_a += weight * da * da
            square_b += weight * db * db
        if square_a > 0.0 and square_b > 0.0:
            out[r] = product / np.sqrt(square_a * square_b)


@kernel
def _weighted_ranks(
    order: np.ndarray, new: np.ndarray, group: np.ndarray, counts: np.ndarray, out: np.ndarray
) -> float:
    """Mean rank of every frame when frame f is there counts[group[f]] times; returns how many there are."""
    below, first = 0.0, 0
    while first < len(order):
        last, together = first, 0.0
        while last < len(order) and (last == first or not new[last]):
            together += counts[group[order[last]]]
            last += 1
        for k in range(first, last):
            out[order[k]] = below + (together + 1.0) / 2.0
        below += together
        first = last
    return below
