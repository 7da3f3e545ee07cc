"""radp simulate as a person calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from radp.cli.main import main
from radp.scenario.neutral_json import save_json, scenario_to_json
from radp.sources.synthetic import make_scenario


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    path = tmp_path / "made.json.gz"
    save_json(scenario_to_json(make_scenario(1, 4, frames=12)), path)
    return str(path)


def call(scenario: str, out: Path, *more: str) -> int:
    arguments = ["simulate", "--planner", "constant_velocity", "--scenarios", scenario, "--out", str(out), *more]
    return main([*arguments, "--agents", "nonreactive"])


def test_run_prints_its_summary_and_leaves_a_folder(
    scenario: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(scenario, tmp_path / "run", "--json", "--export-json", str(tmp_path / "json")) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary == json.loads((tmp_path / "run" / "summary.json").read_text())
    assert (summary["scenarios"], summary["failed"], summary["seed"]) == (1, 0, 0)
    assert json.loads((tmp_path / "run" / "config.json").read_text())["settings"]["planner"] == "constant_velocity"
    assert [path.name for path in (tmp_path / "json").iterdir()] == ["synthetic_000001.json.gz"]
    assert call(scenario, tmp_path / "run") == 0
    assert "1 drives, 0 failed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--planner", "nobody"), "no planner 'nobody'"),
        (("--scenarios", "nowhere"), "neither a packaged split"),
        (("--batch", "0"), "batch is 0"),
        (("--controller", "pid"), "controller"),
        (("--weights", "goal=2"), "'constant_velocity' takes no weights of rules"),
    ],
)
def test_bad_input_is_one_sentence_and_code_2(
    scenario: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], words: str
) -> None:
    assert call(scenario, tmp_path / "run", *more) == 2
    printed = capsys.readouterr().err.strip()
    assert words in printed
    assert "\n" not in printed
    assert not (tmp_path / "run").exists()
