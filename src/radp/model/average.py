"""One model whose weights are the mean of several that were trained from a common start."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import torch

from radp.model.network import DiffusionModel
from radp.runs.errors import BadInput

TOTAL = 1e-6  # how far the shares may be from adding up to 1


def average_models(models: Sequence[DiffusionModel], shares: Sequence[float] = ()) -> DiffusionModel:
    """sum_i share_i W_i, computed in double precision; equal shares if none are given.

    It makes sense for models that went on from the same weights: between these the loss hardly rises, and what each has
    learnt on its own data adds up. BadInput for models of different settings.
    """
    if len(models) < 2:
        raise BadInput("name at least two models to average")
    shares = tuple(shares) or (1.0 / len(models),) * len(models)
    if len(shares) != len(models) or abs(sum(shares) - 1.0) > TOTAL or min(shares) < 0.0:
        raise BadInput(f"shares {' '.join(f'{s:g}' for s in shares)}: expected {len(models)} that add up to 1")
    first = models[0]
    for place, other in enumerate(models[1:], 2):
        if other.config != first.config or other.normaliser.to_args() != first.normaliser.to_args():
            raise BadInput(f"model {place} has other settings than the first, so that their weights do not compare")
    states = [model.state_dict() for model in models]
    mean = deepcopy(first)
    with torch.no_grad():
        for name, value in mean.state_dict().items():
            parts = [share * state[name].double() for share, state in zip(shares, states)]
            value.copy_(torch.stack(parts).sum(0).to(value.dtype))
    return mean.eval()
