"""Tables of planners: values by scenario, intervals, paired differences."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import sem

from radp.cli.main import main
from radp.evaluation.planners import COLUMNS, POOLED, Row, compare, footnote, over_seeds, over_splits, table
from radp.evaluation.settings import Comparison
from radp.metrics.card import CARDS
from radp.metrics.score import METRICS
from radp.planners import load_planner
from radp.planners.registry import PLANNERS
from radp.runs.errors import BadInput
from radp.scenario.store import ScenarioWriter
from radp.sim.planner import is_random
from radp.sim.simulate import simulate
from radp.sources.synthetic import make_scenario
from radp.statistics.bootstrap import mean_of
from radp.statistics.estimate import LEGEND

NAME = "wandering_planner.py:WanderingPlanner"
WANDERING = str(Path(__file__).parent / NAME)


def wanted(store: Path | str, *planners: str, **seeds: int) -> Comparison:
    return Comparison(planners=planners, splits=(str(store),), agents=("nonreactive",), **seeds)


def row(planner: str, score: np.ndarray) -> Row:
    return Row("split", "reactive", planner, dict.fromkeys(COLUMNS, score))


def test_cards_are_paired_by_token_and_missing_values_stay_missing(tmp_path):
    cards = [
        {"token": "b", "kind": "k", "score": 0.5, "seconds": None, "metrics": {m: {"value": None} for m in METRICS}},
        {"token": "a:3", "kind": "k", "score": 1.0, "seconds": 9.0, "metrics": {m: {"value": 1.0} for m in METRICS}},
    ]
    (tmp_path / CARDS).write_text("".join(json.dumps(card) + "\n" for card in cards))
    found = Row.read(tmp_path, "split", "reactive", "planner")
    values = found.values
    assert found.logs.tolist() == ["a", "b"] and values["score"].tolist() == [1.0, 0.5]
    assert np.isnan(values[METRICS[0]][1])


def test_a_clear_difference_is_reported_and_noise_is_called_noise():
    draw = np.random.default_rng(0)
    base = draw.random(200)
    better, same = np.clip(base + 0.1, 0, 2), base + draw.normal(0, 0.2, 200)
    text = table([row("base", base), row("better", better), row("same", same)], base="base")
    lines = text.splitlines()
    assert "+10.0 [+10.0, +10.0]" in lines[4] and "no difference shown" not in lines[4]
    assert "no difference shown" in lines[6]


def test_splits_are_pooled_by_planner_and_mode_and_paired_across_all_of_them():
    draw = np.random.default_rng(1)
    parts = {name: draw.random(60) for name in ("easy", "hard")}
    rows = [replace(row("base", values), split=name) for name, values in parts.items()]
    rows += [replace(row("better", values + 0.1), split=name) for name, values in parts.items()]
    base, better = over_splits(rows)
    assert base.split == better.split == POOLED and (base.planner, better.planner) == ("base", "better")
    assert base.values["score"].tolist() == [*parts["easy"], *parts["hard"]]
    change = better.difference(base, "score")
    assert change.count == 120 and change.value == pytest.approx(0.1) and change.excludes_zero
    assert over_splits(rows[:1]) == []


def test_compare_drives_and_tells(tmp_path):
    with ScenarioWriter(tmp_path / "store") as writer:
        writer.add(make_scenario(0, agents=4, turn="straight"))
    rows = compare(wanted(tmp_path / "store", "log_replay", "constant_velocity"), tmp_path / "out")
    assert [r.planner for r in rows] == ["log_replay", "constant_velocity"]
    assert rows[0].estimate("score").value > 0.5
    assert "| store | nonreactive | log_replay |" in table(rows)
    seconds = (make_scenario(0, agents=4, turn="straight").frames - 2) / 10  # the last frame is not driven
    assert footnote(rows).splitlines() == [f"store: 1 scenarios, each {seconds:.1f} s long.", LEGEND]


def test_the_smallest_difference_is_that_of_the_paired_values():
    draw = np.random.default_rng(4)
    base = draw.random(100)
    ours = base + draw.normal(0, 0.02, 100)
    lines = table([row("base", base), row("ours", ours)], base="base").splitlines()
    mean, paired = (100 * 2.8016 * sem(values) for values in (ours, ours - base))
    assert lines[3].count(f"(d {mean:.1f})") == lines[4].count(f"(d {paired:.1f})") == len(COLUMNS)
    assert paired < mean / 5


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("scenarios") / "store"
    with ScenarioWriter(path) as writer:
        for seed in range(3):
            writer.add(make_scenario(seed, agents=2, frames=16))
    return str(path)


def test_seeds_are_averaged_inside_each_scenario_and_planners_without_randomness_drive_once(store, tmp_path):
    rows = compare(wanted(store, WANDERING, "constant_velocity", seed=1, seeds=3), tmp_path)
    assert [r.seeds for r in rows] == [(1, 2, 3), (1,)] and len(rows[0].values["score"]) == 3
    folders = {path.name for path in tmp_path.iterdir()}
    assert folders == {f"store-nonreactive-{NAME}-seed{k}" for k in (1, 2, 3)} | {
        "store-nonreactive-constant_velocity-seed1"
    }
    each = [Row.read(tmp_path / f"store-nonreactive-{NAME}-seed{k}", "", "", "").values for k in (1, 2, 3)]
    progress = "ego_progress_along_expert_route"
    assert len({tuple(values[progress]) for values in each}) == 3  # each seed is another drive
    np.testing.assert_allclose(rows[0].values[progress], np.mean([values[progress] for values in each], axis=0))
    alone = mean_of(rows[0].values[progress])  # over scenarios: three of them, not nine
    assert rows[0].estimates()[progress] == alone and alone.count == 3
    assert footnote(rows).splitlines()[1:3] == [
        f"Each scenario driven with seeds 1 to 3, averaged inside it: {NAME}.",
        "Driven once, without randomness: constant_velocity.",
    ]


def test_a_value_that_some_seeds_lack_is_the_mean_of_the_others():
    two = [replace(row("p", np.array(values)), seeds=(s,)) for s, values in enumerate(([0.2, np.nan], [0.4, np.nan]))]
    two[1].values["score"] = np.array([np.nan, 1.0])
    both = over_seeds(two)
    assert both.seeds == (0, 1) and both.values["score"].tolist() == [0.2, 1.0]
    assert both.values["ego_is_comfortable"][0] == pytest.approx(0.3) and np.isnan(both.values["ego_is_comfortable"][1])


def test_another_number_of_seeds_drives_what_is_missing_and_nothing_else(store, tmp_path, monkeypatch):
    def driven(seeds: int) -> list[str]:
        notes = tmp_path / f"notes{seeds}"
        monkeypatch.setenv("RADP_TEST_NOTES", str(notes))
        found.append(compare(wanted(store, WANDERING, seeds=seeds), tmp_path / "out")[0])
        return notes.read_text().split() if notes.exists() else []

    found: list[Row] = []
    tokens = [make_scenario(seed, agents=2, frames=16).token for seed in range(3)]
    assert driven(1) == tokens and driven(3) == tokens * 2
    lost = next((tmp_path / "out" / f"store-nonreactive-{NAME}-seed2" / "drives").glob("*.drive"))
    before = lost.read_bytes()
    lost.unlink()  # as if it had been stopped there
    (tmp_path / "notes3").unlink()
    assert len(driven(3)) == 1 and lost.read_bytes() == before
    (tmp_path / "notes1").unlink()
    assert driven(1) == []
    one, three, again, first = (r.values["score"].tolist() for r in found)
    assert one == first != three == again and [len(r.seeds) for r in found] == [1, 3, 3, 1]


@pytest.mark.parametrize("name", list(PLANNERS))
def test_planners_that_call_themselves_deterministic_are(name):
    planner = load_planner(name)
    assert not is_random(planner)
    scenario = make_scenario(3, agents=4, frames=40)
    first, second = (next(iter(simulate(planner, [scenario], seed=seed))) for seed in (0, 1))
    assert first.failure is None
    np.testing.assert_array_equal(first.ego, second.ego)


def test_a_planner_that_does_not_say_counts_as_random():
    assert is_random(load_planner(WANDERING)) and is_random(load_planner("diffusion-planner-mini"))


def test_the_command_writes_table_and_json(store, tmp_path, capsys):
    command = ["evaluate", "planners", "--planners", "constant_velocity", WANDERING, "--splits", store, "--agents"]
    command += ["nonreactive", "--out", str(tmp_path / "out"), "--base", "constant_velocity"]
    assert main([*command, "--seeds", "2", "--json"]) == 0
    data = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)  # NaN is no JSON
    assert data == json.loads((tmp_path / "out" / "planners.json").read_text())
    once, twice = data["rows"]
    assert (once["seeds"], twice["seeds"]) == ([0], [0, 1]) and data["base"] == "constant_velocity"
    assert "differences" not in once and set(twice["differences"]) == set(once["means"]) == set(COLUMNS)
    change = twice["differences"]["score"]
    assert change["value"] == pytest.approx(twice["means"]["score"]["value"] - once["means"]["score"]["value"])
    assert change["shown"] is False and change["count"] == 3  # three scenarios show nothing
    text = (tmp_path / "out" / "planners.md").read_text()
    assert "| | | difference to constant_velocity |" in text and "no difference shown" in text and LEGEND in text
    for wrong, words in ((["--seeds", "0"], "seeds is 0"), (["--base", "idm"], "base is 'idm', expected one of")):
        assert main([*command, *wrong]) == 2
        assert words in capsys.readouterr().err


def test_two_planners_of_one_name_are_refused_before_any_drives(store, tmp_path):
    given = wanted(store, "runs/one/planner", "runs/two/planner")
    with pytest.raises(BadInput, match="runs/one/planner and runs/two/planner have the same last name"):
        compare(given, tmp_path / "out")
    assert not (tmp_path / "out").exists()
