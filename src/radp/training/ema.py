"""Exponential moving average of the weights that are trained."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import Tensor, nn

Model = TypeVar("Model", bound=nn.Module)


class Ema:
    """average <- d * average + (1 - d) * weights, with d = decay or, in warm-up, min(decay, (1 + n) / (10 + n))."""

    def __init__(self, model: nn.Module, decay: float, warmup: bool) -> None:
        self.decay, self.warmup, self.updates = decay, warmup, 0
        self.average = {name: p.detach().clone() for name, p in model.named_parameters() if p.requires_grad}

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        """Take in the weights after one optimiser step."""
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates)) if self.warmup else self.decay
        weights = [p.detach() for name, p in model.named_parameters() if name in self.average]
        torch._foreach_lerp_(list(self.average.values()), weights, 1.0 - decay)
        self.updates += 1

    @torch.no_grad()
    def copy_to(self, model: nn.Module) -> None:
        """Overwrite the model's weights with the average."""
        for name, p in model.named_parameters():
            if name in self.average:
                p.copy_(self.average[name])

    @contextmanager
    def applied(self, model: Model) -> Iterator[Model]:
        """The model with averaged weights inside the block, with its own weights and mode after it."""
        own = {name: p.detach().clone() for name, p in model.named_parameters() if name in self.average}
        training = model.training
        self.copy_to(model)
        try:
            yield model
        finally:
            with torch.no_grad():
                for name, p in model.named_parameters():
                    if name in own:
                        p.copy_(own[name])
            model.train(training)

    def state(self) -> dict[str, Tensor | int]:
        return {"updates": self.updates, **self.average}

    @torch.no_grad()
    def load(self, state: dict[str, Tensor | int]) -> None:
        """Inverse of `state`."""
        self.updates = int(state["updates"])
        for name, value in self.average.items():
            value.copy_(torch.as_tensor(state[name]))
