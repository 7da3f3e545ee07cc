"""Weights of rules as an input: an untrained input changes nothing, a trained one does; and how they are given."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from radp.model.adapters import add_adapters, save_adapters
from radp.model.checkpoint import load_model, save_model
from radp.model.config import ModelConfig
from radp.model.decoder import WeightEmbedding
from radp.model.encoder import Encoding
from radp.model.network import DiffusionModel
from radp.model.rule_weights import conditioned, log_weights, parse_weights
from radp.planners.diffusion import DiffusionPlanner
from radp.planners.learned import load_planner_model, package_planner
from radp.runs.errors import BadInput
from radp.scene.scene import Scene
from tests.made_scenes import made_scene
from tests.planners.test_learned import SMALL, awake

RULES = ("collision", "comfort", "goal")


def planned(model: DiffusionModel, scene: Scene, **weights: float) -> torch.Tensor:
    planner = DiffusionPlanner(model, "p", steps=3)
    return planner.plan(scene, torch.Generator().manual_seed(0), weights or None).trajectory


@pytest.fixture(scope="module")
def scene() -> Scene:
    return made_scene(batch=2)


def test_an_untrained_input_is_bit_identical_and_a_trained_one_listens(scene: Scene) -> None:
    base = awake(SMALL)
    model = conditioned(base, RULES)
    assert model.config.rule_weights == RULES and conditioned(model, RULES) is model
    plain = planned(base, scene)
    assert torch.equal(planned(model, scene), plain) and torch.equal(planned(model, scene, comfort=4.0), plain)
    with torch.no_grad():
        model.decoder.weight_embedding.fc2.weight.normal_(generator=torch.Generator().manual_seed(1))
    heard = planned(model, scene, comfort=4.0)
    assert not torch.equal(heard, planned(model, scene)) and torch.equal(heard, planned(model, scene, comfort=4.0))
    assert torch.equal(planned(model, scene), plain), "at the default it stays its base, whatever was learnt"
    assert torch.equal(planned(model, scene, comfort=1.0, goal=1.0), plain)
    mixed = replace(scene, rule_weights=torch.randn(len(scene), 3, generator=torch.Generator().manual_seed(2)))
    assert not torch.equal(planned(model, mixed), planned(model, scene))  # each scene with its own


def test_directions_of_rules_add_up_and_padded_tokens_do_not_count() -> None:
    generator = torch.Generator().manual_seed(3)
    embedding = WeightEmbedding(2, 8)
    tokens, route = torch.randn(3, 5, 8, generator=generator), torch.randn(3, 8, generator=generator)
    padded = torch.zeros(3, 5, dtype=torch.bool)
    padded[:, 3:] = True
    one, other = torch.tensor([[1.0, 0.0]]).expand(3, 2), torch.tensor([[0.0, -0.5]]).expand(3, 2)

    def given(log_weights: torch.Tensor, tokens: torch.Tensor = tokens) -> torch.Tensor:
        return embedding(log_weights, route, Encoding(tokens, padded))

    torch.testing.assert_close(given(one + other), given(one) + given(other))
    torch.testing.assert_close(given(-2 * one), -2 * given(one))
    assert not given(0 * one).any() and given(one).abs().max() > 0
    changed = tokens.clone()
    changed[:, 3:] += 10.0
    assert torch.equal(given(one, changed), given(one))
    changed[:, 0] += 10.0
    assert not torch.allclose(given(one, changed), given(one))  # the scene decides


def test_the_input_is_kept_on_disk(tmp_path: Path) -> None:
    model = conditioned(awake(SMALL), RULES)
    with torch.no_grad():
        model.decoder.weight_embedding.fc2.weight.fill_(0.5)
    again = load_model(save_model(model, tmp_path))
    assert again.config == model.config and ModelConfig.from_json(model.config.to_json()) == model.config
    assert (again.decoder.weight_embedding.fc2.weight == 0.5).all()


def test_weights_in_words_and_numbers() -> None:
    assert parse_weights(["collision=3", "goal=0.5"]) == {"collision": 3.0, "goal": 0.5}
    config = replace(SMALL, rule_weights=RULES)
    given = log_weights(config, {"goal": 0.5}, "p")
    torch.testing.assert_close(given, torch.tensor([[0.0, 0.0, math.log(0.5)]]))
    assert log_weights(SMALL, {}, "p") is None


@pytest.mark.parametrize("word", ["collision", "=3", "collision=", "collision=-1", "collision=nan", "collision=x"])
def test_words_that_are_no_weights(word: str) -> None:
    with pytest.raises(BadInput, match="no weight of a rule"):
        parse_weights([word])


def test_who_takes_no_weights_says_so() -> None:
    with pytest.raises(BadInput, match="takes no weights of rules"):
        log_weights(SMALL, {"goal": 2.0}, "p")
    with pytest.raises(BadInput, match="no weight of 'lane', only of collision, comfort, goal"):
        log_weights(replace(SMALL, rule_weights=RULES), {"lane": 2.0}, "p")
    with pytest.raises(BadInput, match="takes weights of collision"):
        conditioned(conditioned(awake(SMALL), RULES), ["lane"])
    with pytest.raises(BadInput, match="two weights"):
        parse_weights(["goal=1", "goal=2"])


def test_a_planner_folder_may_hold_the_input_alone(tmp_path: Path) -> None:
    pytest.importorskip("peft")
    base = save_model(awake(SMALL), tmp_path / "base")
    save_adapters(add_adapters(load_model(base)), tmp_path / "adapter")
    plain = package_planner(str(base), [tmp_path / "adapter"], tmp_path / "plain")
    model = conditioned(load_planner_model(plain), RULES)
    with torch.no_grad():
        model.decoder.weight_embedding.fc2.weight.fill_(0.5)
    trained = save_model(model, tmp_path / "trained")
    folder = package_planner(str(base), [tmp_path / "adapter"], tmp_path / "planner", weights=trained)
    found = load_planner_model(folder)
    assert found.config.rule_weights == RULES and (found.decoder.weight_embedding.fc2.weight == 0.5).all()
    with pytest.raises(BadInput, match="takes no weights of rules"):
        package_planner(str(base), [tmp_path / "adapter"], tmp_path / "other", weights=base)
    described = json.loads((folder / "planner.json").read_text())
    for rules, words in ((["lane"], "does not fit weights of lane"), ("lane", "no list"), ([1], "no list")):
        (folder / "planner.json").write_text(json.dumps({**described, "rule_weights": rules}))
        with pytest.raises(BadInput, match=words):
            load_planner_model(folder)
    (folder / "planner.json").write_text(json.dumps(described))
    (folder / "rule_weights.safetensors").write_bytes(b"cut")
    with pytest.raises(BadInput, match="weights file"):
        load_planner_model(folder)
