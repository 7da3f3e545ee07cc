"""Learned planners from disk: a model, or adapters and a head on top of one.

A planner folder holds a model (model.safetensors, config.json), or planner.json with the name of its base and the
adapters, and there may be an input for weights of rules; in either case it may hold an attribution head and a
calibration as well.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from radp.model.adapters import join_adapters, load_adapters
from radp.model.checkpoint import load_model
from radp.model.head import WEIGHTS as HEAD_WEIGHTS
from radp.model.head import load_head
from radp.model.network import DiffusionModel
from radp.model.paths import model_path
from radp.model.rule_weights import load_weight_input, save_weight_input
from radp.planners.diffusion import DiffusionPlanner
from radp.planners.guidance import CollisionGuidance
from radp.runs.errors import BadInput, reading_file
from radp.runs.files import write_json_atomically
from radp.zoo import MODELS, list_models

PLANNER = "planner.json"


def load_learned(name_or_path: str | Path, guided: bool = False, **options: Any) -> DiffusionPlanner:
    """A packaged name, a planner or model folder, or a published .pth with args.json beside it.

    `guided` adds the published collision guidance to the sampling; other options go to `DiffusionPlanner`.
    """
    path = model_path(name_or_path)
    model = load_planner_model(path)
    head = load_head(path) if path.is_dir() and (path / HEAD_WEIGHTS).is_file() else None
    if head is not None and head.config.tokens != model.config.hidden:
        raise BadInput(
            f"{path}: the attribution head is for tokens of {head.config.tokens} values, "
            f"those of the model have {model.config.hidden}"
        )
    name = path.stem if path.is_file() else path.resolve().name
    if guided:
        options["guidance"] = CollisionGuidance.of_scene
        name = f"{name}+guidance"
    return DiffusionPlanner(model, name, head=head, **options)


def load_planner_model(path: Path | str, above: tuple[Path, ...] = ()) -> DiffusionModel:
    """The model of a planner folder, adapters merged into its weights; `above` are the folders whose base it is."""
    path = Path(path)
    if not (path.is_dir() and (path / PLANNER).is_file()):
        return load_model(path)
    above = (*above, path.resolve())
    with reading_file(path / PLANNER, "planner: expected the name of its base"):
        described = json.loads((path / PLANNER).read_bytes())
        base, rules = str(described["base"]), described.get("rule_weights", [])
        if not (isinstance(rules, list) and all(isinstance(rule, str) for rule in rules)):
            raise BadInput(f"{path / PLANNER}: rule_weights is no list of rules")
        beside = path / base
        found = beside if beside.exists() else model_path(base)
        if found.resolve() in above:
            raise BadInput(f"{path / PLANNER}: base is {base!r}, which leads back to this planner")
    model = load_adapters(load_planner_model(found, above), path)
    return load_weight_input(model, rules, path) if rules else model


def base_of(planner: str) -> str:
    """The packaged model that a packaged planner was made of; empty where there is none."""
    file = MODELS / planner / PLANNER
    base = Path(str(json.loads(file.read_bytes())["base"])).name if file.is_file() else ""
    return base if base in list_models() else ""


def package_planner(
    base: str,
    adapters: Sequence[Path],
    out: Path,
    mean: bool = False,
    weights: Path | None = None,
    times: float = 1.0,
) -> Path:
    """A planner folder of a base and adapters that were trained one upon the other, joined into one; returns it.

    With `mean`, they were trained side by side on the base, and their mean is taken. What they add to the base counts
    so many `times`. `weights`: a model that takes
    weights of rules and is otherwise this planner; its input goes into the folder.
    """
    found = model_path(base)
    join_adapters(adapters, out, mean, times)
    name = base if base in list_models() else os.path.relpath(found.resolve(), out.resolve())
    described: dict[str, Any] = {"base": name}
    listening = None if weights is None else load_model(weights)
    if listening is not None:
        described["rule_weights"] = list(save_weight_input(listening, out))
    write_json_atomically(out / PLANNER, described)
    made = load_planner_model(out)  # what does not fit is said now
    if listening is not None:
        wanted = listening.state_dict()
        for part, value in made.state_dict().items():
            if not torch.allclose(value, wanted[part], rtol=1e-4, atol=1e-5):
                raise BadInput(
                    f"{weights}: {part} is not that of {base} with these adapters, so its input does not fit"
                )
    return out
