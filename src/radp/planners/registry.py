"""Planners by name: the ones that come with radp, and a user's own."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from radp.model.paths import model_path
from radp.runs.errors import OWN_MODULE, BadInput, did_you_mean, one_line, own_line
from radp.sim.planner import Planner
from radp.zoo import list_models

# Modules are imported on first use, so that a simple planner does not pay for the heavy ones.
PLANNERS: dict[str, str] = {
    "log_replay": "radp.planners.log_replay:LogReplayPlanner",
    "constant_velocity": "radp.planners.constant_velocity:ConstantVelocityPlanner",
    "idm": "radp.planners.idm:IDMPlanner",
    "pdm_closed": "radp.planners.pdm.planner:PDMClosedPlanner",
    "pdm_careful": "radp.planners.pdm.planner:careful_pdm",
}
EXPORTED = "onnx:"  # begins the name of a planner that `radp export onnx` wrote


class UnknownPlanner(BadInput):
    """No planner goes by that name; the message lists what exists."""


class BrokenPlanner(BadInput):
    """A user's planner that raises when it is imported or made; the message ends with the line of it that did."""


def list_planners() -> tuple[str, ...]:
    """Names that `load_planner` knows without a file."""
    return (*PLANNERS, *list_models())


def load_planner(name: str, **options: Any) -> Planner:
    """A planner by name; a model folder, .pth or .ckpt; an export as "onnx:DIR"; or a user's class as "module:Class" or
    "file.py:Class".

    Options go to its constructor; `NAME+guidance` samples a diffusion planner with collision guidance. Published
    checkpoints of PDM-Open, PDM-Hybrid, UrbanDriver, planTF, PLUTO and GameFormer are recognised by their keys.

    >>> radp.load_planner("idm").name
    'idm'
    """
    if name.startswith(EXPORTED):
        from radp.planners.onnx import OnnxPlanner

        return OnnxPlanner(name.removeprefix(EXPORTED), **options)
    learned, plus, _ = name.partition("+guidance")
    if learned in list_models() or (name and name not in PLANNERS and Path(learned).exists() and ":" not in name):
        from radp.planners.learned import load_learned
        from radp.planners.zoo.checkpoint import load_zoo_planner

        if (found := load_zoo_planner(model_path(learned), **options)) is not None:
            if plus:
                raise UnknownPlanner(f"no planner {name!r}: guidance is for diffusion planners, {learned} is none")
            return found
        return load_learned(model_path(learned), guided=bool(plus), **options)
    target = PLANNERS.get(name, name)
    place, colon, class_name = target.rpartition(":")
    if not colon or not place or not class_name:
        raise UnknownPlanner(
            f"no planner {name!r}: choose one of {', '.join(list_planners())}, a model folder, .pth or .ckpt, onnx:DIR,"
            f" or your own as 'module:Class' or 'file.py:Class'{did_you_mean(learned, list_planners())}"
        )
    with _own_code(name, OWN_MODULE if place.endswith(".py") else place):
        module = _module_from_file(Path(place)) if place.endswith(".py") else _module_by_name(place, name)
        made = getattr(module, class_name, None)
        if made is None:
            raise UnknownPlanner(f"no planner {name!r}: {place} has no {class_name!r}")
        if not callable(made):
            raise UnknownPlanner(f"{name!r} is no planner: {class_name} is a {type(made).__name__}, expected a class")
        planner = made(**options)
        if not isinstance(planner, Planner):
            wanted = "an attribute 'name' and a method 'plan(observation)'"
            raise UnknownPlanner(f"{name!r} is no planner: it needs {wanted}")
        if not isinstance(planner.name, str):
            raise UnknownPlanner(f"{name!r} is no planner: its name is {one_line(planner.name, 80)}, expected text")
    return planner


@contextmanager
def _own_code(name: str, module: str) -> Iterator[None]:
    """What a user's module raises becomes one sentence with the line of it that is concerned."""
    try:
        yield
    except BadInput:
        raise
    except (Exception, SystemExit) as error:
        if module.startswith("radp."):
            raise
        text, line = one_line(error), own_line(error, module)
        what = f"{type(error).__name__}: {text}" if text else type(error).__name__
        raise BrokenPlanner(f"{name} cannot be used: {what}{f' ({line})' if line else ''}") from error


def _module_by_name(place: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name is not None and (place == error.name or place.startswith(error.name + ".")):
            raise UnknownPlanner(f"no planner {name!r}: there is no module {place!r}") from None
        raise


def _module_from_file(path: Path) -> ModuleType:
    path = path.expanduser().resolve()
    if not path.is_file():
        raise UnknownPlanner(f"no planner in {path}: there is no such file")
    # The path is part of the name: two files called planner.py must not replace each other.
    unique = f"{OWN_MODULE}{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    if unique in sys.modules:
        return sys.modules[unique]
    spec = importlib.util.spec_from_file_location(unique, path)
    if spec is None or spec.loader is None:
        raise UnknownPlanner(f"no planner in {path}: the file cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[unique] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[unique]
        raise
    return module
