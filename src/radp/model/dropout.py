"""Dropout that is cheap on a CPU: torch's Bernoulli masks would be two thirds of a training step.

The mask is never stored. A 64-bit seed is drawn from torch's default generator (so `torch.manual_seed` and saved
generator states govern it), and a kernel hashes (seed, position) into 16 random bits for each element, in the
forward and again in the backward pass. Rates are therefore multiples of 1 / 65536: 0.1 becomes 6554 / 65536 =
0.100006, and kept values are scaled by the exact inverse of the realised keep rate.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

LEVELS = 1 << 16
PAIRS_PER_THREAD = 1 << 17


@numba.njit(nogil=True, cache=True)
def _mask_pairs(low, high, out_low, out_high, first, seed_low, seed_high, threshold, scale):
    """Four (n,) float32 arrays: out = scale * value where the value's 16 bits reach the threshold, else 0.

    The bits are a hash of the position (counted from `first`) and the seed: a multiply-xorshift finaliser. Its lower
    half serves `low`, its upper half `high`. Indices start at 0 and nothing overlaps, so the loop vectorises.
    """
    for i in range(low.size):
        word = np.uint32(np.uint32(np.uint32(i) + first) * np.uint32(0x9E3779B9))  # numba widens sums and products
        word = np.uint32(word + seed_low)
        word = np.uint32((word ^ (word >> np.uint32(16))) * np.uint32(0x7FEB352D))
        word = np.uint32(word ^ seed_high)
        word = np.uint32((word ^ (word >> np.uint32(15))) * np.uint32(0x846CA68B))
        word = np.uint32(word ^ (word >> np.uint32(16)))
        out_low[i] = low[i] * (scale if (word & np.uint32(0xFFFF)) >= threshold else np.float32(0))
        out_high[i] = high[i] * (scale if (word >> np.uint32(16)) >= threshold else np.float32(0))


def masked_by_seed(values: Tensor, seed: int, dropped_levels: int) -> Tensor:
    """(...) float32 -> (...): elements dropped with probability dropped_levels / 65536, the others scaled up.

    The result depends on the seed alone, not on the number of threads.
    """
    values = values.detach().contiguous()
    out = torch.empty_like(values)
    flat, result = values.view(-1).numpy(), out.view(-1).numpy()
    half = (flat.size + 1) // 2  # of an odd number the middle element is written twice, the second time to stay
    constants = (
        np.uint32(seed & 0xFFFFFFFF),
        np.uint32((seed >> 32) & 0xFFFFFFFF),
        np.uint32(dropped_levels),
        np.float32(LEVELS / (LEVELS - dropped_levels)),
    )

    def mask(start: int, stop: int) -> None:
        low, high = slice(start, stop), slice(flat.size - half + start, flat.size - half + stop)
        _mask_pairs(flat[low], flat[high], result[low], result[high], np.uint32(start), *constants)

    threads = max(1, min(torch.get_num_threads(), half // PAIRS_PER_THREAD))
    bounds = [half * k // threads for k in range(threads + 1)]
    jobs = [_pool().submit(mask, *span) for span in pairwise(bounds[:-1])]
    mask(*bounds[-2:])
    for job in jobs:
        job.result()
    return out


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_name_prefix="radp-dropout")


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
