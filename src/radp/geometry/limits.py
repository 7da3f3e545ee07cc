"""What numbers may stand in logs, maps and drives: what lies behind a border, compiled kernels above all, relies on it.

Functions here say what is wrong with an array, in words that go behind its name, or nothing.
"""

from __future__ import annotations

import numpy as np

REACH = 1e8  # m from the origin: more than twice around the earth; float64 still resolves 1e-8 m there
MOST = 1e6  # m/s, m/s2, rad ...: of everything that is no position; far beyond what moves, and no overflow in products
LONGEST_LANE = 1e5  # m: lanes are sampled every metre or so, a lane around the earth would fill the memory
LONGEST_ROAD = 1e7  # m of all lanes together, for the same reason; the lanes of a large city have a tenth of that


def array_fault(array: object, dtype: type, shape: tuple[int | None, ...]) -> str:
    """Whether it is an array of exactly this type and shape; None stands for any length of an axis."""
    if not isinstance(array, np.ndarray):
        return f"is {type(array).__name__}, expected an array"
    if array.ndim != len(shape) or any(n is not None and n != k for n, k in zip(shape, array.shape)):
        wanted = ", ".join("*" if n is None else str(n) for n in shape)
        return f"has shape {array.shape}, expected ({wanted}{',' * (len(shape) == 1)})"
    return "" if array.dtype == dtype else f"holds {array.dtype}, expected {np.dtype(dtype)}"


def size_fault(array: np.ndarray, most: float, least: float | None = None) -> str:
    """Whether all values are finite and at most `most` in size (or between `least` and it)."""
    if array.size == 0:
        return ""
    low = -most if least is None else least
    smallest, largest = array.min(), array.max()  # NaN if there is one, and then no comparison holds
    if smallest >= low and largest <= most:
        return ""
    if not (np.isfinite(smallest) and np.isfinite(largest)):
        return "holds a value that is not finite"
    return f"holds {float(smallest if smallest < low else largest):.6g}, expected {low:g} to {most:g}"


def states_fault(states: np.ndarray) -> str:
    """Of states (..., C) whose first two columns are a position."""
    if not size_fault(states, MOST):  # in one go: few logs are so far from their origin
        return ""
    return size_fault(states[..., :2], REACH) or size_fault(states[..., 2:], MOST)


def index_fault(indices: np.ndarray, count: int, none: bool = False) -> str:
    """Whether all are positions in a list of `count`; with `none`, -1 is allowed."""
    if indices.size == 0:
        return ""
    low, smallest, largest = -1 if none else 0, int(indices.min()), int(indices.max())
    if smallest >= low and largest < count:
        return ""
    return f"points to {smallest if smallest < low else largest}, expected {low}..{count - 1}"
