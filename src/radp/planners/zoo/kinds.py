"""The published planners that radp knows: network, features and how an output becomes poses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from radp.planners.zoo import pluto
from radp.planners.zoo.batch import Batch, Sample
from radp.planners.zoo.gameformer import GameFormer, GameFormerConfig
from radp.planners.zoo.gameformer_features import gameformer_sample
from radp.planners.zoo.pdm_features import pdm_sample
from radp.planners.zoo.pdm_open import POSE_STEP, PDMConfig, PDMOpen
from radp.planners.zoo.plantf import PlanTF, PlanTFConfig, best_plan
from radp.planners.zoo.pluto import Pluto, PlutoConfig
from radp.planners.zoo.pluto_features import pluto_sample
from radp.planners.zoo.urban_driver import UrbanDriver, UrbanDriverConfig
from radp.planners.zoo.urban_driver_features import urban_driver_sample
from radp.planners.zoo.vector_features import PLANTF_REACH, vector_sample
from radp.planners.zoo.view import WorldView
from radp.sim.plan import STEP_SECONDS


@dataclass(frozen=True)
class ZooKind:
    """`poses`: what the network gave and its input -> (B, H, 3) x, y, heading, `step` seconds apart from now."""

    name: str
    network: Callable[[Any], nn.Module]
    config: type
    published: Any  # settings of the published weights
    sample: Callable[[WorldView], Sample]
    poses: Callable[[Any, Batch], Tensor]
    step: float = STEP_SECONDS


def _as_given(output: Tensor, _: Batch) -> Tensor:
    return output


KINDS = {
    kind.name: kind
    for kind in (
        ZooKind("pdm-open", PDMOpen, PDMConfig, PDMConfig(), pdm_sample, _as_given, POSE_STEP),
        ZooKind("pdm-hybrid", PDMOpen, PDMConfig, PDMConfig(offset=True), pdm_sample, _as_given, POSE_STEP),
        ZooKind(
            "urban-driver", UrbanDriver, UrbanDriverConfig, UrbanDriverConfig(), urban_driver_sample, _as_given,
            POSE_STEP,
        ),
        ZooKind(
            "plantf", PlanTF, PlanTFConfig, PlanTFConfig(), lambda view: vector_sample(view, PLANTF_REACH),
            lambda output, _: best_plan(output),
        ),
        ZooKind(
            "pluto", Pluto, PlutoConfig, PlutoConfig(), pluto_sample,
            lambda output, batch: pluto.plans(output, batch)["output_trajectory"],
        ),
        ZooKind(
            "gameformer", GameFormer, GameFormerConfig, GameFormerConfig(), gameformer_sample,
            lambda output, _: output["ego_plan"],
        ),
    )
}  # fmt: skip


def times_of(kind: ZooKind, count: int) -> Tensor:
    """(count,) seconds of the poses."""
    return torch.arange(1, count + 1, dtype=torch.float64) * kind.step
