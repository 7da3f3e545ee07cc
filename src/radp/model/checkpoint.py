"""Checkpoints. Ours: a folder with model.safetensors and config.json. Published: a .pth with args.json beside it."""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from radp.model.config import ModelConfig
from radp.model.network import DiffusionModel
from radp.model.weights import read_weights
from radp.runs.errors import BadInput, one_line, reading_file
from radp.runs.json_text import json_text
from radp.scene.normaliser import Normaliser
from radp.version import __version__

WEIGHTS, CONFIG, ARGS = "model.safetensors", "config.json", "args.json"
FORMAT = 1
DDP_PREFIX = "module."

# (pattern of our name, published name); applied in turn to the name without its last part's q, k, v
RENAMES = [
    (r"^encoder\.", "encoder.encoder."),
    (r"^decoder\.", "decoder.decoder.dit."),
    (r"\.route_encoder\.polyline\.blocks\.0\.", ".route_encoder.Mixer."),
    (r"\.polyline\.", "."),
    (r"\.time_embedding\.fc1\.", ".t_embedder.mlp.0."),
    (r"\.time_embedding\.fc2\.", ".t_embedder.mlp.2."),
    (r"\.modulation\.", ".adaLN_modulation.1."),
    (r"\.final_layer\.norm1\.", ".final_layer.proj.0."),
    (r"\.final_layer\.fc1\.", ".final_layer.proj.1."),
    (r"\.final_layer\.norm2\.", ".final_layer.proj.3."),
    (r"\.final_layer\.fc2\.", ".final_layer.proj.4."),
    (r"attn\.o\.", "attn.out_proj."),
]
PACKED = re.compile(r"attn\.([qkv])\.(weight|bias)$")


class CheckpointError(BadInput):
    """A checkpoint that does not fit; the message names the file and everything that is wrong with it."""


def load_model(path: str | Path) -> DiffusionModel:
    """A folder of ours, a published .pth, or a folder with one .pth and args.json -> model in eval mode on the CPU."""
    path = Path(path)
    if path.is_dir() and (path / WEIGHTS).is_file():
        model = _load_ours(path)
    elif path.is_dir():
        candidates = sorted(path.glob("*.pth"))
        if len(candidates) != 1:
            raise CheckpointError(f"{path}: neither {WEIGHTS} nor exactly one .pth in this folder")
        model = _load_published(candidates[0])
    elif path.is_file():
        model = _load_published(path)
    else:
        raise FileNotFoundError(f"no checkpoint at {path}")
    return model.eval()


def save_model(
    model: DiffusionModel, folder: str | Path, training: Mapping[str, Any] | None = None, commit: str | None = None
) -> Path:
    """Write model.safetensors and config.json (each atomically); `training` says how the weights were made."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "format": FORMAT,
        "radp_version": __version__,
        "commit": commit,
        "model": model.config.to_json(),
        "normaliser": model.normaliser.to_args(),
        "training": dict(training) if training is not None else model.about.get("training"),
    }
    state = {name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()}
    save_file(state, folder / f"{WEIGHTS}.part")
    os.replace(folder / f"{WEIGHTS}.part", folder / WEIGHTS)
    _write_json(folder / CONFIG, config)
    return folder


def export_published(model: DiffusionModel, path: str | Path) -> Path:
    """Write the .pth (keys under `module.`, as model and as ema_state_dict) and args.json beside it."""
    path = Path(path)
    args = {**model.about.get("args", {}), **model.config.to_args(), **model.normaliser.to_args()}
    path.parent.mkdir(parents=True, exist_ok=True)
    state = {DDP_PREFIX + name: value for name, value in to_published(model.state_dict()).items()}
    part = path.with_name(f"{path.name}.part")
    torch.save({"epoch": 0, "model": state, "ema_state_dict": state}, part)
    os.replace(part, path)
    _write_json(path.with_name(ARGS), args)
    return path


def to_published(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Our state dict -> published names; q, k, v are packed into in_proj."""
    packed: dict[str, dict[str, Tensor]] = {}
    out: dict[str, Tensor] = {}
    for name, value in state.items():
        theirs, part = published_name(name)
        if part is None:
            out[theirs] = value.detach().cpu().clone()
        else:
            packed.setdefault(theirs, {})[part] = value.detach().cpu()
            out[theirs] = value  # keeps the place in the order; filled below
    return out | {name: torch.cat([parts[part] for part in "qkv"]) for name, parts in packed.items()}


def published_name(name: str) -> tuple[str, str | None]:
    """Our parameter name -> published name, and which third of it ("q", "k", "v") ours is, or None."""
    match = PACKED.search(name)
    if match:
        name = name[: match.start()] + f"attn.in_proj_{match[2]}"
    for pattern, replacement in RENAMES:
        name = re.sub(pattern, replacement, name)
    return name, match[1] if match else None


