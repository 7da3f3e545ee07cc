"""The batched statistics against scipy and sklearn, ties and degenerate rows included."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata, spearmanr
from sklearn.metrics import average_precision_score

from radp.evaluation.series import average_precision, lift, ranks, spearman


@st.composite
def tables(draw):
    rows, frames = draw(st.integers(1, 6)), draw(st.integers(1, 40))
    levels = draw(st.sampled_from([2, 5, 1000]))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    a, b = rng.integers(0, levels, (2, rows, frames)) / levels
    return a, b, rng.random((rows, frames)) < draw(st.sampled_from([0.3, 0.9, 1.0])), rng.random((rows, frames)) < 0.3


@settings(deadline=None)
@given(tables())
def test_ranks_equal_scipy(table):
    a, _, valid, _ = table
    mine = ranks(a, valid)
    for row, mask, rank in zip(a, valid, mine):
        np.testing.assert_array_equal(rank[mask], rankdata(row[mask]))
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


@settings(deadline=None)
@given(tables())
def test_average_precision_equals_sklearn(table):
    a, _, valid, event = table
    for i, mine in enumerate(average_precision(a, event, valid)):
        x, y = a[i][valid[i]], event[i][valid[i]]
        if y.any() and not y.all():
            np.testing.assert_allclose(mine, average_precision_score(y, x), atol=1e-12)
        else:
            assert np.isnan(mine)


@settings(deadline=None, max_examples=50)
@given(tables(), st.integers(0, 100))
def test_lift_is_the_mean_over_random_tie_breaks(table, seed):
    a, _, valid, event = table
    mine = lift(a, event, valid)
    rng = np.random.default_rng(seed)
    for i, value in enumerate(mine):
        x, y = a[i][valid[i]], event[i][valid[i]]
        if not y.any() or y.all():
            assert np.isnan(value)
            continue
        top = int(np.ceil(0.1 * len(x) - 1e-9))
        draws = [y[np.lexsort((rng.random(len(x)), -x))[:top]].mean() / y.mean() for _ in range(400)]
        spread = np.std(draws) / 20
        assert abs(value - np.mean(draws)) < 6 * spread + 1e-9


def test_degenerate_rows_give_nan():
    one = np.array([[1.0, 0.0, 0.0]])
    mask = np.array([[True, False, False]])
    event = np.array([[True, False, False]])
    assert (
        np.isnan(spearman(one, one, mask))
        and np.isnan(average_precision(one, event, mask))
        and np.isnan(lift(one, event, mask))
    )
    flat = np.zeros((1, 10))
    everywhere = np.ones((1, 10), dtype=bool)
    assert np.isnan(spearman(flat, np.arange(10.0)[None], everywhere))


def test_lift_of_a_perfect_score():
    score = np.arange(50.0)[None]
    event = score >= 45
    assert lift(score, event, np.ones((1, 50), dtype=bool))[0] == pytest.approx(10.0)
