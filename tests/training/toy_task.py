"""A training so small that two processes can be compared with one."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from radp.runs.folder import RunFolder
from radp.training.loop import fit, is_main_process, shuffled_rows
from radp.training.settings import LoopConfig


class Toy:
    """A linear map without noise: two halves of a batch must give what the whole batch gives."""

    memory = None

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        self.data = torch.randn(40, 4, generator=torch.Generator().manual_seed(1))
        self.processes = 0

    def batch(self, step: int, rank: int, processes: int) -> Tensor:
        self.processes = processes
        share = 10 // processes
        return self.data[shuffled_rows(40, 10, step, 3)[rank * share : (rank + 1) * share]]

    def loss(self, model: nn.Module, batch: Tensor, generator: torch.Generator) -> tuple[Tensor, dict[str, float]]:
        return (model(batch) - batch.sum(-1, keepdim=True)).square().mean(), {}

    def validate(self, model: nn.Module, step: int) -> dict[str, float]:
        return {}


def train_toy(run: Path, out: Path) -> None:
    """Train in the folder `run`; `out` gets the weights and in how many processes they were learned."""
    torch.set_num_threads(1)
    task, config = Toy(), LoopConfig(steps=12, batch=10, lr=0.01, warmup=2, save_every=5, validate_every=10)
    model = fit(task, config, RunFolder.create(run, "toy", {}))
    if is_main_process():
        torch.save({"processes": torch.tensor(task.processes), **model.state_dict()}, out)
