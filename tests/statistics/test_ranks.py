"""Batched and resampled ranks against scipy, ties and degenerate rows included."""

from __future__ import annotations

import warnings

import numpy as np
from hypothesis import given, settings
from scipy.stats import rankdata, spearmanr

from radp.statistics.ranks import ranks, resampled_spearman, spearman
from tests.statistics.made_series import tables


@settings(deadline=None)
@given(tables())
def test_ranks_equal_scipy(table):
    a, _, valid, _ = table
    for method in ("average", "max"):
        for row, mask, rank in zip(a, valid, ranks(a, valid, method)):
            np.testing.assert_array_equal(rank[mask], rankdata(row[mask], method))
            assert (rank[~mask] == 0).all()


@settings(deadline=None)
@given(tables())
def test_spearman_equals_scipy(table):
    a, b, valid, _ = table
    for i, mine in enumerate(spearman(a, b, valid)):
        x, y = a[i][valid[i]], b[i][valid[i]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = spearmanr(x, y).statistic if len(x) > 1 else np.nan
        np.testing.assert_allclose(mine, theirs, atol=1e-12)


def test_degenerate_rows_give_nan():
    one = np.array([[1.0, 0.0, 0.0]])
    assert np.isnan(spearman(one, one, np.array([[True, False, False]])))
    assert np.isnan(spearman(np.zeros((1, 10)), np.arange(10.0)[None]))


def test_a_resample_is_scipy_on_repeated_frames():
    """Groups of different size, the first column mostly zero."""
    draw = np.random.default_rng(3)
    group = np.repeat(np.arange(7), draw.integers(5, 20, 7))
    a = draw.exponential(size=(len(group), 3)).round(2)
    a[:, 0] *= draw.random(len(a)) < 0.3
    b = (a + draw.normal(0, 0.4, a.shape)).round(1)
    counts = draw.multinomial(7, np.full(7, 1 / 7), size=20)
    for row, drawn in zip(resampled_spearman(a, b, group, counts), counts):
        rows = np.concatenate([np.flatnonzero(group == g) for g in range(7) for _ in range(drawn[g])])
        expected = [spearmanr(a[rows, i], b[rows, i]).statistic for i in range(3)]
        np.testing.assert_allclose(row, expected, atol=1e-12)
    once = resampled_spearman(a, b, group, np.ones((1, 7)))[0]
    np.testing.assert_allclose(once, spearman(a.T, b.T), atol=1e-12)
    assert np.isnan(resampled_spearman(np.zeros_like(a), b, group, counts)).all()
