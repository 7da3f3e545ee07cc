"""Which rule presses on whom: hand-made pressures, the table, and the command on a small store."""

from __future__ import annotations

import json

import numpy as np
import pytest

from radp.cli.main import main
from radp.evaluation.pressing import drive_row
from radp.scenario.store import ScenarioWriter
from radp.sources.synthetic import make_scenario

RULES = {"collision", "lane", "speed", "kinematics", "comfort", "goal"}


def test_shares_of_the_strongest_rule_by_hand():
    pressures = np.array([[1.0, 0.0], [3.0, 1.0], [0.0, 2.0], [0.0, 0.0]])
    mean, most, nothing = np.split(drive_row(pressures), [2, 4])
    assert mean.tolist() == [1.0, 0.75]
    assert most.tolist() == [0.5, 0.25] and nothing.tolist() == [0.25]


def test_the_command_drives_once_and_says_who_is_pressed(tmp_path, capsys):
    with ScenarioWriter(tmp_path / "store") as writer:
        for seed in range(2):
            writer.add(make_scenario(seed, agents=2, frames=41))
    out = tmp_path / "out"
    command = ["evaluate", "pressure", "--planners", "constant_velocity", "log_replay", "--split",
               str(tmp_path / "store"), "--out", str(out)]  # fmt: skip
    assert main(command) == 0
    text = capsys.readouterr().out
    assert "Which rule presses on whom, store, reactive agents" in text and text in (out / "pressure.md").read_text()
    found = json.loads((out / "pressure.json").read_text())["planners"]
    assert [one["planner"] for one in found] == ["constant_velocity", "log_replay"]
    for one in found:
        assert set(one["rules"]) == RULES and one["drives"] == 2
        shares = [rule["strongest"]["value"] for rule in one["rules"].values()]
        assert sum(shares) + one["nothing"]["value"] == pytest.approx(1.0)
    stamps = {path: path.stat().st_mtime_ns for path in out.rglob("*.drive")}
    assert stamps and main(command) == 0
    assert stamps == {path: path.stat().st_mtime_ns for path in out.rglob("*.drive")}


def test_levels_of_a_planner_that_has_none_are_refused(tmp_path, capsys):
    with ScenarioWriter(tmp_path / "store") as writer:
        writer.add(make_scenario(0, agents=1, frames=41))
    command = ["evaluate", "pressure", "--planners", "idm", "--split", str(tmp_path / "store"), "--levels", "idm",
               "--out", str(tmp_path / "out")]  # fmt: skip
    assert main(command) == 2
    assert "has no usual levels" in capsys.readouterr().err
