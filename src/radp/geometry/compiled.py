"""How inner loops are compiled, and the arrays that they read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numba.core.options import DefaultOptions


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that allocates nothing (no new arrays), cached, free of the interpreter's lock.

    Arrays are not reference-counted inside. Such counts are atomic operations that threads share, and in small
    functions they cost as much as the arithmetic.
    """
    options: dict[str, Any] = {"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {}
    return njit(cache=True, nogil=True, **options)(function)


def kernel_array(array: np.ndarray, dtype: type = np.float64) -> np.ndarray:
    """Contiguous and writeable, as kernels are compiled for one memory layout only; copied where it is not."""
    return np.require(array, dtype, ["C", "W"])
