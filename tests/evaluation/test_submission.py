"""Runs that hold what they say, and runs that do not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from radp.cli.main import main
from radp.evaluation import submission
from radp.evaluation.closed_loop import Run, run_simulation, summarise_run
from radp.evaluation.settings import Simulation
from radp.evaluation.submission import check_submission, drive_faults
from radp.scenario.neutral_json import save_json, scenario_to_json
from radp.sources.synthetic import make_scenario


@pytest.fixture
def split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Two short scenarios that count as a packaged split."""
    folder = tmp_path / "split"
    for seed in range(2):
        save_json(scenario_to_json(make_scenario(seed, 4, frames=16)), folder / f"{seed}.json.gz")
    monkeypatch.setattr(submission, "list_splits", lambda: [str(folder.resolve())])
    return str(folder)


def drive(split: str, out: Path, planner: str = "constant_velocity", **more: object) -> Path:
    job = Simulation(planner=planner, scenarios=split, agents="nonreactive")
    summarise_run(run_simulation(replace(job, **more), out))
    return out


def test_a_sound_run_is_accepted(split: str, tmp_path: Path) -> None:
    run = drive(split, tmp_path / "run")
    (run / "submission.json").write_text(json.dumps({"name": "Straight on", "authors": "Us"}))
    found = check_submission(run)
    assert found.problems == ()
    assert found.row is not None and len(found.row.values["score"]) == 2
    stored = json.loads((run / "summary.json").read_text())["score"]["mean"]
    assert found.row.values["score"].mean() == pytest.approx(stored, abs=1e-12)
    assert found.about["name"] == "Straight on"


def test_a_score_that_was_polished_is_found(split: str, tmp_path: Path) -> None:
    run = drive(split, tmp_path / "run")
    cards = [json.loads(line) for line in (run / "cards.jsonl").read_text().splitlines()]
    cards[1]["score"] += 0.01
    (run / "cards.jsonl").write_text("".join(json.dumps(card) + "\n" for card in cards))
    found = check_submission(run)
    assert found.row is None
    assert any("is said to score" in problem for problem in found.problems)


def test_a_drive_that_begins_elsewhere_is_found(split: str, tmp_path: Path) -> None:
    run = Run.open(drive(split, tmp_path / "run"))
    rollout = next(run.rollouts())
    assert list(drive_faults(rollout)) == []
    ego = rollout.ego.copy()
    ego[0, 0] += 0.5
    assert list(drive_faults(replace(rollout, ego=ego))) == ["it does not begin where the scenario does"]
    assert "samples, expected 15" in next(drive_faults(replace(rollout, ego=ego[:9], time_us=rollout.time_us[:9])))
    late = replace(rollout, time_us=rollout.time_us + 1)
    assert list(drive_faults(late)) == ["its clock is not that of the scenario"]


@pytest.mark.parametrize(
    ("change", "words"),
    [({"limit": 1}, "some scenarios"), ({"controller": "perfect"}, "its controller is perfect, expected lqr")],
)
def test_runs_by_other_terms_are_refused(split: str, tmp_path: Path, change: dict[str, object], words: str) -> None:
    found = check_submission(drive(split, tmp_path / "run", **change))
    assert any(words in problem for problem in found.problems)


def test_other_folders_and_descriptions_are_refused(split: str, tmp_path: Path) -> None:
    assert check_submission(tmp_path).row is None
    run = drive(split, tmp_path / "run")
    next((run / "drives").iterdir()).unlink()
    assert "1 of 2 scenarios were not driven" in check_submission(run).problems[0]
    (run / "submission.json").write_text('{"prize": "first"}')
    assert "'prize' is not one of them" in check_submission(run).problems[0]


def test_the_page_ranks_and_escapes(split: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [drive(split, tmp_path / name, name) for name in ("constant_velocity", "log_replay")]
    (runs[0] / "submission.json").write_text(json.dumps({"name": "<script>alert(1)</script>"}))
    assert (
        main(["leaderboard", *map(str, runs), str(tmp_path / "split"), "--out", str(tmp_path / "board"), "--json"]) == 2
    )
    table = json.loads(capsys.readouterr().out)
    assert [entry["accepted"] for entry in table] == [True, True, False]
    page = (tmp_path / "board" / "leaderboard.html").read_text()
    assert "<script>alert" not in page and "&lt;script&gt;" in page
    better, worse = sorted(table[:2], key=lambda entry: (-entry["means"]["score"]["value"], entry["planner"]))
    shown = {"constant_velocity": "&lt;script&gt;", "log_replay": "log_replay"}
    assert page.index(shown[better["planner"]]) < page.index(shown[worse["planner"]])


@pytest.mark.slow
def test_traffic_that_does_not_react_is_found(split: str, tmp_path: Path) -> None:
    run = Run.open(drive(split, tmp_path / "run", agents="reactive"))
    rollout = next(one for one in run.rollouts() if len(one.agents))
    assert list(drive_faults(rollout)) == []
    state = rollout.agents.state.copy()
    state[0, 5, 0] += 0.1
    moved = replace(rollout, agents=replace(rollout.agents, state=state))
    assert list(drive_faults(moved)) == ["its traffic is not what reacts to its ego"]
