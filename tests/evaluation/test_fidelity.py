"""Fidelity against scipy: the values, and every resample as if its frames were really there twice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from radp.evaluation.fidelity import PressureFrames, fidelity, fidelity_table, frames_of
from radp.runs.errors import BadInput
from radp.sim.rollout import Rollout, logged_agents
from tests.small_scenarios import small_scenario

RULES = ("collision", "lane", "speed")


def random_frames(seed: int = 0, scenarios: int = 7) -> PressureFrames:
    """Scenarios of different length, the first rule mostly zero (ties), the head a noisy teacher."""
    draw = np.random.default_rng(seed)
    scenario = np.repeat(np.arange(scenarios), draw.integers(5, 20, scenarios))
    exact = draw.exponential(size=(len(scenario), 3)).round(2)
    exact[:, 0] *= draw.random(len(exact)) < 0.3
    predicted = np.maximum(exact + draw.normal(0, 0.4, exact.shape), 0).round(2)
    return PressureFrames(RULES, predicted, exact, scenario, tuple(map(str, range(scenarios))))


def test_values_are_those_of_scipy_and_of_plain_means():
    frames = random_frames()
    found = fidelity(frames, "s", resamples=50)
    rho = [spearmanr(frames.predicted[:, i], frames.exact[:, i]).statistic for i in range(3)]
    assert [e.value for e in found.spearman] == pytest.approx(rho, abs=1e-12)
    assert found.macro_spearman.value == pytest.approx(np.mean(rho), abs=1e-12)
    assert found.macro_mae.value == pytest.approx(np.abs(frames.predicted - frames.exact).mean())
    agree = [t.argmax() == e.argmax() for t, e in zip(frames.predicted, frames.exact)]
    assert found.top1.value == pytest.approx(np.mean(agree))
    assert found.frames == len(frames.predicted) and found.top1.count == 7
    assert all(e.low <= e.value <= e.high for e in (found.macro_spearman, found.macro_mae, found.top1))


def test_intervals_are_percentiles_over_whole_scenarios():
    frames = random_frames(5)
    found = fidelity(frames, resamples=400)
    draw, means = np.random.default_rng([0, 7]), []
    errors = np.abs(frames.predicted - frames.exact).mean(1)
    for drawn in draw.integers(0, 7, (400, 7)):
        rows = np.concatenate([np.flatnonzero(frames.scenario == s) for s in drawn])
        means.append(errors[rows].mean())
    assert (found.macro_mae.low, found.macro_mae.high) == pytest.approx(tuple(np.percentile(means, (2.5, 97.5))))


def test_egos_of_one_log_are_drawn_together():
    frames = random_frames(6)
    once = fidelity(frames, resamples=400)
    copied = PressureFrames(
        RULES, *(np.tile(values, (2, 1)) for values in (frames.predicted, frames.exact)),
        np.concatenate((frames.scenario, frames.scenario + 7)), frames.logs * 2,
    )  # fmt: skip
    twice = fidelity(copied, resamples=400)  # as one scenario each they would seem to be twice as many
    for name in ("macro_spearman", "macro_mae", "top1"):
        a, b = getattr(once, name), getattr(twice, name)
        assert (a.value, a.low, a.high) == pytest.approx((b.value, b.low, b.high), abs=1e-12)
        assert (a.count, b.count, b.groups) == (7, 14, 7)


def test_a_constant_rule_has_no_rank_and_is_left_out_of_the_macro():
    frames = random_frames()
    flat = replace(frames, exact=np.where([True, True, False], frames.exact, 0.0))
    found = fidelity(flat, resamples=20)
    assert np.isnan(found.spearman[2].value)
    assert found.macro_spearman.value == pytest.approx(np.mean([e.value for e in found.spearman[:2]]))
    assert "n/a" in fidelity_table([found]) and found.to_json()["rules"]["speed"]["spearman"]["value"] is None


def drive(**fields) -> Rollout:
    scenario = small_scenario()
    window = slice(scenario.start, scenario.start + 4)
    return Rollout(scenario, scenario.time_us[window], scenario.ego[window], logged_agents(scenario, 4), **fields)


def test_frames_are_those_with_both_pressures_and_the_rules_that_the_head_knows():
    predicted = np.random.default_rng(0).random((4, 3))
    predicted[:, 1] = np.nan
    rollout = drive(pressures=predicted, exact_pressures=predicted + 1, rules=RULES)
    frames = frames_of([rollout, drive(failure="step 0: lost"), rollout])
    assert frames.rules == ("collision", "speed") and frames.scenario.tolist() == [0] * 4 + [1] * 4
    np.testing.assert_array_equal(frames.exact, np.tile(predicted[:, [0, 2]] + 1, (2, 1)))
    with pytest.raises(BadInput, match="the planner has no head"):
        frames_of([drive(exact_pressures=predicted, rules=RULES)])
    with pytest.raises(BadInput, match="the teacher was not asked"):
        frames_of([drive(pressures=predicted, rules=RULES)])
    with pytest.raises(BadInput, match="no drives"):
        frames_of([])
