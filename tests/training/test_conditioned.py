"""Alignment with weights of rules as an input: two steps, and what is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from radp.model.checkpoint import load_model
from radp.model.rule_weights import conditioned
from radp.rules import default_rules
from radp.runs.folder import RunFolder
from radp.training.align import AlignTask, train_align
from radp.training.settings import AlignConfig, LoopConfig, WeightingConfig
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


def test_each_sample_draws_its_own_weights_the_same_at_every_try() -> None:
    task = AlignTask(CONFIG, conditioned(awake(SMALL), NAMES), samples())
    first, again, later = (task.batch(step, 0, 1).rule_weights for step in (0, 0, 1))
    assert first.shape == (2, 6) and torch.equal(first, again) and not torch.equal(first, later)
    assert not torch.equal(first[0], first[1])
    plain = AlignTask(AlignConfig(loop=CONFIG.loop, augment=0.0), awake(SMALL), samples())
    assert plain.batch(0, 0, 1).rule_weights is None
