"""The loop: exact resume, averaging, the order of samples, and a task's memory."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from torch import nn

from radp.runs.folder import RunFolder
from radp.training.ema import Ema
from radp.training.loop import fit, shuffled_rows, step_seed
from radp.training.settings import LoopConfig
from radp.training.state import saved_steps


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))


class Toy:
    """A linear map with dropout on random data: small, but with every source of randomness."""

    def __init__(self, seed: int = 0, fail_at: int | None = None):
        torch.manual_seed(seed)
        self.model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3), nn.Linear(8, 1))
        self.memory = Counter()
        self.data = torch.randn(50, 4, generator=torch.Generator().manual_seed(1))
        self.fail_at, self.config = fail_at, LoopConfig()

    def batch(self, step, rank, processes):
        if step == self.fail_at:
            raise RuntimeError("killed")
        return self.data[shuffled_rows(50, 10, step, 3)]

    def loss(self, model, batch, generator):
        self.memory.seen += 1
        noise = torch.randn(batch.shape, generator=generator)
        return (model(batch + 0.1 * noise) - batch.sum(-1, keepdim=True)).square().mean(), {}

    def validate(self, model, step):
        return {"weight": float(model[0].weight.sum())}


CONFIG = LoopConfig(steps=23, batch=10, lr=0.01, warmup=3, save_every=5, log_every=2, validate_every=10, ema=0.9)


def run(path, task, **options):
    return fit(task, CONFIG, RunFolder.create(path, "toy", {}), **options)


def weights(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def test_a_broken_run_ends_with_the_same_weights(tmp_path):
    whole = run(tmp_path / "whole", Toy())
    with pytest.raises(RuntimeError, match="killed"):
        run(tmp_path / "broken", Toy(fail_at=13))
    assert saved_steps(RunFolder.open(tmp_path / "broken")) == [5, 10]
    resumed_task = Toy(seed=99)  # other initial weights: everything must come from the checkpoint
    resumed = run(tmp_path / "broken", resumed_task)
    assert torch.equal(weights(whole), weights(resumed))
    assert resumed_task.memory.seen == 23
    logs = [
        [json.loads(line) for line in (tmp_path / name / "log.jsonl").read_text().splitlines()]
        for name in ("whole", "broken")
    ]
    for log in logs:
        assert [row["step"] for row in log if row["part"] == "train"] == [*range(2, 23, 2), 23]
    keep = [[{k: v for k, v in row.items() if k != "samples_per_s"} for row in log] for log in logs]
    assert keep[0] == keep[1]


def test_stop_after_keeps_the_schedule(tmp_path):
    whole = run(tmp_path / "whole", Toy())
    run(tmp_path / "parts", Toy(), stop_after=7)
    assert torch.equal(weights(whole), weights(run(tmp_path / "parts", Toy())))


def test_only_the_newest_two_checkpoints_are_kept(tmp_path):
    run(tmp_path / "run", Toy())
    assert saved_steps(RunFolder.open(tmp_path / "run")) == [20, 23]


def test_another_model_is_refused(tmp_path):
    run(tmp_path / "run", Toy(), stop_after=5)
    other = Toy()
    other.model = nn.Linear(4, 1)
    with pytest.raises(ValueError, match="other weights"):
        run(tmp_path / "run", other)


def test_rows_visit_every_sample_once_in_an_epoch_and_are_shuffled_anew():
    first = np.concatenate([shuffled_rows(20, 5, step, 7) for step in range(4)])
    second = np.concatenate([shuffled_rows(20, 5, step, 7) for step in range(4, 8)])
    assert sorted(first) == sorted(second) == list(range(20))
    assert (first != second).any()
    with pytest.raises(ValueError, match="fewer than one batch"):
        shuffled_rows(3, 5, 0, 7)


def test_seeds_differ_by_step_and_rank():
    seeds = {step_seed(1, step, rank) for step in range(50) for rank in range(2)}
    assert len(seeds) == 100


def test_schedule_warms_up_and_ends_at_zero():
    config = LoopConfig(steps=100, warmup=10)
    rates = [config.rate(step) for step in range(100)]
    assert rates[0] == pytest.approx(0.1) and max(rates) == pytest.approx(1.0) and rates[-1] < 0.001
    assert LoopConfig(schedule="constant", warmup=0).rate(10**6) == 1.0


def test_ema_follows_its_formula_and_leaves_frozen_weights_alone():
    model = nn.Linear(2, 1)
    model.bias.requires_grad_(False)
    ema = Ema(model, decay=0.9, warmup=False)
    start = model.weight.detach().clone()
    with torch.no_grad():
        model.weight.add_(1.0)
    ema.update(model)
    assert list(ema.average) == ["weight"]
    torch.testing.assert_close(ema.average["weight"], start + 0.1)
    with ema.applied(model) as averaged:
        torch.testing.assert_close(averaged.weight.detach(), start + 0.1)
    torch.testing.assert_close(model.weight.detach(), start + 1.0)


def test_ema_warmup_forgets_the_first_weights():
    model = nn.Linear(1, 1)
    ema = Ema(model, decay=0.999, warmup=True)
    with torch.no_grad():
        model.weight.fill_(5.0)
    for _ in range(30):
        ema.update(model)
    assert float(ema.average["weight"]) == pytest.approx(5.0, abs=0.5)
