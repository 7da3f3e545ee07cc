"""Weights of rules as an input of the planner: how many times as much as by default each rule is to count."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor

from radp.model.config import ModelConfig
from radp.model.network import DiffusionModel, extended
from radp.model.weights import check_finite, read_weights
from radp.runs.errors import BadInput
from radp.runs.files import write_atomically

WEIGHT_INPUT = "rule_weights.safetensors"  # of a planner folder: the input for weights alone


def parse_weights(words: Sequence[str]) -> dict[str, float]:
    """ "collision=3", "goal=0.5" -> {"collision": 3.0, "goal": 0.5}; BadInput if a word is of another form."""
    found: dict[str, float] = {}
    for word in words:
        name, equals, value = word.partition("=")
        try:
            weight = float(value) if equals and name else math.nan
        except ValueError:
            weight = math.nan
        if not (math.isfinite(weight) and weight > 0):
            raise BadInput(f"{word!r} is no weight of a rule, expected such as collision=3")
        if name in found:
            raise BadInput(f"{name!r} has two weights")
        found[name] = weight
    return found


def log_weights(config: ModelConfig, weights: Mapping[str, float], who: str) -> Tensor | None:
    """(1, W) in the model's order, 0 where none is given; None without any. BadInput for rules it does not know."""
    if not weights:
        return None
    if not config.rule_weights:
        raise BadInput(f"planner {who!r} takes no weights of rules: it was not trained with them")
    for name, weight in weights.items():
        if name not in config.rule_weights:
            raise BadInput(f"planner {who!r} takes no weight of {name!r}, only of {', '.join(config.rule_weights)}")
        if not (math.isfinite(weight) and weight > 0):
            raise BadInput(f"the weight of {name!r} is {weight}, expected more than 0")
    return torch.tensor([[math.log(weights.get(name, 1.0)) for name in config.rule_weights]])


def conditioned(model: DiffusionModel, rules: Sequence[str]) -> DiffusionModel:
    """The model with an input for the weights of these rules; it begins by not listening to them.

    A model that has this input already stays as it is; BadInput if it is one for other rules.
    """
    if model.config.rule_weights == tuple(rules):
        return model
    if model.config.rule_weights:
        raise BadInput(f"the model takes weights of {', '.join(model.config.rule_weights)}, not of {', '.join(rules)}")
    return extended(model, replace(model.config, rule_weights=tuple(rules)))


def save_weight_input(model: DiffusionModel, folder: Path) -> tuple[str, ...]:
    """Write the input alone, for a planner folder whose model is otherwise the base; returns the rules."""
    if model.decoder.weight_embedding is None:
        raise BadInput("the model takes no weights of rules: it was not trained with them")
    tensors = {name: value.contiguous() for name, value in model.decoder.weight_embedding.state_dict().items()}
    write_atomically(folder / WEIGHT_INPUT, save(tensors))
    return model.config.rule_weights


def load_weight_input(model: DiffusionModel, rules: Sequence[str], folder: Path) -> DiffusionModel:
    """The model with the input of a planner folder; BadInput if it does not fit."""
    source = folder / WEIGHT_INPUT
    tensors = read_weights(source)
    check_finite(tensors, source)
    wider = conditioned(model, rules)
    assert wider.decoder.weight_embedding is not None
    wanted = {name: value.shape for name, value in wider.decoder.weight_embedding.state_dict().items()}
    if {name: value.shape for name, value in tensors.items()} != wanted:
        raise BadInput(f"{source}: does not fit weights of {', '.join(rules)} and a model of this size")
    wider.decoder.weight_embedding.load_state_dict(tensors)
    return wider
