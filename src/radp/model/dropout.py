"""Dropout that is cheap on a CPU: torch's Bernoulli masks would be two thirds of a training step.

The mask is never stored. A 64-bit seed is drawn from torch's default generator (so `torch.manual_seed` and saved
generator states govern it), and a kernel hashes (seed, position) into 16 random bits for each element, in the
forward and again in the backward pass. Rates are therefore multiples of 1 / 65536: 0.1 becomes 6554 / 65536 =
0.100006, and kept values are scaled by the exact inverse of the realised keep rate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
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
_quick = True


@numba.njit(inline="always")
def _bits(position: np.uint32, seed_low: np.uint32, seed_high: np.uint32) -> np.uint32:
    """32 random bits of a position: a multiply-xorshift finaliser. Numba widens sums and products, hence the casts."""
    word = np.uint32(np.uint32(position * np.uint32(0x9E3779B9)) + seed_low)
    word = np.uint32((word ^ (word >> np.uint32(16))) * np.uint32(0x7FEB352D))
    word = np.uint32(word ^ seed_high)
    word = np.uint32((word ^ (word >> np.uint32(15))) * np.uint32(0x846CA68B))
    return np.uint32(word ^ (word >> np.uint32(16)))


@numba.njit(nogil=True, cache=True)
def _mask_pairs(
    low: np.ndarray, high: np.ndarray, out_low: np.ndarray, out_high: np.ndarray, first: np.uint32,
    seed_low: np.uint32, seed_high: np.uint32, threshold: np.uint32, scale: np.float32,
) -> None:  # fmt: skip
    """Four (n,) float32 arrays: out = scale * value where the value's 16 bits reach the threshold, else 0.

    Positions are counted from `first`. The lower half of the bits serves `low`, the upper half `high`. Indices start
    at 0 and nothing overlaps, so the loop vectorises.
    """
    for i in range(low.size):
        word = _bits(np.uint32(np.uint32(i) + first), seed_low, seed_high)
        out_low[i] = low[i] * (scale if (word & np.uint32(0xFFFF)) >= threshold else np.float32(0))
        out_high[i] = high[i] * (scale if (word >> np.uint32(16)) >= threshold else np.float32(0))


@numba.njit(nogil=True, cache=True)
def _add_mask_pairs(
    to_low: np.ndarray, to_high: np.ndarray, low: np.ndarray, high: np.ndarray, out_low: np.ndarray,
    out_high: np.ndarray, first: np.uint32, seed_low: np.uint32, seed_high: np.uint32, threshold: np.uint32,
    scale: np.float32,
) -> None:  # fmt: skip
    """As `_mask_pairs`, added to what `to_low` and `to_high` hold."""
    for i in range(low.size):
        word = _bits(np.uint32(np.uint32(i) + first), seed_low, seed_high)
        out_low[i] = to_low[i] + low[i] * (scale if (word & np.uint32(0xFFFF)) >= threshold else np.float32(0))
        out_high[i] = to_high[i] + high[i] * (scale if (word >> np.uint32(16)) >= threshold else np.float32(0))


def masked_by_seed(values: Tensor, seed: int, dropped_levels: int, to: Tensor | None = None) -> Tensor:
    """(...) float32 -> (...): elements dropped with probability dropped_levels / 65536, the others scaled up.

    The result depends on the seed alone, not on the number of threads. `to` (...) is added to it.
    """
    values = values.detach().contiguous()
    out = torch.empty_like(values)
    kernel: Callable[..., None] = _mask_pairs if to is None else _add_mask_pairs
    given = [values] if to is None else [to.detach().contiguous(), values]
    flat = [tensor.view(-1).numpy() for tensor in (*given, out)]
    size = values.numel()
    half = (size + 1) // 2  # of an odd number the middle element is written twice, the second time to stay
    constants = (
        np.uint32(seed & 0xFFFFFFFF),
        np.uint32((seed >> 32) & 0xFFFFFFFF),
        np.uint32(dropped_levels),
        np.float32(LEVELS / (LEVELS - dropped_levels)),
    )

    def mask(start: int, stop: int) -> None:
        halves = slice(start, stop), slice(size - half + start, size - half + stop)
        kernel(*(array[part] for array in flat for part in halves), np.uint32(start), *constants)

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
    def forward(ctx: Any, values: Tensor, seed: int, dropped_levels: int, to: Tensor | None) -> Tensor:
        ctx.seed, ctx.dropped_levels = seed, dropped_levels
        return masked_by_seed(values, seed, dropped_levels, to)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, Tensor | None]:
        masked = masked_by_seed(gradient, ctx.seed, ctx.dropped_levels)
        return masked, None, None, gradient if ctx.needs_input_grad[3] else None


def dropout(values: Tensor, rate: float, training: bool, to: Tensor | None = None) -> Tensor:
    """As `torch.nn.functional.dropout`, added to `to`; the quick kernel on CPU float32, torch's own anywhere else."""
    if training and rate > 0.0 and _quick and values.device.type == "cpu" and values.dtype == torch.float32:
        seed = int(torch.empty((), dtype=torch.int64).random_(-(2**63), None))
        return _SeededDropout.apply(values, seed, round(rate * LEVELS), to)
    kept = F.dropout(values, rate) if training and rate > 0.0 else values
    return kept if to is None else to + kept


@contextmanager
def torchs_own() -> Iterator[None]:
    """Inside the block dropout is torch's own, to compare with."""
    global _quick
    _quick = False
    try:
        yield
    finally:
        _quick = True


class Dropout(nn.Module):
    """Element-wise dropout, added to what is given beside."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, values: Tensor, to: Tensor | None = None) -> Tensor:
        return dropout(values, self.rate, self.training, to)

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
