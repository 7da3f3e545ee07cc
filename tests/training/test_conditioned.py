"""Alignment with weights of rules as an input: two steps, and what is written."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from radp.model.checkpoint import load_model
from radp.model.rule_weights import conditioned
from radp.rules import default_rules
from radp.rules.scales import RuleScales
from radp.runs.errors import BadInput
from radp.runs.folder import RunFolder
from radp.training.align import AlignTask, check_way, train_align
from radp.training.anchored import AnchoredTask
from radp.training.settings import AlignConfig, AvoidConfig, LoopConfig, WeightingConfig
from tests.made_scenes import made_scene
from tests.planners.test_learned import SMALL, awake
from tests.training.test_align import OneScene

pytest.importorskip("peft")
NAMES = [rule.name for rule in default_rules()]
WEIGHTING = WeightingConfig(conditioned=True, dual_step=0.01, budgets=("collision=0.1",), tiers=True)
CONFIG = AlignConfig(
    loop=LoopConfig(steps=2, batch=2, lr=1e-2, warmup=0, log_every=1, save_every=2, validate_every=10),
    weighting=WEIGHTING,
    augment=0.0,
    strength=0.1,
)


def samples() -> OneScene:
    return OneScene(made_scene(2, agents=6, lanes=12, route_lanes=12))


def test_two_steps_train_the_input_and_keep_the_whole_model(tmp_path: Path) -> None:
    base = conditioned(awake(SMALL), NAMES)
    before = base.decoder.weight_embedding.fc2.weight.clone()
    folder = RunFolder.create(tmp_path / "run", "train align", CONFIG, CONFIG.loop.seed, {}, {})
    path = train_align(CONFIG, folder, base, samples())
    model = load_model(path)
    assert path == tmp_path / "run" / "model" and model.config.rule_weights == tuple(NAMES)
    assert not torch.equal(model.decoder.weight_embedding.fc2.weight, before)
    records = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert any("weight/collision" in json.dumps(record) for record in records)


def test_what_learnt_is_what_is_written(tmp_path: Path) -> None:
    """Adapters alone, a whole model with a trained decoder, or with a trained input for weights."""
    for trained, written, conditions in (
        ("adapters", "adapter", False),
        ("decoder", "model", False),
        ("weights", "model", True),
    ):
        weighting = WeightingConfig(conditioned=conditions, around_default=conditions)
        config = replace(CONFIG, weighting=weighting, avoid=AvoidConfig(hold="base", way="chain", trained=trained))
        base = conditioned(awake(SMALL), NAMES) if conditions else awake(SMALL)
        folder = RunFolder.create(tmp_path / trained, "train align", config, config.loop.seed, {}, {})
        path = train_align(config, folder, base, samples())
        assert path == tmp_path / trained / written
        assert (path / "adapter_config.json").is_file() == (trained == "adapters")
        assert (path / "model.safetensors").is_file() == (trained != "adapters")


def test_each_sample_draws_its_own_weights_the_same_at_every_try() -> None:
    task = AlignTask(CONFIG, conditioned(awake(SMALL), NAMES), samples())
    first, again, later = (task.batch(step, 0, 1).rule_weights for step in (0, 0, 1))
    assert first.shape == (2, 6) and torch.equal(first, again) and not torch.equal(first, later)
    assert not torch.equal(first[0], first[1])
    plain = AlignTask(AlignConfig(loop=CONFIG.loop, augment=0.0), awake(SMALL), samples())
    assert plain.batch(0, 0, 1).rule_weights is None


@pytest.mark.parametrize("way", ["x0", "chain"])
def test_weights_count_on_own_states_too(way) -> None:
    avoid = AvoidConfig(hold="base", way=way, rule_set="avoid")
    config = replace(CONFIG, avoid=avoid, weighting=WeightingConfig(conditioned=True))
    task = AnchoredTask(config, conditioned(awake(SMALL), NAMES), samples())

    def loss_at(factor: float) -> tuple[float, dict[str, float]]:
        batch = task.batch(0, 0, 1)
        assert batch.scene.rule_weights.shape == (2, 6)
        scene = replace(batch.scene, rule_weights=torch.full((2, 6), math.log(factor)))
        task.memory.load_state_dict(RuleScales(6).state_dict())
        return task.loss(task.model, replace(batch, scene=scene), torch.Generator().manual_seed(0))

    (_, parts), (more, heavier) = loss_at(1.0), loss_at(3.0)
    assert parts["anchor"] == pytest.approx(0.0, abs=1e-9)  # an untrained input does not listen
    assert heavier["rules"] == pytest.approx(3 * parts["rules"], rel=1e-5) and parts["rules"] > 0
    more.backward()
    learns = task.base.decoder.weight_embedding
    assert any(p.grad is not None and float(p.grad.abs().max()) > 0 for p in learns.parameters())


def test_the_input_for_weights_can_learn_alone() -> None:
    avoid = AvoidConfig(hold="base", way="chain", rule_set="v2", trained="weights")
    config = replace(CONFIG, avoid=avoid, weighting=WeightingConfig(conditioned=True, around_default=True))
    base = conditioned(awake(SMALL), NAMES)
    task = AnchoredTask(config, base, samples())
    learns = {name for name, p in task.model.named_parameters() if p.requires_grad}
    assert learns == {name for name, _ in base.named_parameters() if "weight_embedding" in name}
    loss, _ = task.loss(task.model, task.batch(0, 0, 1), torch.Generator().manual_seed(0))
    loss.backward()
    assert float(base.decoder.weight_embedding.fc2.weight.grad.abs().max()) > 0
    with pytest.raises(BadInput, match="--trained weights needs --conditioned"):
        check_way(replace(config, weighting=WeightingConfig()))
