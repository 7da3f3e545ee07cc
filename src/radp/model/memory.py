"""Memory of a long-running CPU process."""

from __future__ import annotations

import ctypes
import sys

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # glibc's malloc.h


def keep_freed_memory() -> bool:
    """Let glibc keep freed memory for the next step instead of giving it back. True if it took effect.

    Large tensors otherwise come from fresh pages at every operation, and a training step spends a third of its time
    in page faults. Acts on the whole process and lasts; for training, long drives and benches, not for a single plan.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:  # another libc
        return False
    return bool(mallopt(M_MMAP_MAX, 0)) and bool(mallopt(M_TRIM_THRESHOLD, -1))