def from_published(state: Mapping[str, Tensor], model: DiffusionModel, source: str) -> dict[str, Tensor]:
    """Published state dict (with or without `module.`) -> ours, checked against the model; one error lists all."""
    state = {name.removeprefix(DDP_PREFIX): value for name, value in state.items()}
    wanted = to_published(model.state_dict())
    check_state(state, wanted, source)
    ours = {}
    for name, parameter in model.state_dict().items():
        theirs, part = published_name(name)
        value = state[theirs] if part is None else state[theirs].chunk(3)["qkv".index(part)]
        ours[name] = value.to(parameter.dtype)
    return ours


def _load_published(path: Path) -> DiffusionModel:
    args_path = path.with_name(ARGS)
    if not args_path.is_file():
        raise CheckpointError(f"{path}: {ARGS} with sizes and normaliser is missing beside it")
    args = _read_json(args_path)
    check_archive(path)
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch has no one kind of error for files that are cut, foreign or hostile
        raise CheckpointError(f"{path}: not a plain weights file: {one_line(error, 200)}") from error
    if not isinstance(loaded, Mapping):
        raise CheckpointError(f"{path}: expected a dict, found {type(loaded).__name__}")
    state = next((loaded[key] for key in ("ema_state_dict", "model") if loaded.get(key) is not None), loaded)
    with reading_file(args_path, "description of a model", CheckpointError):
        model = DiffusionModel(ModelConfig.from_args(args), Normaliser.from_args(args))
    _check_normaliser(model, args_path)
    with reading_file(path, "plain weights file", CheckpointError):
        model.load_state_dict(from_published(state, model, str(path)))
    model.about = {"args": args}
    return model


def _load_ours(folder: Path) -> DiffusionModel:
    config = _read_json(folder / CONFIG)
    if config.get("format") != FORMAT:
        raise CheckpointError(f"{folder / CONFIG}: format {config.get('format')}, this version reads {FORMAT}")
    with reading_file(folder / CONFIG, "description of a model", CheckpointError):
        model = DiffusionModel(ModelConfig.from_json(config["model"]), Normaliser.from_args(config["normaliser"]))
    _check_normaliser(model, folder / CONFIG)
    state = read_weights(folder / WEIGHTS)
    check_state(state, model.state_dict(), str(folder / WEIGHTS))
    model.load_state_dict(state)
    model.about = {key: config.get(key) for key in ("radp_version", "commit", "training")}
    return model


def check_archive(path: Path) -> None:
    """CheckpointError for an archive of torch out of which more comes than lies in it: torch writes nothing packed."""
    with reading_file(path, "plain weights file", CheckpointError):
        if not zipfile.is_zipfile(path):
            return
        with zipfile.ZipFile(path) as archive:
            packed = any(part.compress_type != zipfile.ZIP_STORED for part in archive.infolist())
            total = sum(part.file_size for part in archive.infolist())
        if packed or total > path.stat().st_size:
            raise CheckpointError(f"{path}: not a plain weights file: its parts are packed, or overlap")


def check_state(state: Mapping[str, Any], wanted: Mapping[str, Tensor], source: str) -> None:
    """One error that lists what is missing, unknown or misshapen."""
    faults = [f"missing {name}" for name in wanted if name not in state]
    faults += [f"unknown {name}" for name in state if name not in wanted]
    for name in wanted:
        value = state.get(name)
        if value is not None and not isinstance(value, Tensor):
            faults.append(f"{name} is a {type(value).__name__}, not a tensor")
        elif value is not None and value.shape != wanted[name].shape:
            faults.append(f"{name} has shape {tuple(value.shape)}, expected {tuple(wanted[name].shape)}")
        elif value is not None and not bool(torch.isfinite(value).all()):
            faults.append(f"{name} holds a value that is not finite")
    if faults:
        raise CheckpointError(f"{source}: the weights do not fit the model: {'; '.join(faults)}")


def _check_normaliser(model: DiffusionModel, source: Path) -> None:
    if model.normaliser.neighbours != model.config.neighbours:
        raise CheckpointError(
            f"{source}: the state normaliser has {model.normaliser.neighbours + 1} rows, "
            f"the model predicts {model.config.predicted} agents"
        )


def _read_json(path: Path) -> dict[str, Any]:
    if not path.exists():
        raise CheckpointError(f"{path}: missing")
    with reading_file(path, "JSON file", CheckpointError):
        values = json.loads(path.read_bytes())
    if not isinstance(values, dict):
        raise CheckpointError(f"{path}: expected a JSON object")
    return values


def _write_json(path: Path, values: Mapping[str, Any]) -> None:
    part = path.with_name(f"{path.name}.part")
    part.write_text(json_text(values) + "\n")
    os.replace(part, path)
