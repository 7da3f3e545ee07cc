"""A page of one planner at several weights of rules: which weights vary, and what the page holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from radp.cli.main import main
from radp.evaluation.closed_loop import Run
from radp.report.viewer import write_site
from radp.report.viewer.site import varied_weights
from radp.runs.errors import BadInput
from tests.report.test_viewer_site import data_of


def at(run: Run, *weights: str, planner: str = "weighted") -> Run:
    """The drives of a run as those of one planner with these weights."""
    return Run(run.folder, replace(run.job, planner=planner, weights=weights))


def test_weights_that_vary(run: Run) -> None:
    runs = [at(run, "lane=2"), at(run, "lane=2", "goal=4"), at(run, "goal=4", "lane=2", "collision=0.5")]
    assert varied_weights(runs) == [
        {"goal": 1.0, "collision": 1.0}, {"goal": 4.0, "collision": 1.0}, {"goal": 4.0, "collision": 0.5},
    ]  # fmt: skip
    with pytest.raises(BadInput, match="with the same weights"):
        varied_weights([at(run, "goal=4"), at(run), at(run, "goal=4", "lane=1")])
    with pytest.raises(BadInput, match="are two planners"):
        varied_weights([at(run), at(run, "goal=4", planner="another")])


def test_a_page_holds_every_drive_and_its_weights(run: Run, other_run: Run, tmp_path: Path) -> None:
    site = write_site([at(run), at(other_run, "goal=4")], tmp_path, limit=1, weighted=True)
    data = data_of(next(iter(site.pages.values())).read_text())
    assert data["weights"] == [{"goal": 1.0}, {"goal": 4.0}]
    assert [drive["planner"] for drive in data["drives"]] == ["constant_velocity", "log_replay"]
    assert ["overlay" in drive for drive in data["drives"]] == [True, False]
    start = data_of(site.index.read_text())
    assert len(start["runs"]) == 1 and len(start["rows"][0]["drives"]) == 1
    alone = write_site([run], tmp_path, limit=1)
    assert data_of(next(iter(alone.pages.values())).read_text())["weights"] is None


def test_the_verb_refuses_both_ways_at_once(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(run.folder.path)
    assert main(["view", folder, "--other", folder, "--weighted", folder]) == 2
    assert main(["view", folder, "--weighted", folder]) == 2
    said = capsys.readouterr().err
    assert "do not go together" in said and "with the same weights" in said
