"""The smooth penalty that turns a signed violation into a cost (Eq. 4 of the paper)."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import softplus

BETA = 10.0


def penalty(z: Tensor, sigma: float) -> Tensor:
    """phi_sigma(z) = [softplus(beta z / sigma) / beta]^2: about max(0, z / sigma)^2, smooth at zero. Any shape."""
    return (softplus(BETA * z / sigma) / BETA).square()


def mean_penalty(z: Tensor, sigma: float, valid: Tensor | None = None) -> Tensor:
    """J(z; sigma): the penalty averaged over the valid elements of the last axis, (B, N) -> (B,); 0 where none is."""
    value = penalty(z, sigma)
    if valid is None:
        return value.mean(-1)
    return (value * valid).sum(-1) / valid.sum(-1).clamp(min=1)
