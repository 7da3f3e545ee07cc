"""Alignment against scipy and sklearn scenario by scenario; controls; rivals on a drive that is known."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score

from radp.evaluation.alignment import align, cross_table, measure, risks
from radp.evaluation.drives import Drives, stack
from radp.evaluation.endpoints import ENDPOINTS, Endpoint
from radp.report.alignment_tables import alignment_json, alignment_table, cross_as_table, rival_table

RULES = ("collision", "lane", "speed", "kinematics", "comfort", "goal")
EVENT = Endpoint("x", "x", 0.0, "max", 0.5, "")


def made_drives(count: int = 12, frames: int = 149, seed: int = 0) -> Drives:
    """Severities wander; the teacher sees its own risks with noise, the head a little less of them."""
    draw = np.random.default_rng(seed)
    lengths = draw.integers(100, frames + 1, count)
    inside = np.arange(frames) < lengths[:, None]
    severity = {
        e.name: np.where(inside, np.abs(draw.normal(size=(count, frames)).cumsum(1)) * 0.1, np.nan) for e in ENDPOINTS
    }
    plain = Drives(RULES, tuple(map(str, range(count))), lengths, {}, severity)
    found = risks(plain)
    truth = np.stack([np.nan_to_num(found[rule]) for rule in RULES], -1)
    scores = {
        name: np.where(inside[..., None], truth + draw.normal(size=truth.shape) * noise, np.nan)
        for name, noise in (("teacher", 0.05), ("head", 0.5))
    }
    return Drives(RULES, plain.tokens, lengths, scores, severity)


@pytest.mark.parametrize("levels", [2, 5, 1000])
def test_rows_equal_scipy_and_sklearn(levels):
    draw = np.random.default_rng(levels)
    score, risk = draw.integers(0, levels, (2, 30, 60)) / levels
    score[draw.random(score.shape) < 0.2] = np.nan
    risk[draw.random(risk.shape) < 0.2] = np.nan
    risk[0], score[1], risk[2], score[3, 5:] = 0.3, 0.7, 0.9, np.nan  # no events, constant, all events, few frames
    rows = measure(score, risk, EVENT)
    for i in range(30):
        valid = ~np.isnan(score[i]) & ~np.isnan(risk[i])
        a, b = score[i, valid], risk[i, valid]
        event = b > 0.5
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rho = spearmanr(a, b).statistic if len(a) >= 20 else np.nan
        np.testing.assert_allclose(rows.rho[i], rho, atol=1e-12)
        both = event.any() and not event.all()
        np.testing.assert_allclose(rows.auprc[i], average_precision_score(event, a) if both else np.nan, atol=1e-12)
        np.testing.assert_allclose(rows.chance[i], event.mean() if both else np.nan, atol=1e-12)
        assert np.isnan(rows.lift[i]) != both
    assert np.isnan(rows.rho[:4]).all() and np.isnan(rows.auprc[[0, 2]]).all()


def test_one_frame_gives_nothing():
    rows = measure(np.ones((2, 1)), np.ones((2, 1)), EVENT)
    assert all(np.isnan(getattr(rows, name)).all() for name in ("rho", "shuffled", "auprc", "chance", "lift"))


def test_shuffling_destroys_order_and_keeps_values():
    draw = np.random.default_rng(1)
    score = np.sort(draw.random((200, 100)), axis=1)
    rows = measure(score, score, EVENT, seed=3)
    assert rows.rho.min() == pytest.approx(1.0)
    assert abs(rows.shuffled.mean()) < 5 * rows.shuffled.std() / np.sqrt(200) and 0.01 < rows.shuffled.std() < 0.1
    np.testing.assert_array_equal(rows.shuffled, measure(score, score, EVENT, seed=3).shuffled)


def test_the_sharper_source_is_the_better_one_and_the_difference_is_reported():
    aligned = align(made_drives(), resamples=500)
    teacher, head = aligned.macro["teacher"]["rho"], aligned.macro["head"]["rho"]
    assert teacher.value > head.value > 0 and teacher.low <= teacher.value <= teacher.high
    assert aligned.less_teacher["head"]["rho"].high < 0
    assert aligned.less_teacher["head"]["rho"].value == pytest.approx(head.value - teacher.value)
    assert abs(aligned.macro["teacher"]["shuffled"].value) < 0.05


def test_rows_and_macro_equal_plain_means():
    drives = made_drives(6)
    aligned = align(drives, resamples=50)
    found = risks(drives)
    by_endpoint = []
    for e in ENDPOINTS:
        rows = measure(drives.channel("head", e.channel), found[e.name], e)
        one = aligned.row(e.name, "head")
        assert one.rho.value == pytest.approx(np.nanmean(rows.rho)) and one.rho.count == (~np.isnan(rows.rho)).sum()
        valid = ~np.isnan(found[e.name]) & ~np.isnan(drives.channel("head", e.channel))
        assert one.positive_rate == pytest.approx((found[e.name][valid] > e.threshold).mean())
        by_endpoint.append(np.nanmean(rows.rho))
    assert aligned.macro["head"]["rho"].value == pytest.approx(np.mean(by_endpoint))


def test_the_cross_table_finds_the_matched_pressure():
    cross = cross_table(made_drives(), "teacher", resamples=200)
    assert [len(row) for row in cross.rho] == [7] * 6
    matched = [e.channel == rule for e, rule in zip(ENDPOINTS, cross.best)]
    assert sum(matched) >= 6  # collision and TTC share a channel, but wander apart here
    lane = RULES.index("lane")
    assert cross.rho[lane][2].low > 0 and cross.lead[2].value > 0


def test_egos_of_one_log_are_drawn_together():
    drives = made_drives(12)
    shared = replace(drives, tokens=tuple(f"{i // 3}:{i}" for i in range(12)))
    alone, together = (align(d, resamples=200) for d in (drives, shared))
    for name in ("rho", "auprc"):
        a, b = alone.macro["head"][name], together.macro["head"][name]
        assert a.value == b.value and (a.count, a.groups) == (12, 12) and (b.count, b.groups) == (12, 4)
        assert (a.low, a.high) != (b.low, b.high)
    assert alone.less_teacher["head"]["rho"].excludes_zero
    assert not together.less_teacher["head"]["rho"].excludes_zero  # four logs show nothing


def test_tables_say_everything():
    drives = made_drives(8)
    aligned, cross = align(drives, resamples=100), cross_table(drives, "head", resamples=100)
    text = alignment_table(aligned, "here").markdown()
    assert text.count("| teacher |") == text.count("| head |") == 8 and "8 scenarios" in text
    assert "minus teacher" in rival_table(aligned, "here").markdown()
    assert "matched minus best other" in cross_as_table(cross, "here").markdown()
    assert len(alignment_json(aligned, [cross])["rows"]) == 14


def test_series_of_different_length_are_stacked():
    stacked = stack([np.ones((2, 3)), np.zeros((4, 3))], 4)
    assert stacked.shape == (2, 4, 3) and np.isnan(stacked[0, 2:]).all() and not np.isnan(stacked[1]).any()
