"""Dropout that is cheap on a CPU: torch's Bernoulli masks would be two thirds of a training step.

The mask is never stored. A 64-bit seed is drawn from torch's default generator (so `torch.manual_seed` and saved
generator states govern it), and a kernel hashes (seed, position) into 16 random bits for each element, in the
forward and again in the backward pass. Rates are therefore multiples of 1 / 65536: 0.1 becomes 6554 / 65536 =
0.100006, and kept values are scaled by the exact inverse of the realised keep rate.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

LEVELS = 1 << 16


@numba.njit(nogil=True, cache=True)
def _hash_masked(values, out, seed_low, seed_high, threshold, scale):
    """values, out (n,) float32: out = scale * values where the 16 bits of an element reach the threshold, else 0.

    One 32-bit hash serves two elements half an array apart, so that the loop vectorises.
    """
    half = (values.size + 1) // 2
    low_bits = np.uint32(0xFFFF)
    for i in range(half):
        word = np.uint32(i) + seed_low
        word ^= word >> np.uint32(16)
        word *= np.uint32(0x7FEB352D)
        word ^= seed_high
        word ^= word >> np.uint32(15)
        word *= np.uint32(0x846CA68B)
        word ^= word >> np.uint32(16)
        out[i] = values[i] * (scale if (word & low_bits) >= threshold else np.float32(0))
        if i + half < values.size:
            out[i + half] = values[i + half] * (scale if (word >> np.uint32(16)) >= threshold else np.float32(0))


def masked_by_seed(values: Tensor, seed: int, dropped_levels: int) -> Tensor:
    """(...) float32 -> (...): each element dropped with probability dropped_levels / 65536, else scaled up."""
    values = values.contiguous()
    out = torch.empty_like(values)
    scale = LEVELS / (LEVELS - dropped_levels)
    _hash_masked(
        values.detach().view(-1).numpy(),
        out.view(-1).numpy(),
        np.uint32(seed & 0xFFFFFFFF),
        np.uint32((seed >> 32) & 0xFFFFFFFF),
        np.uint32(dropped_levels),
        np.float32(scale),
    )
    return out


class _SeededDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, seed: int, dropped_levels: int) -> Tensor:
        ctx.seed, ctx.dropped_levels = seed, dropped_levels
        return masked_by_seed(values, seed, dropped_levels)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return masked_by_seed(gradient, ctx.seed, ctx.dropped_levels), None, None


def dropout(values: Tensor, rate: float, training: bool) -> Tensor:
    """As `torch.nn.functional.dropout`; the quick kernel on CPU float32, torch's own anywhere else."""
    if not training or rate == 0.0:
        return values
    if values.device.type != "cpu" or values.dtype != torch.float32:
        return F.dropout(values, rate)
    seed = int(torch.empty((), dtype=torch.int64).random_(-(2**63), None))
    return _SeededDropout.apply(values, seed, round(rate * LEVELS))


class Dropout(nn.Module):
    """Element-wise dropout."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, values: Tensor) -> Tensor:
        return dropout(values, self.rate, self.training)

    def extra_repr(self) -> str:
        return f"rate={self.rate}"


class DropPath(nn.Module):
    """Drop a residual branch for whole samples (axis 0) and scale the others by 1 / keep rate."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, branch: Tensor) -> Tensor:
        if not self.training or self.rate == 0.0:
            return branch
        keep = 1.0 - self.rate
        mask = torch.rand(branch.shape[0], *[1] * (branch.dim() - 1), device=branch.device) < keep
        return branch * (mask / keep)

    def extra_repr(self) -> str:
        return f"rate={self.rate}"
