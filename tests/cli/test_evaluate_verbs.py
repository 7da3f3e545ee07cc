"""Alignment and prognosis as a user calls them: two small runs, their tables on the screen and on the disk."""

from __future__ import annotations

import json

import pytest

from radp.cli.main import main
from radp.evaluation.endpoints import ENDPOINTS, READINGS
from radp.scenario.store import ScenarioWriter
from radp.sources.synthetic import make_scenario


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> list[str]:
    folder = tmp_path_factory.mktemp("runs")
    with ScenarioWriter(folder / "store") as writer:
        for seed in range(3):
            writer.add(make_scenario(seed, agents=4, frames=61))
    found = []
    for seed in ("0", "1"):
        found.append(str(folder / f"run{seed}"))
        command = ["simulate", "--planner", "constant_velocity", "--scenarios", str(folder / "store"), "--seed", seed,
                   "--attribution", "teacher", "--agents", "nonreactive", "--out", found[-1]]  # fmt: skip
        assert main(command) == 0
    return found


def test_alignment_of_each_run_and_of_both(runs, tmp_path, capsys):
    assert main(["evaluate", "alignment", *runs, "--out", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "pooled, nonreactive agents, 2 noise seed(s), 6 drives" in text
    assert {path.name for path in tmp_path.glob("*.json")} == {"run0.json", "run1.json", "pooled.json"}
    data = json.loads((tmp_path / "pooled.json").read_text())
    assert data["drives"] == 6 and data["reading"] == "main" and set(READINGS) - {"main"} <= set(data)
    assert {row["source"] for row in data["rows"]} >= {"teacher", "clock", "persistence", "ttc", "cost"}
    assert set(data["events"]["collision"]) == {"count", "drives", "logs"}
    assert "Risk endpoints, plans driven for 2 s without replanning" in (tmp_path / "pooled.md").read_text()


def test_a_run_cannot_be_pooled_with_itself(runs, capsys):
    assert main(["evaluate", "alignment", runs[0], runs[0]]) == 2
    assert "would count twice" in capsys.readouterr().err


def test_prognosis_of_both_runs(runs, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("radp.evaluation.boosted.TREES", 3)
    assert main(["evaluate", "prognosis", *runs, "--out", str(tmp_path)]) == 0
    assert "TTC foretells better than teacher pressure:" in capsys.readouterr().out
    (found,) = json.loads((tmp_path / "prognosis.json").read_text())
    assert found["drives"] == 6 and {f["predictor"] for f in found["forecasts"]} >= {
        "teacher",
        "TTC",
        "RSS deficit",
        "cost",
    }
    assert [one["endpoint"] for one in found["increments"]][:7] == [e.name for e in ENDPOINTS]


def test_faithfulness_refuses_planners_that_are_not_learned(runs, capsys):
    assert main(["evaluate", "faithfulness", runs[0]]) == 2
    assert "no learned planner" in capsys.readouterr().err
