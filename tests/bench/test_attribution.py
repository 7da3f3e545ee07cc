"""The latency table has its figures, says whose head it is, and its states are plans of that planner."""

from __future__ import annotations

import math

import pytest
import torch

import radp.bench.attribution as module
import radp.bench.rules as rules_module
from radp.bench.attribution import bench_attribution, random_head
from radp.bench.rules import bench_rules, example
from radp.model.checkpoint import save_model
from radp.model.head import save_head
from radp.planners.learned import load_learned
from tests.planners.test_learned import SMALL, awake

KEYS = ("planner_ms", "head_overhead", "teacher_overhead", "guidance_overhead", "cheap_geometry_head_overhead",
        "teacher_cached_ms", "head_cached_ms")  # fmt: skip


@pytest.fixture(autouse=True)
def small_sizes(monkeypatch):
    monkeypatch.setattr(module, "SCENARIOS", 2)
    monkeypatch.setattr(module, "BATCH", 2)


def test_the_table_of_a_planner_folder_without_and_with_a_head(tmp_path):
    save_model(awake(SMALL), tmp_path / "small")
    bare = bench_attribution(str(tmp_path / "small"), rounds=1, states=2)
    for key in KEYS:
        deviation = bare[f"{key}_deviation"]
        assert math.isfinite(bare[key]) and math.isfinite(deviation) and deviation >= 0
    assert bare["planner_ms"] > 0 and bare["teacher_cached_ms"] > 0 and bare["head_cached_ms"] > 0
    assert "random weights" in bare["head"] and bare["cached_states"] == 2
    assert 0 < bare["head_share_cpu"] < 10 and 0 < bare["cheap_geometry_head_share_cpu"] < 10
    save_head(random_head(SMALL), tmp_path / "small")
    assert bench_attribution(str(tmp_path / "small"), rounds=1, states=1)["head"] == "the planner's own"


def test_cached_states_are_the_planners_own(tmp_path):
    save_model(awake(SMALL), tmp_path / "small")
    planner = load_learned(tmp_path / "small")
    kept = module._states(planner, 3)
    assert len(kept) == 3
    plan, context, state = kept[2]
    assert plan.shape == (1, 80, 4) and len(context.speed_now) == 1
    assert state.ego_token.shape == (1, SMALL.hidden) and state.padded.dtype == torch.bool


def test_bench_of_the_rules(monkeypatch):
    monkeypatch.setattr(rules_module, "BATCHES", (1, 2))
    found = bench_rules(repeats=2)
    assert found["batch_1"]["costs_ms"] > 0 and found["batch_2"]["costs_and_gradients_ms"] > 0
    assert math.isfinite(found["gradients_over_forward"])
    scene, plan = example(2)
    assert len(scene) == 2 and plan.shape == (2, 80, 4)
