"""The state of a training run on disk: weights, optimiser, average, step; written atomically, the last two kept."""

from __future__ import annotations

import io
import re

import torch
from torch import nn

from radp.model.checkpoint import check_archive, check_state
from radp.runs.errors import BadInput, reading_file
from radp.runs.folder import RunFolder
from radp.training.ema import Ema

_NAME = re.compile(r"step_(\d+)\.pt")
KEPT = 2


def _trained(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}


def saved_steps(folder: RunFolder) -> list[int]:
    """Steps of the checkpoints in the folder, oldest first."""
    names = [_NAME.fullmatch(path.name) for path in (folder.path / "state").glob("step_*.pt")]
    return sorted(int(match.group(1)) for match in names if match)


def save_state(
    folder: RunFolder,
    step: int,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    ema: Ema,
    memory: nn.Module | None = None,
) -> None:
    """Write the checkpoint of `step` and drop all but the newest two."""
    state = {"step": step, "model": _trained(model), "optimizer": optimizer.state_dict(), "ema": ema.state()}
    if memory is not None:
        state["memory"] = memory.state_dict()
    buffer = io.BytesIO()
    torch.save(state, buffer)
    folder.write_bytes(f"state/step_{step:08d}.pt", buffer.getvalue())
    for old in saved_steps(folder)[:-KEPT]:
        (folder.path / "state" / f"step_{old:08d}.pt").unlink()


def load_state(
    folder: RunFolder, model: nn.Module, optimizer: torch.optim.Optimizer, ema: Ema, memory: nn.Module | None = None
) -> int:
    """Load the newest checkpoint, if there is one; returns the step to go on from."""
    steps = saved_steps(folder)
    if not steps:
        return 0
    path = folder.path / "state" / f"step_{steps[-1]:08d}.pt"
    with reading_file(path, "checkpoint of this training"):
        check_archive(path)
        state = torch.load(path, weights_only=True, map_location="cpu")
        own = _trained(model)
        if own.keys() != state["model"].keys():
            raise BadInput(f"{path}: holds other weights than this model trains")
        check_state(state["model"], own, str(path))
        with torch.no_grad():
            for name, value in own.items():
                value.copy_(state["model"][name])
        optimizer.load_state_dict(state["optimizer"])
        ema.load(state["ema"])
        if memory is not None:
            memory.load_state_dict(state["memory"])
        return int(state["step"])
