"""The bootstrap against its definition, scipy, and what intervals promise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import bootstrap

from radp.statistics.bootstrap import (
    draws,
    known_mean,
    macro_estimate,
    mean_of,
    means_of,
    paired_difference,
    resample_means,
)
from radp.statistics.estimate import LEGEND, Estimate, difference, interval


def test_the_definition():
    """Scenarios drawn one by one from a generator of seed and number of groups; percentiles of their means."""
    values = np.random.default_rng(0).random(280)
    places = np.random.default_rng([3, 280]).integers(0, 280, (10_000, 280))
    low, high = np.percentile(values[places].mean(1), (2.5, 97.5))
    found = mean_of(values, seed=3)
    assert (found.value, found.low, found.high) == pytest.approx((values.mean(), low, high), abs=1e-12)
    assert sum(len(counts) for counts in draws(7, resamples=1234)) == 1234


def test_intervals_equal_scipy_within_chance():
    """An end of the interval is a quantile of 10,000 draws: about 0.02 standard errors of chance in each program."""
    values = np.random.default_rng(1).beta(4.0, 1.0, 200)
    other = np.clip(values + np.random.default_rng(2).normal(0.01, 0.05, 200), 0, 1)
    for mine, data in ((mean_of(values), values), (paired_difference(other, values), other - values)):
        theirs = bootstrap((data,), np.mean, n_resamples=10_000, method="percentile", rng=np.random.default_rng(4))
        within = 0.15 * data.std() / np.sqrt(200)
        assert mine.low == pytest.approx(theirs.confidence_interval.low, abs=within)
        assert mine.high == pytest.approx(theirs.confidence_interval.high, abs=within)
        assert mine.error == pytest.approx(theirs.standard_error, rel=0.05)


def test_a_resample_is_a_mean_of_drawn_scenarios():
    values = np.array([[1.0, np.nan, 3.0], [np.nan] * 3])
    means = resample_means(values, resamples=2000)
    assert set(np.round(means[~np.isnan(means[:, 0]), 0], 6)) <= {1.0, 1.666667, 2.0, 2.333333, 3.0}
    assert 0.01 < np.isnan(means[:, 0]).mean() < 0.08  # (1/3)^3 of the draws hold only the missing one
    assert np.isnan(means[:, 1]).all() and means_of(values)[1].count == 0
    assert means_of(values)[0].value == 2.0 and means_of(np.empty((2, 0)))[1].count == 0


def test_draws_are_repeated_and_shared_by_all_rows():
    random = np.random.default_rng(5)
    values = random.random((3, 50))
    values[random.random(values.shape) < 0.3] = np.nan
    first, second = means_of(values), means_of(values)
    assert first == second and means_of(values, seed=1)[0].low != first[0].low
    alone = mean_of(values[1])
    assert (alone.low, alone.high) == pytest.approx((first[1].low, first[1].high), abs=1e-12)


def test_intervals_cover_the_mean_as_often_as_they_say():
    draw = np.random.default_rng(1)
    hits = [(e := mean_of(draw.normal(2.0, 1.0, 60), resamples=400)).low <= 2.0 <= e.high for _ in range(300)]
    assert 0.89 <= np.mean(hits) <= 0.99


def test_pairing_is_sharper_than_two_samples():
    base = np.random.default_rng(2).random(100)
    paired = paired_difference(base + 0.01, base)
    assert paired.excludes_zero and paired.value == pytest.approx(0.01)


def test_egos_of_one_log_are_drawn_together():
    draw = np.random.default_rng(3)
    by_log = np.repeat(draw.random(40), 10)  # ten egos that fare alike
    logs = np.repeat(np.arange(40), 10).astype(str)
    alone, together = mean_of(by_log), mean_of(by_log, groups=logs)
    assert together.value == alone.value and (together.count, together.groups) == (400, 40)
    width = (together.high - together.low) / (alone.high - alone.low)
    assert width == pytest.approx(np.sqrt(10), rel=0.1)
    each = mean_of(by_log, groups=draw.permutation(400).astype(str))  # one ego each: nothing changes
    assert (each.low, each.high) == pytest.approx((alone.low, alone.high), abs=1e-12)


def test_groups_are_drawn_as_scipy_draws_them():
    """Logs of equal size: the mean of their means is the mean, so scipy can resample those."""
    draw = np.random.default_rng(4)
    values = np.repeat(draw.random(60), 5) + draw.normal(0, 0.1, 300)
    mine = mean_of(values, groups=np.repeat(np.arange(60), 5))
    theirs = bootstrap((values.reshape(60, 5).mean(1),), np.mean, n_resamples=10_000, method="percentile", rng=draw)
    within = 0.15 * theirs.standard_error
    assert mine.low == pytest.approx(theirs.confidence_interval.low, abs=within)
    assert mine.high == pytest.approx(theirs.confidence_interval.high, abs=within)
    assert mine.error == pytest.approx(theirs.standard_error, rel=0.05)


def test_few_logs_show_nothing_however_many_egos():
    values = np.full(40, 0.3)
    assert mean_of(values, groups=np.arange(40)).excludes_zero
    assert not mean_of(values, groups=np.arange(40) % 4).excludes_zero


def test_macro_leaves_out_what_is_missing():
    values = np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan], [0.0, 0.0, 0.0]])
    found = macro_estimate(known_mean(values), resample_means(values), 3)
    assert found.value == pytest.approx(1.0) and found.low <= 1.0 <= found.high and found.count == 3
    assert np.isnan(macro_estimate(np.full(2, np.nan), np.full((9, 2), np.nan), 0).value)
    assert np.isnan(mean_of(np.array([np.nan])).value)


def test_figures_are_written_with_their_intervals():
    assert interval(Estimate(0.5, 0.25, 0.75, 4), 2, count=True) == "0.50 [0.25, 0.75] (n 4)"
    assert difference(Estimate(0.1, 0.05, 0.2, 5), 2) == "+0.10 [+0.05, +0.20]"
    assert difference(Estimate(0.1, 0.1, 0.1, 1), 2).endswith(": no difference shown")  # one scenario shows nothing
    assert difference(Estimate(0.1, -0.05, 0.2, 4), 2).endswith(": no difference shown")
    assert interval(Estimate(np.nan, np.nan, np.nan, 0)) == difference(Estimate(np.nan, np.nan, np.nan, 0)) == "n/a"


def test_the_smallest_difference_stands_beside_the_interval():
    """2.80 standard errors; none where the values do not vary."""
    assert interval(Estimate(0.5, 0.25, 0.75, 4, 0.1), 2) == "0.50 [0.25, 0.75] (d 0.28)"
    assert interval(Estimate(0.5, 0.25, 0.75, 4, 0.1), 1, 100, count=True) == "50.0 [25.0, 75.0] (n 4, d 28.0)"
    assert difference(Estimate(0.1, -0.05, 0.2, 9, 0.01), 1, 100) == "+10.0 [-5.0, +20.0] (d 2.8): no difference shown"
    assert interval(mean_of(np.ones(9)), 1, 100) == "100.0 [100.0, 100.0]"
    assert "80% power, two-sided 5%): 2.80 standard errors" in LEGEND


def test_json_has_no_nan():
    assert Estimate(0.5, 0.25, 0.75, 4).to_json() == {
        "value": 0.5, "low": 0.25, "high": 0.75, "error": None, "smallest_difference": None, "count": 4,
    }  # fmt: skip
