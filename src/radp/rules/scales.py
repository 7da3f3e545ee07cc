"""Running scales of the rule costs, so that no rule drowns the others in the alignment loss (Eq. 5)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

DECAY = 0.99
FLOOR = 1e-3


class RuleScales(nn.Module):
    """scale (M,): exponential moving average of the batch mean of each cost, at least 1e-3, without gradient."""

    scale: Tensor
    updates: Tensor

    def __init__(self, rules: int, decay: float = DECAY, floor: float = FLOOR) -> None:
        super().__init__()
        self.decay, self.floor = decay, floor
        self.register_buffer("scale", torch.ones(rules))
        self.register_buffer("updates", torch.zeros((), dtype=torch.int64))

    @torch.no_grad()
    def update(self, costs: Tensor) -> None:
        """costs (B, M): take in their mean, over all processes; the first batch sets the scale."""
        mean = costs.detach().mean(0).to(self.scale)
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.all_reduce(mean)
            mean /= torch.distributed.get_world_size()
        self.scale.copy_(mean if self.updates == 0 else self.decay * self.scale + (1 - self.decay) * mean)
        self.updates += 1

    def forward(self, costs: Tensor) -> Tensor:
        """costs (B, M) -> J_i / s_i (B, M)."""
        return costs / self.scale.clamp(min=self.floor)
