"""Where the pieces of a map run: on this machine, on a Ray cluster, or as jobs of SLURM.

It is no setting of a result, so it is not handed down from function to function: the command line (or
`use_engine`) says it once, RADP_ENGINE says it for a whole shell, and `parallel_map` asks here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Literal, get_args

from radp.runs.errors import BadInput

VARIABLE = "RADP_ENGINE"
EngineName = Literal["local", "ray", "slurm", "slurm-local"]


@dataclass(frozen=True)
class Engine:
    """Where pieces run. The results are the same; what `local` needs is always installed."""

    engine: EngineName | None = None
    """local: processes of this machine; ray, slurm: a cluster (docs/scale.md); slurm-local: SLURM's jobs as processes
    of this machine. RADP_ENGINE, else local, if not given."""
    ray_address: str | None = None
    """Ray cluster to join, as HOST:PORT or auto; without it one is started on this machine."""
    slurm: tuple[str, ...] = ()
    """NAME=VALUE each, for sbatch: partition=main time=240 mem=8G cpus-per-task=1."""
    dry_run: bool = False
    """Print the script for sbatch and do nothing."""

    @property
    def name(self) -> EngineName:
        return self.engine or "local"

    @property
    def is_local(self) -> bool:
        return self.name == "local"


_current: ContextVar[Engine | None] = ContextVar("engine", default=None)


def current_engine() -> Engine:
    """The engine of the innermost `use_engine`, completed by the environment."""
    return _completed(_current.get() or Engine())


def _completed(engine: Engine) -> Engine:
    if engine.engine is not None:
        return engine
    name = os.environ.get(VARIABLE) or "local"
    if name not in get_args(EngineName):
        raise BadInput(f"{VARIABLE} is {name!r}, expected one of {', '.join(get_args(EngineName))}")
    return replace(engine, engine=name)  # type: ignore[arg-type]


@contextmanager
def use_engine(engine: Engine) -> Iterator[None]:
    """Maps inside run there; what was started for them is stopped on leaving."""
    chosen = _completed(engine)
    for option, given, of in (
        ("ray-address", chosen.ray_address, ("ray",)),
        ("slurm", chosen.slurm, ("slurm", "slurm-local")),
        ("dry-run", chosen.dry_run, ("slurm", "slurm-local")),
    ):
        if given and chosen.name not in of:
            raise BadInput(f"--{option} is for --engine {' and --engine '.join(of)}; the engine is {chosen.name}")
    token = _current.set(chosen)
    try:
        yield
    finally:
        _current.reset(token)
        if "radp.runs.ray_engine" in sys.modules:
            sys.modules["radp.runs.ray_engine"].leave()
