"""What goes into a network: tensors by name, such as "agent/position"; the first axis counts the samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

Batch = dict[str, Tensor]
Sample = dict[str, np.ndarray]


def collate(samples: Sequence[Sample]) -> Batch:
    """B samples -> (B, ...) tensors; arrays of unequal length are padded with zeros behind their first axis.

    Floating numbers become float32.
    """
    return {name: _padded([sample[name] for sample in samples]) for name in samples[0]}


def _padded(arrays: list[np.ndarray]) -> Tensor:
    shape = np.max([array.shape for array in arrays], axis=0).astype(int) if arrays[0].ndim else ()
    kind = np.float32 if np.issubdtype(arrays[0].dtype, np.floating) else arrays[0].dtype
    padded = np.zeros((len(arrays), *shape), dtype=kind)
    for i, array in enumerate(arrays):
        padded[i : i + 1][(slice(None), *(slice(0, n) for n in array.shape))] = array
    return torch.from_numpy(padded)
