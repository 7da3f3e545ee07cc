"""Dose and response: verdicts of made costs, and a planner that does not listen yet."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from radp.cli.main import main
from radp.evaluation.dose import dose_response, verdict_of
from radp.evaluation.settings import DoseResponse
from radp.model.checkpoint import save_model
from radp.model.rule_weights import conditioned
from radp.report.dose_table import dose_tables
from radp.runs.errors import BadInput
from radp.scenario.neutral_json import save_json, scenario_to_json
from tests.planners.test_learned import SMALL, awake
from tests.sim.made_worlds import short_scenarios

WEIGHTS = (0.25, 0.5, 1.0, 2.0, 4.0)
NOISE = np.random.default_rng(0).normal(0.0, 0.05, (5, 30))


@pytest.mark.parametrize(
    ("means", "word", "said"),
    [
        ((5, 4, 3, 2, 1), "monotone", "monotone"),
        ((5, 4, 4.5, 2, 1), "falls", "falls, but rises from 0.5 to 1"),
        ((1, 2, 3, 4, 5), "rises", "rises"),
        ((1, 1, 1, 1, 1), "flat", "flat"),
        ((1, 2, 3, 2, 1), "no order", "no order"),
    ],
)
def test_verdicts_by_hand(means: tuple[float, ...], word: str, said: str) -> None:
    drawn = NOISE if word not in ("flat", "no order") else NOISE[:1]  # the ends are then the same to the bit
    found = verdict_of(np.array(means, dtype=float)[:, None] + drawn, WEIGHTS)
    assert (found.word, str(found)) == (word, said)
    assert found.ends.value == pytest.approx(means[-1] - means[0], abs=0.05) and len(found.steps) == 4


def test_few_scenarios_show_nothing() -> None:
    assert verdict_of(np.array([[3.0, 3.0], [2.0, 2.0], [1.0, 1.0]]), (0.5, 1.0, 2.0)).word == "flat"


@pytest.fixture(scope="module")
def scenarios(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("scenarios")
    for i, scenario in enumerate(short_scenarios(2)):
        save_json(scenario_to_json(scenario), folder / f"{i}.json.gz")
    return str(folder)


def test_a_planner_that_does_not_listen_yet_is_flat(
    scenarios: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its input is not trained: every drive is the same to the bit, at every weight."""
    model = save_model(conditioned(awake(SMALL), ("collision", "goal")), tmp_path / "model")
    planned = ["evaluate", "dose", "--planner", str(model), "--scenarios", scenarios, "--agents", "nonreactive"]
    assert main([*planned, "--doses", "0.25", "4", "--out", str(tmp_path / "out"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["rule"] for one in told["rules"]] == ["collision", "goal"]
    for one in told["rules"]:
        assert one["verdict"] == "flat" and [dose["weight"] for dose in one["doses"]] == [0.25, 1.0, 4.0]
        for dose in one["doses"]:
            changes = [change["value"] for change in dose["change"].values() if change["value"] is not None]
            assert len(changes) >= 8 and set(changes) == {0.0}
    assert (tmp_path / "out" / "dose.png").stat().st_size > 1000 and (tmp_path / "out" / "dose.json").is_file()
    text = (tmp_path / "out" / "dose.md").read_text()
    assert "| collision | flat | +0.000 [+0.000, +0.000]" in text and "### Weight of goal" in text
    wanted = DoseResponse(planner=str(model), scenarios=scenarios, agents="nonreactive", doses=(0.25, 4.0))
    again = dose_response(wanted, tmp_path / "out")  # nothing is driven again
    assert [table.title for table in dose_tables(again, str(model), scenarios)][1].startswith("Weight of collision")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"planner": "idm"}, "takes no weights of rules"),
        ({"rules": ("lane",)}, "takes no weight of 'lane', only of goal"),
        ({"doses": (1.0,)}, "other than 1"),
        ({"doses": (-1.0,)}, "above 0"),
        ({"rules": ("goal", "goal")}, "named twice"),
    ],
)
def test_what_cannot_be_driven_is_one_sentence(options: dict, complaint: str, scenarios: str, tmp_path: Path) -> None:
    planner = "idm" if "planner" in options else str(save_model(conditioned(awake(SMALL), ("goal",)), tmp_path / "m"))
    with pytest.raises(BadInput, match=complaint):
        dose_response(DoseResponse(**{"planner": planner, "scenarios": scenarios, **options}), tmp_path / "out")
