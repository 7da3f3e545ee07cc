"""Weights of the published planners: their Lightning checkpoints, recognised by their keys, and folders of ours."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from radp.model.checkpoint import ARGS, CONFIG, WEIGHTS, CheckpointError, check_archive, check_state
from radp.model.weights import read_weights
from radp.planners.zoo.kinds import KINDS
from radp.planners.zoo.planner import ZooPlanner, make_planner
from radp.runs.errors import one_line, reading_file
from radp.runs.json_text import json_text
from radp.runs.settings import as_json, checked
from radp.version import __version__

SUFFIXES = (".ckpt", ".pth", ".pt")
PREFIX = "model."
MOST_SIZE = 10_000  # of a width, a depth or a table in settings; the published ones have 5000
MOST_IN_TABLES = 10_000_000  # numbers of a network that follow from its settings and are not stored
LEAST_ALIKE = 0.3  # share of common keys below which a checkpoint is none of ours


class StandIn:
    """Takes the place of every class that a checkpoint names beside tensors: it holds nothing and does nothing."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def __setstate__(self, _: object) -> None: ...

    def __setitem__(self, *_: object) -> None: ...

    def append(self, _: object) -> None: ...

    def extend(self, _: object) -> None: ...

    def __hash__(self) -> int:
        return id(self)


def load_zoo_planner(path: Path, **options: Any) -> ZooPlanner | None:
    """The planner in a published checkpoint or in a folder of ours; None if the path is neither."""
    if path.is_dir():
        kind = folder_kind(path)
        if kind is None:
            return None
        return make_planner(kind, load_folder(path), path.resolve().name, **options)
    if path.suffix not in SUFFIXES or (path.suffix != ".ckpt" and path.with_name(ARGS).is_file()):
        return None
    kind, model = load_published(path)
    return make_planner(kind, model, path.stem, **options)


def load_published(path: Path) -> tuple[str, nn.Module]:
    """A checkpoint with `state_dict` (keys may begin with "model.") or bare weights -> kind and network."""
    loaded = read_tensors(path)
    state = loaded.get("state_dict", loaded)
    if not isinstance(state, Mapping):
        raise CheckpointError(f"{path}: its state_dict is a {type(state).__name__}, not a dict of tensors")
    state = {str(name).removeprefix(PREFIX): value for name, value in state.items()}
    kind = recognise(state, path)
    model = KINDS[kind].network(KINDS[kind].published)
    check_state(state, model.state_dict(), f"{path} (a checkpoint of {kind})")
    model.load_state_dict(state)
    return kind, model.eval()


def read_tensors(path: Path) -> Mapping[str, Any]:
    """What lies in a checkpoint, read by torch's loader for weights alone; other objects become empty stand-ins, and
    nothing of theirs runs."""
    check_archive(path)
    try:
        unknown = torch.serialization.get_unsafe_globals_in_checkpoint(path)
        with torch.serialization.safe_globals([(StandIn, name) for name in unknown]):
            loaded = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch has no one kind of error for files that are cut, foreign or hostile
        raise CheckpointError(
            f"{path}: holds more than tensors, or is damaged ({one_line(error, 200)}); where it was made, keep its "
            "weights alone: "
            'torch.save({"state_dict": torch.load(FILE)["state_dict"]}, NEW_FILE)'
        ) from None
    if not isinstance(loaded, Mapping):
        raise CheckpointError(f"{path}: expected a dict, found {type(loaded).__name__}")
    return loaded


def recognise(state: Mapping[str, Any], path: Path) -> str:
    """The kind whose keys are most like those of a state dict."""
    alike = {name: _likeness(set(state), keys) for name, keys in _keys().items()}
    kind = max(alike, key=lambda name: alike[name])
    if alike[kind] < LEAST_ALIKE:
        some = ", ".join(list(state)[:3]) or "none"
        raise CheckpointError(
            f"{path}: no planner with such weights (keys: {some} ...); known: {', '.join(KINDS)}, and Diffusion "
            f"Planner's .pth with {ARGS} beside it"
        )
    return kind


def _keys() -> dict[str, set[str]]:
    with torch.device("meta"):
        return {name: set(kind.network(kind.published).state_dict()) for name, kind in KINDS.items()}


def _likeness(a: set[str], b: set[str]) -> float:
    return len(a & b) / len(a | b)


def folder_kind(folder: Path) -> str | None:
    """The kind of planner whose weights a folder of ours holds; None if it holds something else."""
    try:
        kind = json.loads((folder / CONFIG).read_bytes()).get("kind")
        return kind if kind in KINDS else None
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        return None


def load_folder(folder: Path) -> nn.Module:
    """The network in a folder that `save_folder` wrote."""
    state = read_weights(folder / WEIGHTS)
    with reading_file(folder / CONFIG, "description of a model", CheckpointError):
        config = json.loads((folder / CONFIG).read_bytes())
        kind = KINDS[config["kind"]]
        settings = _bounded(checked(kind.config, config["model"]))
        with torch.device("meta"):  # takes no memory: the weights say how much may be made
            shapes = {name: value.shape for name, value in kind.network(settings).state_dict().items()}
        wrong = next((name for name, value in state.items() if shapes.get(name) != value.shape), None)
        room = 2 * sum(value.numel() for value in state.values()) + MOST_IN_TABLES
        if wrong is not None or sum(shape.numel() for shape in shapes.values()) > room:
            raise ValueError(f"{WEIGHTS} is not of the sizes named here ({wrong or 'too few weights'})")
        model = kind.network(settings)
    wanted = own_weights(model)
    check_state(state, wanted, str(folder / WEIGHTS))
    model.load_state_dict({name: state[name].to(value.dtype) for name, value in wanted.items()}, strict=False)
    return model.eval()


def _bounded(settings: Any) -> Any:
    """The settings of a network, if somebody could have trained one of that size."""
    for field in fields(settings):
        value = getattr(settings, field.name)
        if isinstance(value, int | float) and not 0 <= value <= MOST_SIZE:
            raise ValueError(f"{field.name} is {value}, expected at most {MOST_SIZE}")
    return settings


def save_folder(
    kind: str, model: nn.Module, folder: Path, training: Mapping[str, Any] | None = None, half: bool = False
) -> Path:
    """model.safetensors and config.json; `half` keeps floating numbers in 16 bits, for small packages."""
    folder.mkdir(parents=True, exist_ok=True)
    state = {name: value.detach().cpu().contiguous() for name, value in own_weights(model).items()}
    if half:
        state = {name: value.half() if value.is_floating_point() else value for name, value in state.items()}
    save_file(state, folder / f"{WEIGHTS}.part")
    os.replace(folder / f"{WEIGHTS}.part", folder / WEIGHTS)
    about = {"kind": kind, "model": as_json(model.config), "radp_version": __version__}
    text = json_text({**about, "training": dict(training or {})}) + "\n"
    (folder / f"{CONFIG}.part").write_text(text)
    os.replace(folder / f"{CONFIG}.part", folder / CONFIG)
    return folder


def own_weights(model: nn.Module) -> dict[str, Tensor]:
    """The state without tables that follow from the settings, and without names of the same memory."""
    seen: set[int] = set()
    out = {}
    for name, value in model.state_dict().items():
        if name.endswith(("static_embedding", ".pe")) or value.data_ptr() in seen:
            continue
        seen.add(value.data_ptr())
        out[name] = value
    return out
