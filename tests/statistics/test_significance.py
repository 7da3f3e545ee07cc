"""p of resamples, and Holm's adjustment against a plain loop."""

from __future__ import annotations

import numpy as np
import pytest

from radp.statistics.significance import bootstrap_p, holm


def test_p_is_twice_the_smaller_tail():
    drawn = np.concatenate((np.full(30, -1.0), np.full(969, 1.0), [np.nan]))
    assert bootstrap_p(drawn) == pytest.approx(2 * 31 / 1000)
    assert bootstrap_p(np.ones(999)) == pytest.approx(2 / 1000)
    assert bootstrap_p(np.zeros(99)) == 1.0 and np.isnan(bootstrap_p(np.array([np.nan])))


def test_p_of_a_difference_that_is_not_there_is_even():
    draw = np.random.default_rng(0)
    found = []
    for _ in range(400):
        values = draw.normal(size=60)
        found.append(bootstrap_p(draw.choice(values, (300, 60)).mean(1)))
    assert abs(np.mean(np.array(found) < 0.05) - 0.05) < 0.04


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.6, 0.7]) == pytest.approx([1.0, 1.0])
    found = holm([0.02, np.nan, 0.01])
    assert found[0] == pytest.approx(0.02) and np.isnan(found[1]) and found[2] == pytest.approx(0.02)
    assert holm([]) == []
