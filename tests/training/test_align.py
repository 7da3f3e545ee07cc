"""Alignment: the rules see the plan that the model means, and only the adapters learn."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from radp.geometry.frames import heading_vector
from radp.model.config import ModelConfig
from radp.model.loss import diffusion_loss
from radp.model.network import build_model
from radp.rules import RuleContext, rule_costs
from radp.training.align import AlignTask, trained_in_words
from radp.training.loop import shuffled_rows
from radp.training.settings import AlignConfig, LoopConfig
from tests.made_models import SMALL
from tests.made_scenes import made_scene

SIZES = {"agents": 20, "lanes": 40, "route_lanes": 12}


class OneScene:
    """Samples that are always the same scene."""

    def __init__(self, scene):
        self.scene = scene

    def __len__(self):
        return 1_000

    def read(self, rows: np.ndarray):
        return self.scene


@pytest.fixture
def task() -> AlignTask:
    scene = made_scene(2, **SIZES)
    return AlignTask(AlignConfig(augment=0.0), build_model(ModelConfig.preset("mini"), 0), OneScene(scene))


def test_a_perfect_estimate_has_the_costs_of_the_log(task, monkeypatch):
    scene = task.samples.scene
    answers = {}

    def perfect(observed, x, time):
        """What the network would answer if it knew the future; its own step 0 is left at zero, as nobody trains it."""
        from radp.model.loss import make_target

        clean = make_target(task.base, scene, task.base.observe(scene)).clean.repeat_interleave(len(x) // len(scene), 0)
        answers["draws"] = len(x) // len(scene)
        return torch.cat((torch.zeros_like(clean[:, :, :1]), clean[:, :, 1:]), 2)

    monkeypatch.setattr(task.base, "forward", perfect)
    loss = diffusion_loss(task.base, scene, generator=torch.Generator().manual_seed(0))
    plan, (context,), counted = task._plans(loss, scene)
    costs = rule_costs(plan, context)
    future = scene.ego_agent_future
    logged = torch.cat((future[..., :2], heading_vector(future[..., 2])), -1)
    wanted = rule_costs(logged, RuleContext.from_scene(scene, logged=True, horizon=80))
    torch.testing.assert_close(costs, wanted.repeat_interleave(answers["draws"], 0), atol=1e-2, rtol=1e-3)
    assert counted.all()


def test_only_the_adapters_learn_and_every_part_is_recorded(task):
    trained = [name for name, p in task.model.named_parameters() if p.requires_grad]
    assert len(trained) == 24 and all("lora" in name for name in trained)
    learns = sum(p.numel() for p in task.model.parameters() if p.requires_grad)
    frozen = sum(p.numel() for p in task.base.parameters()) - learns
    assert trained_in_words(task.model) == (
        f"training 24 tensors ({learns:,} values) on 12 linear layers; {frozen:,} values frozen"
    )
    scene = task.samples.scene
    loss, parts = task.loss(task.model, scene, torch.Generator().manual_seed(1))
    loss.backward()
    for name, parameter in task.model.named_parameters():
        assert (parameter.grad is not None) == parameter.requires_grad, name
    for rule in task.rules:
        assert {f"cost/{rule.name}", f"scale/{rule.name}", f"normalised/{rule.name}"} <= parts.keys()
    assert loss.item() == pytest.approx(parts["diffusion"] + parts["rules"], rel=1e-5)
    assert 0 <= parts["pull/share_of_rules"] <= 1
    pulls = parts["pull/rules"], parts["pull/diffusion"]
    assert parts["pull/share_of_rules"] == pytest.approx(pulls[0] / sum(pulls), rel=1e-6)


def test_without_rules_the_loss_is_the_diffusion_loss(task):
    scene = task.samples.scene
    plain = AlignTask(AlignConfig(rules=False), task.base.__class__(task.base.config), OneScene(scene))
    loss, parts = plain.loss(plain.model, scene, torch.Generator().manual_seed(1))
    assert loss.item() == pytest.approx(parts["neighbour"] + 2.0 * parts["ego"], rel=1e-5)
    assert "rules" not in parts


def test_compressed_costs_pull_hardest_at_small_violations():
    scene = made_scene(2, **SIZES)
    model = build_model(ModelConfig.preset("mini"), 0)
    task = AlignTask(AlignConfig(compress=True), model, OneScene(scene))
    task.memory.scale.copy_(torch.tensor([150.0, 0.2, 1e-6, 2.0, 400.0, 3.0]))
    costs = torch.tensor([[4.0] * 6, [900.0] * 6], requires_grad=True)
    terms = task.terms.shaped(costs)
    scales = torch.tensor([10.0, 0.2, 0.01, 2.0, 10.0, 3.0])
    torch.testing.assert_close(terms, torch.log(1 + costs / scales))
    (pull,) = torch.autograd.grad(terms.sum(), costs)
    violation = costs.detach().sqrt()
    assert (pull[0] * 2 * violation[0] > 3 * pull[1] * 2 * violation[1]).all()  # by the violation, not by its square


@pytest.mark.parametrize(("least", "most"), [(0.0, 1.0), (0.2, 1.0), (0.0, 0.5), (0.2, 0.5), (0.5, 0.5)])
def test_rules_count_in_draws_between_the_two_times_both_included(task, least, most):
    scene = task.samples.scene
    task.config = AlignConfig(augment=0.0, min_time=least, max_time=most)
    times = torch.tensor([0.001, 0.2, 0.35, 0.5, 0.501, 1.0])
    loss = diffusion_loss(task.base, scene, time=times, generator=torch.Generator().manual_seed(0))
    plan, _, counted = task._plans(loss, scene)
    assert counted.tolist() == [least - 1e-6 <= float(t) <= most + 1e-6 for t in times] and len(plan) == len(times)


def test_draws_that_do_not_count_do_not_pull(task):
    scene, generator = task.samples.scene, torch.Generator().manual_seed(1)
    task.config = AlignConfig(augment=0.0, max_time=0.0)
    loss, parts = task.loss(task.model, scene, generator)
    assert "rules" not in parts and loss.item() == pytest.approx(parts["diffusion"])


def test_processes_share_out_the_rows_of_a_step():
    """Rows of a batch without a focus; with one, so many of them are its own, whatever the process."""
    config = AlignConfig(loop=LoopConfig(steps=10, batch=8, seed=3), focus_share=0.25, augment=0.0)
    samples = OneScene(made_scene(2, **SIZES))
    plain, focused, few = (
        AlignTask(config, build_model(SMALL, 0), samples, focus=focus) for focus in ([], [7, 8, 9], [7])
    )
    for step in (0, 4):
        whole = plain.rows(step, 0, 1)
        np.testing.assert_array_equal(whole, shuffled_rows(1_000, 8, step, 3))
        for task in (plain, focused):
            np.testing.assert_array_equal(
                np.concatenate([task.rows(step, rank, 4) for rank in range(4)]), task.rows(step, 0, 1)
            )
        mixed = focused.rows(step, 0, 1)
        own = focused.focus[shuffled_rows(3, 2, step, 3)]
        assert sorted(mixed) == sorted([*whole[2:], *own])
        np.testing.assert_array_equal(mixed, np.random.default_rng([3, step]).permutation([*whole[2:], *own]))
    assert sorted(few.rows(0, 0, 1)) == sorted([*plain.rows(0, 0, 1)[1:], 7])
