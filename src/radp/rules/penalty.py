"""The smooth penalty that turns a signed violation into a cost (Eq. 4 of the paper)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

BETA = 10.0


@dataclass(frozen=True)
class Term:
    """weight * J(z; sigma), the mean penalty over the valid steps of B plans; 0 where no step is valid."""

    z: Tensor  # (B, H) signed violation
    sigma: float
    valid: Tensor | None = None  # (B, H) bool; None: all steps
    weight: float = 1.0


def penalty(z: Tensor, sigma: float) -> Tensor:
    """phi_sigma(z) = [softplus(beta z / sigma) / beta]^2: about max(0, z / sigma)^2, smooth at zero. Any shape."""
    return (softplus(z * (BETA / sigma)) / BETA).square()


def mean_penalties(terms: Sequence[Term]) -> Tensor:
    """T terms of B plans -> (T, B), all computed in the same few operations."""
    like = terms[0].z
    slope, weight = like.new_tensor([(BETA / term.sigma, term.weight / BETA**2) for term in terms]).T[..., None, None]
    with torch.no_grad():
        always = torch.ones((), dtype=torch.bool, device=like.device).expand_as(like)
        valid = torch.stack([always if term.valid is None else term.valid for term in terms])
        share = weight * valid / valid.sum(-1, keepdim=True).clamp(min=1)
    return (softplus(torch.stack([term.z for term in terms]) * slope).square() * share).sum(-1)
