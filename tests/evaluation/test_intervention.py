"""The intervention test: high frames, paired changes, and a whole small run that can be taken up again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from radp.cli.main import main
from radp.evaluation.closed_loop import run_simulation
from radp.evaluation.drives import Drives
from radp.evaluation.endpoints import ENDPOINTS
from radp.evaluation.intervention import Nudge, Trial, compare, contrasts, evenly, high_frames, intervene, window_of
from radp.evaluation.settings import Simulation
from radp.scenario.store import ScenarioWriter
from radp.sources.synthetic import make_scenario


def test_high_frames_are_those_above_a_quantile_of_all():
    pressure = np.array([np.arange(10.0), np.full(10, np.nan)])
    threshold, high = high_frames(pressure, 0.8)
    assert threshold == pytest.approx(7.2) and high.sum() == 2 and not high[1].any()
    assert not high_frames(np.zeros((2, 5)))[1].any()  # a rule that never presses has no high frames


def test_scenarios_are_spread_evenly():
    places = np.array([2, 3, 5, 8, 13])
    assert evenly(places, None).tolist() == evenly(places, 9).tolist() == places.tolist()
    assert evenly(places, 3).tolist() == [2, 5, 13] and evenly(places, 1).tolist() == [2]


def test_changes_are_paired_and_only_of_high_frames():
    severity = np.zeros((2, 100))
    plain = Drives(("lane",), ("a", "b"), np.array([100, 100]), {}, {e.name: severity for e in ENDPOINTS})
    after = severity[1:] - 1.0
    after[:, 50:] = 9.0  # beyond the windows of the high frames
    nudged = Drives((), ("b",), np.array([100]), {}, {e.name: after for e in ENDPOINTS})
    high = np.zeros((2, 100), dtype=bool)
    high[1, 5:10] = True
    trial = Trial(Nudge("run", "lane", 0.5, "down", True, "out"), high, np.array([1]), ("b",))
    measured = compare(plain, trial, nudged)
    by_name = dict(zip((e.name for e in ENDPOINTS), measured.change))
    assert by_name["collision"].value == -1.0 and measured.frames == 5  # 2 s window: before the 9s
    assert by_name["lane"].value == 9.0  # 8 s window: reaches them
    assert dict(zip((e.name for e in ENDPOINTS), measured.events))["lane"].value == 0.0  # 0 > -0.3 and 9 > -0.3
    worse = replace(measured, way="up", rows=measured.rows + 2.0)
    (gap,) = contrasts([measured, worse])
    assert (gap.endpoint, gap.control, gap.difference.value, gap.higher, gap.lower) == ("lane", "up", 2.0, 1, 0)
    assert contrasts([worse]) == []


def test_pushes_are_kept_over_the_window_of_the_risk():
    assert window_of("collision") == 2.0 and window_of("goal") == window_of("luck") == 8.0


def test_a_run_is_driven_again_and_resumed(tmp_path, capsys):
    with ScenarioWriter(tmp_path / "store") as writer:
        for seed in range(2):
            writer.add(make_scenario(seed, agents=4, turn="straight", frames=61))
    job = Simulation(planner="idm", scenarios=str(tmp_path / "store"), agents="nonreactive", attribution="teacher")
    run = run_simulation(job, tmp_path / "run")
    found = intervene(run, tmp_path / "out", ["goal"], ["down"])
    assert [one.rule for one in found] == ["goal"] and found[0].frames > 0 and len(found[0].change) == 7
    drive = next((tmp_path / "out" / "goal-down" / "drives").glob("*.drive"))
    stamp = drive.stat().st_mtime_ns
    assert main(["evaluate", "intervention", str(tmp_path / "run"), "--out", str(tmp_path / "out"), "--rules", "goal",
                 "--down-only"]) == 0  # fmt: skip
    assert drive.stat().st_mtime_ns == stamp and "| goal | down |" in capsys.readouterr().out
    bad = ["evaluate", "intervention", str(tmp_path / "run"), "--out", str(tmp_path / "o"), "--rules", "luck"]
    assert main(bad) == 2
    assert main([*bad[:-1], "comfort"]) == 2
    assert "comfort has no sound intervention through the plan" in capsys.readouterr().err
