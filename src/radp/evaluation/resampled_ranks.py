"""Rank correlation of resampled frames: a scenario drawn twice counts as if its frames were there twice."""

from __future__ import annotations

import numpy as np

from radp.geometry.compiled import kernel


def resampled_spearman(a: np.ndarray, b: np.ndarray, group: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """a, b (F, M) values, group (F,) scenario of each frame, counts (R, S) how often each is drawn -> (R, M).

    Frames are sorted once; each resample then needs one walk along them. NaN where either column is constant.
    """
    out = np.full((len(counts), a.shape[1]), np.nan)
    scenario = np.ascontiguousarray(group, dtype=np.int64)
    weights = np.ascontiguousarray(counts, dtype=np.float64)
    for m in range(a.shape[1]):
        place_a, scratch_a = _sorted(a[:, m]), np.zeros(len(a))
        place_b, scratch_b = _sorted(b[:, m]), np.zeros(len(a))
        column = np.full(len(counts), np.nan)
        _correlations(*place_a, *place_b, scenario, weights, scratch_a, scratch_b, column)
        out[:, m] = column
    return out


def _sorted(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Order of the frames by value, and where in that order a new value begins."""
    order = np.argsort(values, kind="stable")
    new = np.ones(len(values), dtype=np.bool_)
    new[1:] = values[order][1:] != values[order][:-1]
    return order, new


@kernel
def _correlations(order_a, new_a, order_b, new_b, scenario, counts, rank_a, rank_b, out):
    """Spearman for each row of counts (R, S); rank_a and rank_b (F,) are scratch space."""
    for r in range(counts.shape[0]):
        total = _ranks(order_a, new_a, scenario, counts[r], rank_a)
        _ranks(order_b, new_b, scenario, counts[r], rank_b)
        middle = (total + 1.0) / 2.0  # the mean of ranks 1..total, ties or not
        product, square_a, square_b = 0.0, 0.0, 0.0
        for f in range(len(scenario)):
            weight = counts[r, scenario[f]]
            da, db = rank_a[f] - middle, rank_b[f] - middle
            product += weight * da * db
            square_a += weight * da * da
            square_b += weight * db * db
        if square_a > 0.0 and square_b > 0.0:
            out[r] = product / np.sqrt(square_a * square_b)


@kernel
def _ranks(order, new, scenario, counts, out):
    """Mean rank of every frame when frame f is there counts[scenario[f]] times; returns how many there are."""
    below, first = 0.0, 0
    while first < len(order):
        last, together = first, 0.0
        while last < len(order) and (last == first or not new[last]):
            together += counts[scenario[order[last]]]
            last += 1
        for k in range(first, last):
            out[order[k]] = below + (together + 1.0) / 2.0
        below += together
        first = last
    return below
