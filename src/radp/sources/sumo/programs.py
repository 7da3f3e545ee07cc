"""Eclipse SUMO's programs and Python modules, imported only when something is generated."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO
from pathlib import Path
from types import ModuleType

MISSING = "Eclipse SUMO is not installed: pip install 'radp[sumo]'"


class SumoError(RuntimeError):
    """A SUMO program refused its input; the message holds the program and its last words."""


def sumo_module(name: str) -> ModuleType:
    """`libsumo`, `sumolib.net` or `sumo`; one clear sentence when the extra is missing."""
    try:
        with redirect_stdout(StringIO()):  # libsumo warns of a pyarrow that workers never load
            return import_module(name)
    except ImportError:
        raise ImportError(MISSING) from None


def run_program(name: str, arguments: Sequence[str | Path], folder: Path) -> str:
    """Run `netgenerate` or `netconvert` in `folder`; its output, or SumoError."""
    home = Path(sumo_module("sumo").SUMO_HOME)
    command = [str(home / "bin" / name), *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env={"SUMO_HOME": str(home)})
    if done.returncode:
        tail = " | ".join((done.stderr or done.stdout).strip().splitlines()[-3:])
        raise SumoError(f"{name} failed: {tail}")
    return done.stdout + done.stderr
