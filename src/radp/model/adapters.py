"""LoRA adapters in PEFT's format, on the feed-forward layers of the DiT blocks, as in the paper, or on all layers.

Training needs PEFT. Planning does not: plain LoRA is merged here, which also spares every process seconds of imports.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor, nn

from radp.model.config import LoraSettings
from radp.model.network import DiffusionModel
from radp.model.weights import check_finite, read_weights
from radp.runs.errors import BadInput, reading_file, require
from radp.runs.files import write_atomically, write_json_atomically

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
PREFIX = "base_model.model."
PLAIN = {"bias": "none", "use_dora": False, "use_rslora": False, "use_qalora": False, "fan_in_fan_out": False}
TARGETS = ("mlp1.fc1", "mlp1.fc2", "mlp2.fc1", "mlp2.fc2")  # of every DiT block


def _peft() -> Any:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # adapters and models are files: nothing is ever looked up
    return require("peft", "train")


def target_names(model: DiffusionModel, layers: str = "feed-forward") -> list[str]:
    """Full names of the Linear layers that get an adapter: four for each DiT block, or all."""
    if layers == "all":
        return [name for name, layer in model.named_modules() if isinstance(layer, nn.Linear)]
    return [f"decoder.blocks.{i}.{name}" for i in range(model.config.decoder_depth) for name in TARGETS]


def add_adapters(model: DiffusionModel, settings: LoraSettings | None = None) -> nn.Module:
    """Wrap the model: all frozen but the adapters, which are put INTO `model`: it answers with them from now on."""
    peft, settings = _peft(), settings or LoraSettings()
    names = target_names(model, settings.layers)
    config = peft.LoraConfig(
        r=settings.rank, lora_alpha=settings.alpha, lora_dropout=settings.dropout, target_modules=names, bias="none"
    )
    wrapped = peft.get_peft_model(model, config)
    trained = [name for name, p in wrapped.named_parameters() if p.requires_grad]
    if len(trained) != 2 * len(names) or not all("lora_" in name for name in trained):
        raise RuntimeError(f"expected {2 * len(names)} trainable adapter tensors, found {len(trained)}: {trained}")
    return wrapped


def resume_adapters(model: DiffusionModel, folder: Path | str, dropout: float = 0.0) -> nn.Module:
    """Like `add_adapters`, with saved adapters to go on from, whose rank and alpha are kept."""
    folder = Path(folder)
    settings, _ = _settings(folder)
    if not is_plain(settings):
        raise BadInput(f"{folder / CONFIG}: training can go on from plain LoRA adapters alone")
    weights = read_weights(folder / WEIGHTS)
    rank, alpha = int(settings.get("r", 1)), settings.get("lora_alpha", 1)
    everywhere = any(".encoder." in name for name in weights)
    same = LoraSettings(rank=rank, alpha=alpha, dropout=dropout, layers="all" if everywhere else "feed-forward")
    wrapped = add_adapters(model, same)
    places = {name: value for name, value in wrapped.named_parameters() if value.requires_grad}
    for name, value in places.items():
        held = weights.get(name.replace(".default.", "."))
        if held is None or held.shape != value.shape:
            raise BadInput(f"{folder / WEIGHTS}: holds no adapter that fits {name.removeprefix(PREFIX)}")
        value.data.copy_(held)
    if len(weights) != len(places):
        raise BadInput(f"{folder / WEIGHTS}: holds {len(weights)} tensors, expected {len(places)}")
    check_finite(weights, folder / WEIGHTS)
    return wrapped


def save_adapters(wrapped: nn.Module, folder: Path | str) -> None:
    """adapter_model.safetensors and adapter_config.json, as PEFT writes them."""
    wrapped.save_pretrained(str(folder))  # type: ignore[operator]  # a method of PEFT's, which is an extra


def load_adapters(model: DiffusionModel, folder: Path | str, merge: bool = True) -> DiffusionModel:
    """Put saved adapters onto a model of ours or a published checkpoint; merged into its weights by default.

    BadInput if they are incomplete, do not fit the model, or hold what is no number.
    """
    folder = Path(folder)
    settings, scaling = _settings(folder)
    if merge and is_plain(settings):
        made = merge_plain(model, folder, scaling, settings.get("target_modules"))
    else:
        read_weights(folder / WEIGHTS)
        peft = _peft()
        with reading_file(folder, "folder of adapters"):
            wrapped = peft.PeftModel.from_pretrained(model, str(folder), is_trainable=False)
            made = (wrapped.merge_and_unload() if merge else model).eval()
    check_finite(made.state_dict(), f"{folder}: with these adapters")
    return made


def _settings(folder: Path) -> tuple[dict[str, Any], float]:
    """What PEFT says about the adapters of a folder, and alpha / r."""
    for name in (CONFIG, WEIGHTS):
        if not (folder / name).is_file():
            raise BadInput(f"{folder}: {name} is missing, so the adapters are incomplete")
    with reading_file(folder / CONFIG, "description of adapters"):
        settings = json.loads((folder / CONFIG).read_bytes())
        alpha, rank = float(settings.get("lora_alpha", 1)), int(settings.get("r", 1))
    if not math.isfinite(alpha) or rank < 1:
        raise BadInput(
            f"{folder / CONFIG}: lora_alpha is {alpha} and r is {rank}, expected a finite number and at least 1"
        )
    return settings, alpha / rank


def join_adapters(folders: Sequence[Path], out: Path, mean: bool = False, times: float = 1.0) -> None:
    """Adapters that were trained one upon the other -> one adapter in `out` that answers like all of them together.

    The A and B of a layer are put side by side, B with its own alpha / r, so the ranks add up and nothing is lost.
    With `mean`, they were trained side by side on one base, and what they add to its weights is averaged. What is
    added in the end counts so many `times`.
    """
    share = times / len(folders) if mean else times
    read = [_settings(folder) for folder in folders]
    weights = [read_weights(folder / WEIGHTS) for folder in folders]
    for folder, (settings, _), held in zip(folders, read, weights):
        if not is_plain(settings):
            raise BadInput(f"{folder / CONFIG}: only plain LoRA adapters can be joined")
        if held.keys() != weights[0].keys():
            raise BadInput(f"{folder / WEIGHTS}: holds adapters of other layers than {folders[0] / WEIGHTS}")
        _pairs(held, folder / WEIGHTS)
    joined = {}
    for name in weights[0]:
        second = ".lora_B." in name
        parts = [held[name] * (share * scaling if second else 1.0) for held, (_, scaling) in zip(weights, read)]
        joined[name] = torch.cat(parts, 1 if second else 0).contiguous()
    rank = sum(int(settings["r"]) for settings, _ in read)
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(out / WEIGHTS, save(joined))
    write_json_atomically(out / CONFIG, {**read[0][0], "r": rank, "lora_alpha": rank})


def is_plain(settings: dict[str, Any]) -> bool:
    """Whether these settings of PEFT say nothing but W x + alpha / r * B A x, the same for all layers."""
    same = all(settings.get(name, value) == value for name, value in PLAIN.items())
    return (
        settings.get("peft_type") == "LORA"
        and same
        and not any(settings.get(name) for name in ("rank_pattern", "alpha_pattern", "modules_to_save", "lora_bias"))
    )


@torch.no_grad()
def merge_plain(model: DiffusionModel, folder: Path, scaling: float, targets: Any = None) -> DiffusionModel:
    """W + scaling * B A, as PEFT does it; BadInput names the first tensor that is missing or has no place in the model.

    `targets`: names, or ends of names, of the layers that the adapters are for; each of them must be there.
    """
    file = folder / WEIGHTS
    pairs = _pairs(read_weights(file), file)
    for target in targets if isinstance(targets, list) else ():
        if not any(place == target or place.endswith(f".{target}") for place in pairs):
            raise BadInput(f"{file}: the adapter of {target!r} is missing")
    for place, (first, second) in pairs.items():
        try:
            layer = model.get_submodule(place)
        except AttributeError:
            raise BadInput(f"{file}: the model has no layer {place!r}") from None
        inner = len(first)
        if (
            not isinstance(layer, nn.Linear)
            or first.shape != (inner, layer.in_features)
            or second.shape != (layer.out_features, inner)
        ):
            raise BadInput(f"{file}: the adapter of {place!r} does not fit the model")
        layer.weight += (second @ first) * scaling
    return model.eval()


def _pairs(weights: dict[str, Tensor], file: Path) -> dict[str, tuple[Tensor, Tensor]]:
    """Layer -> its A (r, in) and B (out, r)."""
    pairs = {}
    for name, value in weights.items():
        one, other = (".lora_A.", ".lora_B.") if ".lora_A." in name else (".lora_B.", ".lora_A.")
        if one not in name:
            raise BadInput(f"{file}: {name} belongs to no plain adapter")
        if name.replace(one, other) not in weights:
            raise BadInput(f"{file}: {name.replace(one, other)} is missing")
        if one == ".lora_A.":
            pairs[name.removeprefix(PREFIX).split(one)[0]] = (value, weights[name.replace(one, other)])
    if not pairs:
        raise BadInput(f"{file}: holds no adapters")
    return pairs
