"""Weights of rules as an input of the planner: how many times as much as by default each rule is to count."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from radp.model.config import ModelConfig
from radp.model.network import DiffusionModel, extended
from radp.runs.errors import BadInput


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
