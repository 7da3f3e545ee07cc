"""Every golden rollout: metrics, score, collisions, time to collision, comfort, route and series equal nuPlan's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from radp.metrics.score import METRICS, ScenarioScore, evaluate
from radp.scenario.neutral_json import load_json
from radp.sim.rollout import Rollout, rollout_from_json
from tests.shared_data import NUPLAN_GOLDEN

pytestmark = pytest.mark.golden


@dataclass(frozen=True)
class Case:
    """Where one golden drive and its result lie; `expected` is what golden.json says, if it lists the case."""

    drive: Path
    result: Path | None
    scenario: Path | None
    expected: dict[str, Any]
    run: str = ""


def golden_cases() -> Iterator[Any]:
    """Every drive that golden.json lists, and every other one in the folder."""
    listing = NUPLAN_GOLDEN / "golden.json"
    known = json.loads(listing.read_text())["cases"] if listing.exists() else {}
    seen = set()
    for name, entry in known.items():
        drive = NUPLAN_GOLDEN / entry.get("rollout_file", entry.get("file", ""))
        if entry["kind"] in ("rollout", "closed_loop"):
            seen.add(drive)
            yield pytest.param(_case(drive, entry), id=name)
    drives = [*NUPLAN_GOLDEN.glob("rollouts/*.json.gz"), *NUPLAN_GOLDEN.glob("closed_loop/*__*.json.gz")]
    for drive in sorted(set(drives) - seen):
        if not drive.name.endswith(".result.json.gz"):
            yield pytest.param(_case(drive, {}), id=drive.name.removesuffix(".json.gz"))
    for path in sorted(NUPLAN_GOLDEN.glob("files/*/expected.json.gz")):
        for run, expected in known.get(path.parent.name, {}).get("runs", {}).items():
            yield pytest.param(Case(path, None, None, expected, run), id=f"{path.parent.name}-{run}")


def _case(drive: Path, entry: dict[str, Any]) -> Case:
    name = drive.name.removesuffix(".json.gz")
    result = NUPLAN_GOLDEN / entry.get("result_file", drive.with_name(f"{name}.result.json.gz"))
    scenario = NUPLAN_GOLDEN / entry.get("scenario_file", drive.with_name(f"{name.split('__')[0]}.scenario.json.gz"))
    return Case(drive, result if result.exists() else None, scenario if scenario.exists() else None, entry)


CASES = list(golden_cases()) or [pytest.param(None, marks=pytest.mark.skip(reason="skipped: no shared data"))]


def read_case(case: Case) -> Rollout:
    """The drive; where its file holds only what differs from a scenario, on top of that scenario."""
    data = load_json(case.drive)
    if case.run:
        data = {**data["scenario"], **_difference(data["runs"][case.run])}
    elif case.scenario is not None:
        data = {**load_json(case.scenario), **_difference(data)}
    return rollout_from_json(data, case.drive.name)


def _difference(run: dict[str, Any]) -> dict[str, Any]:
    """A text in place of the agents says that they are the scenario's own."""
    return {key: value for key, value in run.items() if key != "agents" or isinstance(value, list)}


def check_listing(score: ScenarioScore, expected: dict[str, Any]) -> None:
    """What golden.json says of a case."""
    for name in METRICS:
        assert score.metrics[name].valid, name
        assert score.metrics[name].value == pytest.approx(expected["scores"][name], abs=1e-6), name
    assert score.score == pytest.approx(expected["score"], abs=1e-6)
    assert [(c.frame, c.time_us, c.track, c.type.name, c.object.name, c.at_fault) for c in score.collisions] == [
        (c["frame"], c["time_us"], c["track"], c["type"], c["object"], c["at_fault"]) for c in expected["collisions"]
    ]
    assert [c.delta_v for c in score.collisions] == pytest.approx(
        [c["delta_v"] for c in expected["collisions"]], abs=1e-5
    )
    ttc = np.array([np.inf if value is None else value for value in expected["ttc"]])
    np.testing.assert_allclose(score.ttc, ttc, rtol=0, atol=1e-9)
    assert score.comfort == expected["comfort"]


def check_result(score: ScenarioScore, result: dict[str, Any]) -> None:
    """Route, set C and series of a result file."""
    for name, value in result["scores"].items():
        assert score.metrics[name].value == pytest.approx(value, abs=1e-6), name
    assert score.ego_route == [[str(lane) for lane in row] for row in result["ego_route"]]
    assert score.in_one_or_connected_lanes.astype(int).tolist() == result["in_one_or_connected_lanes"]
    for name, values in result["series"].items():
        expected = np.array([np.inf if value is None else value for value in values])
        np.testing.assert_allclose(score.series[name], expected, rtol=0, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("case", CASES)
def test_golden(case: Case) -> None:
    score = evaluate(read_case(case))
    if case.expected:
        check_listing(score, case.expected)
    result = load_json(case.result) if case.result else None
    if result is not None:
        check_result(score, result)
    assert case.expected or result is not None, "nothing to compare with"
