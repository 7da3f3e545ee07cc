"""What somebody meets who uses radp for the first time: words that are nearly right, runs that stop, tables as JSON."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from radp.cli import main as cli
from radp.cli.main import completion_script, main
from radp.evaluation.closed_loop import Run, run_simulation
from radp.evaluation.settings import Simulation
from radp.runs.errors import BadInput, did_you_mean
from radp.runs.folder import RunFolder, discard_run
from radp.runs.progress import Progress, tell
from radp.scenario.neutral_json import save_json, scenario_to_json
from radp.scenario.parts import spread_over_kinds
from radp.scenario.splits import limited, open_split, with_tokens
from tests.small_scenarios import small_scenario

EVALUATE = ("evaluate", "planners", "--out", "x")
RAISES = """
class Mine:
    name = "mine"
    def plan(self, observation):
        return self.look(observation)
    def look(self, observation):
        raise RuntimeError("no idea")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Five scenarios: three turns, then two stops."""
    for i, kind in enumerate(("turn", "turn", "turn", "stop", "stop")):
        save_json(scenario_to_json(small_scenario(f"s{i}", kind)), tmp_path / "scenarios" / f"{i}.json")
    return tmp_path / "scenarios"


def simulate(folder: Path, *more: str, planner: str = "constant_velocity") -> list[str]:
    return ["simulate", "--planner", planner, "--scenarios", str(folder), "--agents", "nonreactive",
            "--out", str(folder.parent / "run"), *more]  # fmt: skip


def test_a_limit_is_spread_over_the_kinds(folder: Path) -> None:
    split = open_split(folder)
    assert [limited(split, n).tokens() for n in (1, 2, 3, 4)] == [
        ["s0"], ["s0", "s3"], ["s0", "s1", "s3"], ["s0", "s1", "s3", "s4"],
    ]  # fmt: skip
    assert limited(split, None).tokens() == limited(split, 9).tokens() == split.tokens()
    assert spread_over_kinds([], 3) == []


def test_a_run_of_an_older_radp_keeps_the_scenarios_that_it_drove(folder: Path, tmp_path: Path) -> None:
    job = Simulation(planner="constant_velocity", scenarios=str(folder), agents="nonreactive", limit=2)
    assert run_simulation(job, tmp_path / "run").split.tokens() == ["s0", "s3"]
    config = tmp_path / "run" / "config.json"
    stored = json.loads(config.read_text())
    del stored["settings"]["limit_over"]
    config.write_text(json.dumps(stored))
    assert Run.open(tmp_path / "run").split.tokens() == ["s0", "s1"]


def test_tokens_choose_scenarios(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(simulate(folder, "--token", "s4", "s1", "--json")) == 0
    assert json.loads(capsys.readouterr().out)["scenarios"] == 2
    assert Run.open(folder.parent / "run").split.tokens() == ["s1", "s4"]
    with pytest.raises(BadInput, match="no scenario 's44' among 5; did you mean 's4'"):
        with_tokens(open_split(folder), ["s44"])


def test_explain_takes_tokens_and_limits_as_simulate_does(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["explain", "--scenarios", str(folder), "--planner", "constant_velocity", "--agents", "nonreactive"]
    assert main([*words, "--token", "s44"]) == 2
    assert "no scenario 's44' among 5; did you mean 's4'?" in capsys.readouterr().err
    assert main([*words, "--limit", "2", "--no-verify", "--json"]) == 0
    assert [one["token"] for one in json.loads(capsys.readouterr().out)["scenarios"]] == ["s0", "s3"]


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["simulate", "--planner", "pdm-closed", "--scenarios", "sumo14-val", "--out", "x"], "'pdm_closed'"),
        (["simulate", "--planner", "radpmini", "--scenarios", "sumo14-val", "--out", "x"], "'radp-mini'"),
        (["simulate", "--planner", "idm", "--scenarios", "sumo14-vall", "--out", "x"], "'sumo14-val'"),
        ([*EVALUATE, "--planners", "constant_velocity", "pdmclosed", "--splits", "sumo14-val"], "'pdm_closed'"),
        ([*EVALUATE, "--planners", "constant_velocity", "--splits", "sumo14-val", "sumo14-hart"], "'sumo14-hard'"),
        (["data", "convert", "--source", "waymojson", "--out", "x"], "'waymo-json'"),
        (["simulat"], "'simulate'"),
        (["data", "converts"], "'convert'"),
    ],
)  # fmt: skip
def test_did_you_mean(
    words: list[str], meant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    assert f"did you mean {meant}?" in capsys.readouterr().err
    assert not (tmp_path / "x").exists(), "nothing was driven"


def test_nothing_near_is_not_guessed() -> None:
    assert did_you_mean("zebra", ["idm", "pdm_closed"]) == ""


def test_fresh_drives_again(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(simulate(folder, "--limit", "1")) == 0
    assert main(simulate(folder, "--limit", "2")) == 2
    assert "holds another run" in capsys.readouterr().err
    assert main(simulate(folder, "--limit", "2", "--fresh")) == 0
    assert len(Run.open(folder.parent / "run").split) == 2


def test_fresh_deletes_runs_of_its_own_alone(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.png").write_bytes(b"cat")
    RunFolder.create(tmp_path / "training", "train base", {})
    for name in ("photos", "training"):
        with pytest.raises(BadInput, match="so it is not deleted"):
            discard_run(tmp_path / name, "simulate")
        assert any((tmp_path / name).iterdir())
    discard_run(tmp_path / "nothing", "simulate")


def test_where_every_drive_fails_the_traceback_is_shown_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = folder.parent / "own.py"
    own.write_text(RAISES)
    assert main(simulate(folder, planner=f"{own}:Mine")) == 2
    said = capsys.readouterr().err
    assert said.count(", in look\n") == 1 and "RuntimeError: no idea" in said
    assert "simulate.py" not in said, "lines of radp's own are of no use here"
    assert (
        said.strip().splitlines()[-1].startswith("radp: every drive failed; the first: step 0: RuntimeError: no idea")
    )


def test_an_interrupted_command_says_how_to_go_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("radp.evaluation.closed_loop.run_simulation", interrupt)
    words = simulate(folder, "--fresh")
    assert main(words) == 130
    said = capsys.readouterr().err
    assert "to go on: radp simulate --planner constant_velocity" in said
    assert "--fresh" not in said
    assert cli._how_to_go_on(["doctor"]) == ""


def test_progress_counts_scenarios_and_steps() -> None:
    with Progress("scenarios", 10) as progress:
        tell("step 3 of 150")
        assert progress.line() == "scenarios: 0/10 (0%), step 3 of 150"
        progress.advance(4)
        assert progress.line().startswith("scenarios: 4/10 (40%), ")
    tell("nobody looks")


@pytest.mark.parametrize("name", ["picture.xyz", "picture", "picture.gif"])
def test_unknown_picture_formats(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder.parent / name
    assert main(["data", "gallery", "--scenarios", str(folder), "--out", str(out)]) == 2
    assert "expected one of .png, .svg, .pdf" in capsys.readouterr().err
    assert not out.exists()


def test_completion_for_shells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    assert "simulate" in script and "--scenarios" in script
    assert completion_script("zsh").startswith("#compdef radp")
    assert "simulate" in completion_script("fish")
    if shutil.which("bash"):
        (tmp_path / "radp.sh").write_text(script)
        subprocess.run(["bash", "-n", str(tmp_path / "radp.sh")], check=True)
