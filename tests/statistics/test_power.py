"""Standard errors and power against scipy, simulation, and a table of sample sizes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm, sem, ttest_1samp

from radp.statistics.bootstrap import mean_of, paired_difference
from radp.statistics.power import ERRORS, smallest_difference, standard_error


def test_the_standard_error_is_scipys_where_scenarios_are_alone():
    values = np.random.default_rng(0).random(50)
    values[::7] = np.nan
    assert standard_error(values) == pytest.approx(sem(values, nan_policy="omit"), rel=1e-12)
    assert standard_error(values, np.arange(50).astype(str)) == pytest.approx(standard_error(values), rel=1e-12)
    assert np.isnan(standard_error(np.array([1.0, np.nan]))) and np.isnan(standard_error(np.arange(4.0), list("aaaa")))


def test_the_clustered_error_is_that_of_the_means_of_equal_logs():
    draw = np.random.default_rng(1)
    values = np.repeat(draw.random(30), 4) + draw.normal(0, 0.2, 120)
    logs = np.repeat(np.arange(30), 4)
    expected = sem(values.reshape(30, 4).mean(1))
    assert standard_error(values, logs) == pytest.approx(expected, rel=1e-12)
    order = draw.permutation(120)
    assert standard_error(values[order], logs[order]) == pytest.approx(expected, rel=1e-12)


def test_the_clustered_error_of_unequal_logs_is_the_spread_of_the_mean():
    """Against 4,000 sets of made data; the deviation of 4,000 means is known to 1.1 percent."""
    draw = np.random.default_rng(2)
    logs = np.repeat(np.arange(60), draw.integers(1, 9, 60))
    sets = draw.normal(size=(4000, 60))[:, logs] + draw.normal(size=(4000, len(logs)))
    errors = [standard_error(values, logs) for values in sets[:400]]
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(sets.mean(1).std(), rel=0.06)


def test_a_difference_of_that_size_is_shown_in_80_percent():
    """Test at 5 percent on data with a true difference of that size: 80 percent of 2,000, give or take 3."""
    assert pytest.approx(norm.ppf(0.975) + norm.ppf(0.8), rel=1e-12) == ERRORS
    draw = np.random.default_rng(3)
    noise = draw.normal(0, 0.3, (2000, 200))
    true = smallest_difference(0.3 / np.sqrt(200))
    shown = ttest_1samp(noise + true, 0.0, axis=1).pvalue < 0.05
    assert shown.mean() == pytest.approx(0.80, abs=0.03)


# Share p of the scenarios in which exactly one of two planners collides -> scenarios needed for a difference d of the
# collision score in points, n = 7.85 (p - d^2) / d^2; and what 280, 560 and 1,120 scenarios show when d is 0 in them.
NEEDED = {
    0.03: ({1: 2347, 2: 581, 3: 254, 5: 87}, (2.9, 2.1, 1.4)),
    0.05: ({1: 3917, 2: 974, 3: 429, 5: 150}, (3.7, 2.6, 1.9)),
    0.08: ({1: 6272, 2: 1562, 3: 690, 5: 244}, (4.7, 3.3, 2.4)),
    0.15: ({1: 11770, 2: 2936, 3: 1300, 5: 463}, (6.5, 4.6, 3.2)),
}


def collisions(scenarios: int, only_one: float, difference: float) -> tuple[np.ndarray, np.ndarray]:
    """Collision scores of two planners that differ in `only_one` of the scenarios, and by `difference` on average."""
    better = round(scenarios * (only_one + difference) / 2)
    worse = round(scenarios * (only_one - difference) / 2)
    a, b = np.ones(scenarios), np.ones(scenarios)
    b[:better], a[better : better + worse] = 0.0, 0.0
    return a, b


@pytest.mark.parametrize("only_one", NEEDED)
def test_the_table_of_sample_sizes(only_one):
    needed, shown = NEEDED[only_one]
    for points, scenarios in needed.items():
        d = points / 100
        assert ERRORS**2 * (only_one - d**2) / d**2 == pytest.approx(scenarios, rel=5e-4, abs=1)
        if d > only_one:
            continue  # planners that differ in 3 % of the scenarios cannot differ by 5 points
        ours, base = collisions(scenarios, only_one, d)
        share, d = np.abs(ours - base).mean(), (ours - base).mean()  # as whole scenarios let them be
        found = paired_difference(ours, base, resamples=10)
        assert found.smallest_difference == pytest.approx(np.sqrt(7.85 * (share - d**2) / scenarios), rel=0.01)
        assert found.smallest_difference == pytest.approx(points / 100, rel=0.05)
    for scenarios, points in zip((280, 560, 1120), shown):
        ours, base = collisions(scenarios, only_one, 0.0)
        share = np.abs(ours - base).mean()  # in whole pairs of scenarios
        found = 100 * paired_difference(ours, base, resamples=10).smallest_difference * np.sqrt(only_one / share)
        assert found == pytest.approx(points, abs=0.06)  # the table has one decimal


def test_values_that_do_not_vary_say_nothing_about_power():
    assert np.isnan(mean_of(np.ones(20)).smallest_difference) and mean_of(np.ones(20)).error == 0.0
    assert np.isnan(smallest_difference(np.nan))
