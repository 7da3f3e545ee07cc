"""Average precision and lift against sklearn, ties and degenerate rows included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from radp.evaluation.series import average_precision, lift
from tests.statistics.made_series import tables


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
    assert np.isnan(average_precision(one, event, mask)) and np.isnan(lift(one, event, mask))


def test_lift_of_a_perfect_score():
    score = np.arange(50.0)[None]
    event = score >= 45
    assert lift(score, event, np.ones((1, 50), dtype=bool))[0] == pytest.approx(10.0)
