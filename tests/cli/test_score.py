"""radp score: files, folders, bad files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from radp.cli.main import main
from radp.metrics.score import METRICS, evaluate
from radp.scenario.neutral_json import save_json, scenario_to_json
from radp.sim.rollout import rollout_to_json
from radp.sources.synthetic import make_scenario
from tests.metrics.made_drives import patchwork_rollout, wandering_rollout


@pytest.fixture(scope="module")
def drives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two drives, a scenario, a broken file and something else."""
    folder = tmp_path_factory.mktemp("drives")
    for name, rollout in (("a.json.gz", wandering_rollout(3)), ("b.json", patchwork_rollout(1))):
        data = rollout_to_json(rollout)
        data["agents"] = []
        save_json(data, folder / name)
    save_json(scenario_to_json(wandering_rollout(2).scenario), folder / "scenario.json.gz")
    (folder / "notes.txt").write_text("nothing")
    return folder


def test_one_file(drives: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", str(drives / "b.json")]) == 0
    out = capsys.readouterr().out
    assert "patchwork_1" in out
    for name in METRICS:
        assert name in out


def test_folder_as_json(drives: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from radp.sim.rollout import read_rollout

    assert main(["score", str(drives), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [card["token"] for card in report["drives"]] == ["synthetic_000003", "patchwork_1"]
    assert report["errors"] == []
    assert report["summary"]["scenarios"] == 2
    expected = [evaluate(read_rollout(drives / name)).score for name in ("a.json.gz", "b.json")]
    assert [card["score"] for card in report["drives"]] == expected
    assert report["summary"]["score"]["mean"] == pytest.approx(sum(expected) / 2)


def test_bad_files_get_a_sentence_and_the_others_go_on(
    drives: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken, missing = tmp_path / "broken.json.gz", tmp_path / "missing.json"
    broken.write_bytes((drives / "a.json.gz").read_bytes()[:2000])
    scenario = drives / "scenario.json.gz"
    code = main(["score", str(broken), str(missing), str(scenario), str(drives / "b.json"), "--json"])
    captured = capsys.readouterr()
    assert code == 2
    assert [card["token"] for card in json.loads(captured.out)["drives"]] == ["patchwork_1"]
    lines = captured.err.strip().splitlines()
    assert len(lines) == 3
    assert str(broken) in lines[0]
    assert str(missing) in lines[1]
    assert "is a scenario and not a drive" in lines[2]


def test_nothing_to_score(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", str(tmp_path)]) == 2
    assert "holds no drives" in capsys.readouterr().err
    assert main(["score"]) == 2


def test_quiet_prints_the_summary_only(drives: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", str(drives), "--quiet"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("2 drives, 0 failed")
    assert "score by kind" in out


def test_run_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario, run = tmp_path / "scenario.json.gz", tmp_path / "run"
    save_json(scenario_to_json(make_scenario(1, agents=3, frames=21)), scenario)
    common = ["--planner", "log_replay", "--scenarios", str(scenario), "--agents", "nonreactive"]
    assert main(["simulate", *common, "--out", str(run), "--json"]) == 0
    simulated = json.loads(capsys.readouterr().out)
    assert main(["score", str(run), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["drives"][0]["planner"] == "log_replay"
    assert report["summary"]["score"] == simulated["score"]
    assert report["summary"]["metrics"] == simulated["metrics"]


def test_a_run_with_missing_drives_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One drive is gone, one is damaged, one failed by the ledger: only that one counts, as failed."""
    for seed in range(4):
        save_json(scenario_to_json(make_scenario(seed, agents=2, frames=16)), tmp_path / "logs" / f"{seed}.json")
    common = ["--planner", "constant_velocity", "--agents", "nonreactive", "--scenarios", str(tmp_path / "logs")]
    run = tmp_path / "run"
    assert main(["simulate", *common, "--out", str(run)]) == 0
    drives = sorted((run / "drives").iterdir())
    drives[1].unlink()
    drives[3].unlink()
    (run / "ledger.jsonl").write_text(json.dumps({"piece": "synthetic_000003", "reason": "it hung"}) + "\n")
    capsys.readouterr()
    assert main(["score", str(run), "--json"]) == 2
    printed = capsys.readouterr()
    report = json.loads(printed.out)
    assert "1 of 4 drives are missing (the first: 'synthetic_000001'); radp simulate" in printed.err
    assert (report["summary"]["missing"], report["summary"]["scenarios"], report["summary"]["failed"]) == (1, 3, 1)
    assert report["summary"]["failures"] == [{"token": "synthetic_000003", "reason": "it hung"}]
    assert main(["score", str(run), "--allow-missing", "--quiet"]) == 0
    assert "missing: 1 scenarios are not among these drives" in capsys.readouterr().out
    drives[0].write_bytes(drives[0].read_bytes()[:100])
    assert main(["score", str(run), "--allow-missing", "--json"]) == 2
    printed = capsys.readouterr()
    assert [card["token"] for card in json.loads(printed.out)["drives"]] == ["synthetic_000002", "synthetic_000003"]
    assert "delete it to drive the scenario again" in printed.err


@pytest.mark.parametrize("verb", ["alignment", "prognosis", "faithfulness", "intervention"])
def test_tables_of_a_part_of_a_run_are_refused(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_json(scenario_to_json(make_scenario(1, agents=2, frames=16)), tmp_path / "log.json")
    settings = {"planner": "idm", "scenarios": str(tmp_path / "log.json")}
    about = {"format": "radp-run", "format_version": 1, "command": "simulate", "seed": 0, "settings": settings}
    save_json(about, tmp_path / "run" / "config.json")
    assert main(["evaluate", verb, str(tmp_path / "run"), "--out", str(tmp_path / "out")]) == 2
    assert "1 of 1 drives are missing (the first: 'synthetic_000001')" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
