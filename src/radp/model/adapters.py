"""LoRA adapters through PEFT, on the feed-forward layers of the DiT blocks and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from radp.model.network import DiffusionModel

TARGETS = ("mlp1.fc1", "mlp1.fc2", "mlp2.fc1", "mlp2.fc2")  # of every DiT block


@dataclass(frozen=True)
class LoraSettings:
    """As in the paper: W x + alpha / rank * B A x."""

    rank: int = 8
    alpha: int = 16
    dropout: float = 0.05


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
    wrapped.save_pretrained(str(folder))  # type: ignore[operator]


def load_adapters(model: DiffusionModel, folder: Path | str, merge: bool = True) -> DiffusionModel:
    """Put saved adapters onto a model of ours or a published checkpoint; merged into its weights by default."""
    peft, folder = _peft(), Path(folder)
    if not (folder / "adapter_config.json").is_file():
        raise FileNotFoundError(f"{folder}: adapter_config.json is missing, so this is no adapter folder")
    wrapped = peft.PeftModel.from_pretrained(model, str(folder), is_trainable=False)
    return (wrapped.merge_and_unload() if merge else model).eval()
