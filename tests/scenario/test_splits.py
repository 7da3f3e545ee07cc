import json
import pickle

import pytest

from radp import zoo
from radp.model.paths import model_path
from radp.runs.errors import BadInput
from radp.scenario import splits
from radp.scenario.neutral_json import NeutralJsonError, save_json, scenario_to_json
from radp.scenario.splits import JsonScenarios, open_split
from radp.scenario.store import ScenarioStore, ScenarioWriter, StoreError
from radp.zoo import list_models, list_splits
from tests.small_scenarios import assert_same, small_scenario


@pytest.fixture
def packaged(tmp_path, monkeypatch):
    """A zoo with one split, "tiny14", and one model, "tiny"."""
    monkeypatch.setattr(zoo, "SPLITS", tmp_path / "splits")
    monkeypatch.setattr(zoo, "MODELS", tmp_path / "models")
    with ScenarioWriter(tmp_path / "splits" / "tiny14") as writer:
        writer.add(small_scenario("a"))
        writer.add(small_scenario("b"))
    (tmp_path / "models" / "tiny").mkdir(parents=True)
    (tmp_path / "models" / "tiny" / "config.json").write_text("{}")
    (tmp_path / "models" / "unfinished").mkdir()
    return tmp_path


def write_json(folder, *tokens):
    folder.mkdir(exist_ok=True)
    for i, token in enumerate(tokens):
        save_json(scenario_to_json(small_scenario(token)), folder / f"{i}.json{'.gz' if i % 2 else ''}")
    return folder


def test_packaged_splits_have_names(packaged):
    assert list_splits() == ["tiny14"]
    split = open_split("tiny14")
    assert isinstance(split, ScenarioStore) and split.tokens() == ["a", "b"]
    assert_same(split[0], small_scenario("a"))


def test_an_unknown_name_lists_what_exists(packaged):
    with pytest.raises(BadInput, match=r"'tiny15' is neither a packaged split \(tiny14\), nor one to make"):
        open_split("tiny15")
    with pytest.raises(BadInput, match=r"'huge' is neither a packaged model \(tiny\)"):
        model_path("huge")


def test_packaged_models_have_names(packaged):
    assert list_models() == ["tiny"]
    assert model_path("tiny") == packaged / "models" / "tiny"
    assert model_path(packaged / "splits") == packaged / "splits"


def test_a_store_by_its_path(packaged):
    assert open_split(packaged / "splits" / "tiny14").tokens() == ["a", "b"]
    (packaged / "splits" / "tiny14" / "manifest.json").write_text("{")
    with pytest.raises(StoreError, match=r"manifest\.json"):
        open_split(packaged / "splits" / "tiny14")


def test_a_json_file_and_a_folder_of_them(tmp_path):
    folder = write_json(tmp_path / "json", "x", "y", "z")
    (folder / "0.result.json").write_text(json.dumps({"scores": {}}))
    (folder / "notes.txt").write_text("not a scenario")
    split = open_split(str(folder))
    assert isinstance(split, JsonScenarios) and len(split) == 3
    assert split.tokens() == ["x", "y", "z"] and split.kinds() == {"following_lane": 3}
    assert [scenario.token for scenario in split] == ["x", "y", "z"]
    assert split[1:].tokens() == ["y", "z"] and split[-1].token == "z"
    assert split[0] is split[0]
    assert open_split(folder / "1.json.gz")[0].token == "y"
    assert pickle.loads(pickle.dumps(split)).tokens() == ["x", "y", "z"]


def test_files_are_read_only_when_needed(tmp_path):
    folder = write_json(tmp_path / "json", "x", "y")
    (folder / "9.json").write_text("{")
    split = open_split(folder)
    assert split[:2].tokens() == ["x", "y"]
    with pytest.raises(NeutralJsonError, match=r"9\.json"):
        split.tokens()


def test_one_token_in_two_files_is_refused(tmp_path):
    split = open_split(write_json(tmp_path / "json", "x", "x"))
    with pytest.raises(BadInput, match=r"0\.json and .*1\.json\.gz both hold a scenario 'x'"):
        split.tokens()


def test_other_files_and_empty_folders_are_refused(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(BadInput, match=r"a\.txt is neither a store folder nor"):
        open_split(tmp_path / "a.txt")
    with pytest.raises(BadInput, match="holds no scenarios"):
        open_split(tmp_path)


def test_only_some_files_stay_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(splits, "SCENARIOS_KEPT", 1)
    split = open_split(write_json(tmp_path / "json", "x", "y"))
    first = split[0]
    assert split[1].token == "y" and split[0] is not first
