"""Linear layers where no gradient is wanted: oneDNN's kernels, which take the GELU along, on weights packed once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn import functional as F

FUSED_ROWS = 32  # from so many rows on, oneDNN's kernels are quicker for any weight
LARGE = 50_000  # values of a weight from which on they are quicker for few rows as well, once it is packed


def _kernel(name: str) -> Callable[..., Tensor] | None:
    """One of torch's own kernels that it has no public name for, where this build of torch has it."""
    return getattr(torch.ops.mkldnn, name, None) if torch.backends.mkldnn.is_available() else None


_linear = _kernel("_linear_pointwise")
_pack = _kernel("_reorder_linear_weight")
# for each layer: which weight was seen last, and the same packed
_packed: WeakKeyDictionary[nn.Linear, tuple[Any, Tensor | None]] = WeakKeyDictionary()


def linear_of(linear: nn.Linear, x: Tensor, gelu: str = "") -> Tensor:
    """(..., a) -> (..., o): W x + b, and GELU of it if `gelu` says which (none: exact, tanh: by tanh)."""
    if _linear is None or not _may_be_quick(linear, x):
        return _plain(linear, x, gelu)
    many = x.numel() >= FUSED_ROWS * linear.in_features
    if not many and linear.weight.numel() < LARGE:
        return _plain(linear, x, gelu)
    weight = _packed_weight(linear, x.numel() // linear.in_features)
    if weight is None and not (many and gelu):
        return _plain(linear, x, gelu)
    weight = linear.weight if weight is None else weight
    return _linear(x, weight, linear.bias, "gelu" if gelu else "none", [], gelu)


def _plain(linear: nn.Linear, x: Tensor, gelu: str) -> Tensor:
    return F.gelu(linear(x), approximate=gelu) if gelu else linear(x)


def _may_be_quick(linear: nn.Linear, x: Tensor) -> bool:
    return (
        not torch.is_grad_enabled()
        and type(linear) is nn.Linear  # adapters compute more than W x + b
        and x.dtype == torch.float32
        and x.device.type == "cpu"
        and not (torch.compiler.is_compiling() or torch.compiler.is_exporting())
    )


def _packed_weight(linear: nn.Linear, rows: int) -> Tensor | None:
    """The weight in the order in which the kernel reads it; None while the layer is trained.

    Packed when it is first seen, although that pays only for one that stays: else the first plan of a planner would
    differ from the same plan later, by rounding.
    """
    if _pack is None or linear.training:
        return None
    seen = (linear.weight._version, linear.weight.data_ptr())
    before, packed = _packed.get(linear, (None, None))
    if packed is None or before != seen:
        packed = _pack(linear.weight.detach(), rows)
        _packed[linear] = seen, packed
    return packed
