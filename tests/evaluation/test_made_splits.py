"""Splits that are made on demand: where they are found, and the hash that checks them."""

from dataclasses import replace
from pathlib import Path

import pytest

from radp.evaluation import made_splits
from radp.evaluation.made_splits import RECIPES, Recipe, digest, make_split
from radp.runs.errors import BadInput
from radp.scenario.splits import MADE, made_split, open_split
from radp.scenario.store import ScenarioWriter
from radp.sources.settings import SumoSplit

PLACES = (0, 1, 60, 61, 130, 131)


@pytest.fixture
def recipes(tmp_path, monkeypatch):
    """Recipes whose generator copies packaged scenarios; returns how often it was called."""
    calls: list[str] = []

    def generate(wanted: SumoSplit, out: Path, workers: int) -> None:
        calls.append(wanted.split)
        packaged = open_split("sumo14-val")
        with ScenarioWriter(out) as writer:
            for place in PLACES:
                writer.add(packaged[place])
        (out / "card.json").write_text("{}")

    monkeypatch.setenv("RADP_DATA", str(tmp_path))
    monkeypatch.setattr(made_splits, "generate", generate)
    plain = {name: replace(recipe, digest=None) for name, recipe in RECIPES.items()}
    plain["sumo14-hard-xl"] = Recipe("hard-xl", 1, 1, 192, pool=2)
    monkeypatch.setattr(made_splits, "RECIPES", plain)
    return calls


def test_recipes_are_the_splits_that_can_be_opened():
    assert tuple(RECIPES) == MADE
    assert RECIPES["sumo14-dev"].per_kind * 14 == 560 and RECIPES["sumo14-hard-xl"].per_kind * 14 == 1_120
    splits = [recipe.split for recipe in RECIPES.values()]
    assert not {"train", "val", "random", "hard"} & set(splits), "networks are seeded by the name of their split"


def test_a_split_is_made_once_and_then_found_by_its_name(recipes):
    with pytest.raises(BadInput, match="radp data make-split sumo14-dev"):
        open_split("sumo14-dev")
    path, found = make_split("sumo14-dev")
    assert path == made_split("sumo14-dev") and make_split("sumo14-dev") == (path, found)
    assert recipes == ["dev"]
    assert [s.token for s in open_split("sumo14-dev")] == [open_split("sumo14-val")[i].token for i in PLACES]
    assert len(open_split("sumo14-dev@every-2")) == 3


def test_the_hardest_of_the_pool_are_kept(recipes):
    """Two of each of three kinds are driven by PDM-Closed, the worse one stays."""
    path, _ = make_split("sumo14-hard-xl")
    kept = open_split("sumo14-hard-xl")
    assert len(kept) == len({s.kind for s in kept}) == len({open_split("sumo14-val")[i].kind for i in PLACES})
    assert not path.with_name("sumo14-hard-xl.making").exists()


def test_another_content_is_refused_by_its_hash(recipes, monkeypatch):
    _, found = make_split("sumo14-dev")
    monkeypatch.setitem(made_splits.RECIPES, "sumo14-dev", replace(RECIPES["sumo14-dev"], digest=found))
    assert make_split("sumo14-dev")[1] == found
    monkeypatch.setitem(made_splits.RECIPES, "sumo14-dev", replace(RECIPES["sumo14-dev"], digest="0" * 64))
    with pytest.raises(BadInput, match="not the split of the recipe"):
        make_split("sumo14-dev")


def test_the_hash_sees_every_part_of_a_scenario(tmp_path):
    scenario = open_split("sumo14-val")[0]
    moved = scenario.ego.copy()
    moved[3, 0] += 0.001
    changed = {
        "same": scenario,
        "ego": replace(scenario, ego=moved),
        "kind": replace(scenario, kind="other"),
        "lights": replace(scenario, lights=replace(scenario.lights, state=(scenario.lights.state + 1) % 4)),
    }
    found = {}
    for name, one in changed.items():
        with ScenarioWriter(tmp_path / name) as writer:
            writer.add(one)
        found[name] = digest(tmp_path / name)
    assert len(set(found.values())) == (4 if scenario.lights.state.size else 3)


def test_unknown_names_are_refused():
    with pytest.raises(BadInput, match="there are sumo14-dev, sumo14-hard-xl"):
        make_split("sumo14-test")
