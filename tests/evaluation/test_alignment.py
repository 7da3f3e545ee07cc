"""Alignment against scipy and sklearn scenario by scenario; controls; rivals on a drive that is known."""

from __future__ import annotations

import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score

from radp.evaluation.alignment import align, beats_controls, count_events, cross_table, measure, risks
from radp.evaluation.controls import OTHERS, clock, other_drives
from radp.evaluation.drives import Drives, pooled, stack
from radp.evaluation.endpoints import ENDPOINTS, EXECUTED, PAPER, Endpoint
from radp.report.alignment_tables import (
    alignment_json,
    alignment_table,
    control_table,
    cross_as_table,
    refuse_strangers,
    rival_table,
)
from radp.runs.errors import BadInput
from radp.statistics.estimate import Estimate

RULES = ("collision", "lane", "speed", "kinematics", "comfort", "goal")
EVENT = Endpoint("x", "x", 0.0, "max", 0.5, "")


def made_drives(count: int = 12, frames: int = 149, seed: int = 0) -> Drives:
    """Severities wander; the teacher sees its own risks with noise, the head a little less of them."""
    draw = np.random.default_rng(seed)
    lengths = draw.integers(100, frames + 1, count)
    inside = np.arange(frames) < lengths[:, None]
    severity = {
        name: np.where(inside, np.abs(draw.normal(size=(count, frames)).cumsum(1)) * 0.1, np.nan) for name in EXECUTED
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
    assert aligned.less_teacher.keys() == set(aligned.sources) - {"teacher"}
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
    assert text.count("| teacher |") == text.count("| head |") == 11 and "8 drives" in text
    controls = control_table(aligned, "here")
    assert len(controls.rows) == 22 and all(len(row) == len(controls.header) for row in controls.rows)
    assert "minus teacher" in rival_table(aligned, "here").markdown()
    assert "matched minus best other" in cross_as_table(cross, "here").markdown()
    assert len(alignment_json(aligned, [cross])["rows"]) == 40  # 10 endpoints; teacher, head, clock, persistence


def test_series_of_different_length_are_stacked():
    stacked = stack([np.ones((2, 3)), np.zeros((4, 3))], 4)
    assert stacked.shape == (2, 4, 3) and np.isnan(stacked[0, 2:]).all() and not np.isnan(stacked[1]).any()


def drives_with(severity: np.ndarray, score: np.ndarray, tokens: tuple[str, ...] | None = None) -> Drives:
    """Every endpoint has the severity (N, T), every rule the score (N, T)."""
    count, frames = severity.shape
    scores = np.repeat(score[..., None], len(RULES), -1)
    names = tokens or tuple(map(str, range(count)))
    lengths = np.full(count, frames)
    return Drives(RULES, names, lengths, {"teacher": scores}, dict.fromkeys(EXECUTED, severity))


def test_a_pressure_that_is_only_a_clock_is_no_evidence():
    draw = np.random.default_rng(0)
    frames = np.arange(149)
    severity = 10.0 - 0.05 * frames + 0.02 * draw.normal(size=(30, 149)).cumsum(1)  # every drive calms down
    score = 5.0 - 0.03 * frames + 0.05 * draw.normal(size=(30, 149))  # and so does the score, knowing nothing of it
    aligned = align(drives_with(severity, score), resamples=200)
    lane = aligned.row("lane", "teacher")
    assert lane.rho.low > 0.5 and abs(lane.shuffled.value) < 0.05  # the shuffled control does not see it
    assert aligned.row("lane", "clock").rho.value > 0.9 and lane.other.value == pytest.approx(lane.rho.value, abs=0.05)
    assert not lane.is_evidence
    text = alignment_table(aligned, "here").markdown()
    assert text.count("no evidence") == 11 + 1  # seven endpoints, three beside, the mean, and the note that explains it


def test_a_pressure_that_knows_its_drive_is_evidence():
    draw = np.random.default_rng(1)
    severity = np.abs(draw.normal(size=(30, 149)).cumsum(1))
    plain = drives_with(severity, severity)
    knowing = np.nan_to_num(risks(plain)["lane"]) + 0.1 * draw.normal(size=severity.shape)
    lane = align(drives_with(severity, knowing), resamples=200).row("lane", "teacher")
    assert lane.is_evidence and lane.less_other.low > 0.3 and abs(lane.other.value) < 0.2


def test_other_drives_are_those_of_other_logs_at_the_same_clock():
    draw = np.random.default_rng(2)
    score, risk = draw.random((2, 4, 60))
    rho, auprc = other_drives(score, risk, 0.5, ["a", "a", "b", "c"])
    for i, others in enumerate(([2, 3], [2, 3], [0, 1, 3], [0, 1, 2])):
        assert rho[i] == pytest.approx(np.mean([spearmanr(score[j], risk[i]).statistic for j in others]))
        assert auprc[i] == pytest.approx(np.mean([average_precision_score(risk[i] > 0.5, score[j]) for j in others]))
    assert OTHERS >= 3
    assert all(np.isnan(values).all() for values in other_drives(score[:1], risk[:1], 0.5, ["a"]))
    assert all(np.isnan(values).all() for values in other_drives(score, risk, 0.5, ["a"] * 4))


def test_the_clock_ends_with_its_drive():
    np.testing.assert_array_equal(clock(np.array([1, 3]), 3), [[0, np.nan, np.nan], [0, -1, -2]])


def test_events_are_stretches():
    severity = np.array([[0, 2, 2, 0, 2], [2, 0, 0, 0, 0], [0, 0, 0, 0, np.nan], [0, 0, 0, 2, 2.0]])
    drives = drives_with(severity, severity, ("a:1", "a:2", "b", "c"))
    found = count_events(drives, ENDPOINTS[1])
    assert (found.count, found.drives, found.logs) == (4, 3, 2)


def test_pooled_drives_are_those_of_all_runs():
    a, b = made_drives(5, 120, 1), made_drives(4, 149, 2)
    both = pooled([a, replace(b, scores={"teacher": b.scores["teacher"]})])
    assert both.tokens == a.tokens + b.tokens and set(both.scores) == {"teacher"}
    assert both.scores["teacher"].shape == (9, 149, 6) and list(both.lengths) == [*a.lengths, *b.lengths]
    rho = [align(one, resamples=20).row("lane", "teacher").rho for one in (a, b, both)]
    counted = sum(one.value * one.count for one in rho[:2]) / sum(one.count for one in rho[:2])
    assert rho[2].value == pytest.approx(counted)
    assert rho[2].groups == 5  # drives of one token are drawn together
    with pytest.raises(BadInput, match="different rules"):
        pooled([a, replace(b, rules=RULES[::-1])])


def test_the_papers_reading_is_another_one_with_its_own_mean():
    drives = made_drives(8)
    main, paper = (align(drives, resamples=50, reading=reading) for reading in ("main", "paper"))
    assert paper.seven == PAPER and [e.name for e in paper.endpoints] == [*(e.name for e in PAPER), "goal_total"]
    for aligned in (main, paper):
        means = [aligned.row(e.name, "teacher").rho.value for e in aligned.seven]
        assert aligned.macro["teacher"]["rho"].value == pytest.approx(np.mean(means))
    same, other = (main.row(name, "teacher").rho == paper.row(name, "teacher").rho for name in ("lane", "comfort"))
    assert same and not other


def made_run(planner: str = "a", tokens: tuple[str, ...] = ("x",), seed: int = 0, rules: str = "") -> SimpleNamespace:
    job = SimpleNamespace(planner=planner, agents="reactive", rule_set=rules, seed=seed)
    return SimpleNamespace(job=job, split=SimpleNamespace(tokens=lambda: list(tokens)))


def test_only_runs_of_one_kind_are_pooled_and_no_drive_counts_twice():
    refuse_strangers([made_run(), made_run(tokens=("y",)), made_run(seed=1)])
    for other, words in (
        (made_run("b", ("y",)), "different planner"),
        (made_run(tokens=("y",), rules="v2"), "different rule_set"),
        (made_run(tokens=("y", "x")), "'x' stands in two"),
    ):
        with pytest.raises(BadInput, match=words):
            refuse_strangers([made_run(), other])


def test_a_rho_below_its_controls_is_no_evidence():
    above, below, unsure = (Estimate(v, v - 0.1, v + 0.1, 30) for v in (0.3, -0.3, 0.05))
    assert beats_controls(above, above)
    assert not any(beats_controls(a, b) for a, b in ((above, below), (below, above), (unsure, above), (below, below)))


def test_the_rate_of_events_counts_the_frames_that_have_both():
    severity, score = np.full((1, 149), 100.0), np.full((1, 149), np.nan)
    score[0, 0] = 1.0
    lane = align(drives_with(severity, score), resamples=5).row("lane", "teacher")
    assert (lane.positive_rate, lane.frames) == (1.0, 1)
