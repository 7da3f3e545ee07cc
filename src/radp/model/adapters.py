"""LoRA adapters in PEFT's format, on the feed-forward layers of the DiT blocks and nowhere else.

Training needs PEFT. Planning does not: plain LoRA is merged here, which also spares every process seconds of imports.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import nn

from radp.model.config import LoraSettings
from radp.model.network import DiffusionModel

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
PREFIX = "base_model.model."
PLAIN = {"bias": "none", "use_dora": False, "use_rslora": False, "use_qalora": False, "fan_in_fan_out": False}
TARGETS = ("mlp1.fc1", "mlp1.fc2", "mlp2.fc1", "mlp2.fc2")  # of every DiT block


def _peft() -> Any:
    try:
        import peft
    except ImportError:
        raise ModuleNotFoundError('adapters need PEFT: pip install "radp[train]"') from None
    return peft


def target_names(model: DiffusionModel) -> list[str]:
    """Full names of the Linear layers that get an adapter, four for each DiT block."""
    return [f"decoder.blocks.{i}.{name}" for i in range(model.config.decoder_depth) for name in TARGETS]


def add_adapters(model: DiffusionModel, settings: LoraSettings | None = None) -> nn.Module:
    """Wrap the model: all frozen but the adapters, which are put INTO `model`: it answers with them from now on."""
    peft, settings = _peft(), settings or LoraSettings()
    names = target_names(model)
    config = peft.LoraConfig(
        r=settings.rank, lora_alpha=settings.alpha, lora_dropout=settings.dropout, target_modules=names, bias="none"
    )
    wrapped = peft.get_peft_model(model, config)
    trained = [name for name, p in wrapped.named_parameters() if p.requires_grad]
    if len(trained) != 2 * len(names) or not all("lora_" in name for name in trained):
        raise RuntimeError(f"expected {2 * len(names)} trainable adapter tensors, found {len(trained)}: {trained}")
    return wrapped


def save_adapters(wrapped: nn.Module, folder: Path | str) -> None:
    """adapter_model.safetensors and adapter_config.json, as PEFT writes them."""
    wrapped.save_pretrained(str(folder))  # type: ignore[operator]  # a method of PEFT's, which is an extra


def load_adapters(model: DiffusionModel, folder: Path | str, merge: bool = True) -> DiffusionModel:
    """Put saved adapters onto a model of ours or a published checkpoint; merged into its weights by default."""
    folder = Path(folder)
    if not (folder / CONFIG).is_file():
        raise FileNotFoundError(f"{folder}: {CONFIG} is missing, so this is no adapter folder")
    settings = json.loads((folder / CONFIG).read_bytes())
    if merge and is_plain(settings):
        made = merge_plain(model, folder, settings["lora_alpha"] / settings["r"])
    else:
        wrapped = _peft().PeftModel.from_pretrained(model, str(folder), is_trainable=False)
        made = (wrapped.merge_and_unload() if merge else model).eval()
    for name, value in made.state_dict().items():
        if not bool(value.isfinite().all()):
            raise ValueError(f"{folder}: with these adapters, {name} holds a value that is not finite")
    return made


def is_plain(settings: dict[str, Any]) -> bool:
    """Whether these settings of PEFT say nothing but W x + alpha / r * B A x, the same for all layers."""
    same = all(settings.get(name, value) == value for name, value in PLAIN.items())
    return (
        settings.get("peft_type") == "LORA"
        and same
        and not any(settings.get(name) for name in ("rank_pattern", "alpha_pattern", "modules_to_save", "lora_bias"))
    )


@torch.no_grad()
def merge_plain(model: DiffusionModel, folder: Path, scaling: float) -> DiffusionModel:
    """W + scaling * B A, as PEFT does it; ValueError names the first tensor that has no place in the model."""
    weights = load_file(folder / WEIGHTS)
    for name, first in weights.items():
        if ".lora_A." not in name:
            continue
        second, place = weights[name.replace(".lora_A.", ".lora_B.")], name.removeprefix(PREFIX).split(".lora_A.")[0]
        try:
            layer = model.get_submodule(place)
        except AttributeError:
            raise ValueError(f"{folder / WEIGHTS}: the model has no layer {place!r}") from None
        if not isinstance(layer, nn.Linear) or layer.weight.shape != (second.shape[0], first.shape[1]):
            raise ValueError(f"{folder / WEIGHTS}: the adapter of {place!r} does not fit the model")
        layer.weight += (second @ first) * scaling
    return model.eval()
