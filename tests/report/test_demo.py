"""The demo: leaves pages, goes on where it stopped, replaces what is its own only."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from radp.cli.main import main
from radp.evaluation.settings import Simulation
from radp.planners.learned import base_of
from radp.report import demo, packaged_pages
from radp.report.viewer import scenario_page, site
from radp.report.viewer.page import static
from radp.zoo import DEMO


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planners without compilation, and short scenarios."""
    monkeypatch.setattr(demo, "best_planner", lambda: "constant_velocity")
    monkeypatch.setattr(demo, "BASELINE", "log_replay")
    monkeypatch.setattr(demo, "BEST_RULE_BASED", "log_replay")
    monkeypatch.setattr(demo, "list_splits", list)
    made = demo.make_scenario
    monkeypatch.setattr(demo, "make_scenario", lambda seed: made(seed, 4, frames=16))


def test_demo_leaves_pages_and_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--out", str(tmp_path / "d"), "--scenarios", "2", "--workers", "1"]) == 0
    printed = capsys.readouterr().out
    assert "constant_velocity  log_replay" in printed
    assert (tmp_path / "d" / "index.html").as_uri() in printed
    drives = {path: path.stat().st_mtime_ns for path in tmp_path.glob("d/runs/*/drives/*")}
    assert len(drives) == 4
    assert main(["demo", "--out", str(tmp_path / "d"), "--scenarios", "2", "--workers", "1", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert list(summary["planners"]) == ["constant_velocity", "log_replay"]
    assert len(summary["pages"]) == 2
    assert drives == {path: path.stat().st_mtime_ns for path in tmp_path.glob("d/runs/*/drives/*")}


def test_another_demo_in_the_folder_is_replaced(tmp_path: Path) -> None:
    demo.run_demo(tmp_path, 1, workers=1)
    made = demo.run_demo(tmp_path, 2, workers=1)
    assert all(token in run.store for run in made.runs for token in run.split.tokens())
    assert [len(run.split) for run in made.runs] == [2, 2]
    assert len(list(tmp_path.glob("0*.html"))) == 2


def test_folder_of_another_command_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from radp.runs.folder import RunFolder

    RunFolder.create(tmp_path / "runs" / "constant_velocity", "train", {})
    assert main(["demo", "--out", str(tmp_path), "--scenarios", "1", "--workers", "1"]) == 2
    assert "holds another run" in capsys.readouterr().err
    assert (tmp_path / "runs" / "constant_velocity" / "config.json").exists()


def test_bad_input_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--out", str(tmp_path), "--scenarios", "0"]) == 2
    assert "scenarios is 0" in capsys.readouterr().err
    (tmp_path / "file").write_text("x")
    assert main(["demo", "--out", str(tmp_path / "file")]) == 2
    assert "is a file" in capsys.readouterr().err


def test_scenarios_of_a_packaged_split_are_the_packaged_choice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "list_splits", lambda: ["sumo14-val"])
    monkeypatch.setattr(demo, "DEMO", tmp_path)
    assert demo.choose_scenarios(tmp_path, 3) == Simulation(planner="", scenarios="sumo14-val", limit=3)
    rows = [{"token": "a", "kind": "turn", "why": "it fails"}, {"token": "b", "kind": "stop", "why": "as usual"}]
    choice = {"split": "sumo14-val", "scenarios": rows}
    (tmp_path / demo.CHOICE).write_text(json.dumps(choice))
    assert demo.choose_scenarios(tmp_path, 2) == Simulation(planner="", scenarios="sumo14-val", token=("a", "b"))
    assert demo.choose_scenarios(tmp_path, 3).token == ()
    assert demo.packaged_choice("sumo14-hard") == {}


def test_the_base_of_a_packaged_planner() -> None:
    assert base_of("radp-mini") == "diffusion-planner-mini"
    assert base_of("radp-mini-v1") == "diffusion-planner-mini-v1"
    assert base_of("pdm_closed") == ""


def test_quick_shows_the_packaged_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(packaged_pages, "DEMO", tmp_path / "packaged")
    assert main(["demo", "--quick", "--out", str(tmp_path / "out")]) == 2
    assert "no pages are packaged" in capsys.readouterr().err
    (tmp_path / "packaged").mkdir()
    for name in ("index.html", "0001-a.html", "pages.json"):
        (tmp_path / "packaged" / name).write_text(name)
    assert main(["demo", "--quick", "--out", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "index.html").as_uri() in capsys.readouterr().out
    assert (tmp_path / "out" / "0001-a.html").read_text() == "0001-a.html"


def test_packaged_pages_have_the_scripts_of_today_and_are_small() -> None:
    """`python scripts/demo_pages.py --renew` brings them up to date."""
    pages = sorted(DEMO.glob("*.html"))
    assert len(pages) == 7 and sum(file.stat().st_size for file in DEMO.iterdir() if file.is_file()) <= 4_000_000
    for page in pages:
        kind, text = site if page.name == "index.html" else scenario_page, page.read_text()
        for name in (*kind.STYLES, *kind.SCRIPTS):
            assert static(name) in text, f"{page.name} has another {name}"
