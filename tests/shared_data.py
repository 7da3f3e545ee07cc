"""Where golden numbers and real logs lie: the folder RADP_SHARED, by default ../shared beside the project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("RADP_SHARED", Path(__file__).parents[2] / "shared"))
NUPLAN_GOLDEN = SHARED / "golden" / "nuplan"


def shared_files(pattern: str) -> list[Path]:
    """Every file of the shared folder that matches; empty when the folder is missing."""
    return sorted(SHARED.glob(pattern))


def shared_params(pattern: str) -> list:
    """One pytest parameter per file found, or a single skipped one."""
    files = shared_files(pattern)
    if not files:
        return [pytest.param(None, marks=pytest.mark.skip(reason="skipped: no shared data"))]
    return [pytest.param(path, id=path.name.split(".")[0]) for path in files]
