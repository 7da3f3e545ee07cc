"""What computes a diffusion planner in the closed loop: torch, or its exported graphs in another program."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from radp.planners.diffusion import DiffusionPlanner
from radp.planners.export import export_obstacle, export_planner
from radp.planners.identity import planner_hash
from radp.planners.onnx import OnnxPlanner
from radp.runs.errors import BadInput, require
from radp.runtime.manifest import GEOMETRIES, MANIFEST, VERSION
from radp.runtime.sessions import PACKAGES, installed
from radp.sim.planner import Planner
from radp.sim.settings import BACKENDS, Backend

EXPORTER = ("onnx", "onnxscript")


def settled_backend(planner: Planner, backend: Backend) -> Backend:
    """The backend that will be used: `auto` is what is installed here, and torch for all but diffusion planners.

    BadInput if the backend is unknown, or the planner cannot be exported.
    """
    if backend not in BACKENDS:
        raise BadInput(f"backend is {backend!r}, expected one of {', '.join(BACKENDS)}")
    why_not = _obstacle(planner)
    if backend == "auto":
        ready = not why_not and all(find_spec(name) for name in EXPORTER)
        return "onnx" if ready and "onnx" in installed() else "torch"
    if backend != "torch" and why_not:
        raise BadInput(f"planner {planner.name!r} has no backend but torch: {why_not}")
    return backend


def takes_backend(planner: Planner) -> bool:
    """Whether another backend than torch can compute this planner."""
    return not _obstacle(planner)


def _obstacle(planner: Planner) -> str:
    if not isinstance(planner, DiffusionPlanner):
        return "it is no diffusion planner"
    if planner.head is not None and (kind := planner.head.config.geometry) not in GEOMETRIES:
        return f"its head looks at the {kind} geometry of the plan"
    return export_obstacle(planner)


def on_backend(planner: Planner, backend: str, threads: int = 1) -> Planner:
    """The same planner, computed by a backend of `settled_backend`; exported once, then kept in the user's cache."""
    if backend == "torch" or not isinstance(planner, DiffusionPlanner):
        return planner
    require(PACKAGES[backend], backend)  # type: ignore[index]
    return OnnxPlanner(_exported(planner), backend, planner.name, threads)


def cache_folder() -> Path:
    """Where exports for backends are kept: RADP_CACHE, or the user's cache folder."""
    if own := os.environ.get("RADP_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "radp"


def _exported(planner: DiffusionPlanner) -> Path:
    """The folder of its export, made if it is not there; weights, settings and the version of the layout name it."""
    made_of = {"version": VERSION, "steps": planner.steps, "temperature": planner.temperature}
    folder = cache_folder() / "onnx" / f"{planner_hash(planner.model, planner.head, made_of)}"
    if not (folder / MANIFEST).is_file():
        export_planner(planner, folder)
    return folder
