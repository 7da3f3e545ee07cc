"""What of the rules decides the content of a cache: their constants, and what the teacher says about a few fixed plans.

Both are values, so that neither a comment nor another way to write the same thing makes a cache stale.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any

import numpy as np
import torch

from radp.attribution.teacher import attribute
from radp.model import features
from radp.model.sampler import TEMPERATURE
from radp.rules import Rule, RuleContext, context, motion, penalty, route
from radp.runs.settings import as_json
from radp.scene.scene import AgentColumn, EgoColumn, LaneColumn, Scene, StaticColumn

SHARED = (context, motion, penalty, route, features)
PLANS = 6


def rule_constants(rules: Sequence[Rule]) -> dict[str, Any]:
    """Rule, or module that all share -> name -> value of what is written in capitals where it is defined."""
    own = {
        rule.name: {"scale": rule.scale, **capitals(sys.modules[type(rule).__module__]), **rule.constants}
        for rule in rules
    }
    shared = {module.__name__.rpartition(".")[2]: capitals(module) for module in SHARED}
    return {**shared, "sampler": {"temperature": TEMPERATURE}, **own}


def capitals(module: ModuleType) -> dict[str, Any]:
    """Those that have a form in JSON: numbers, words, tables of them."""
    found = {}
    for name, value in sorted(vars(module).items()):
        if name.isupper():
            with suppress(TypeError, ValueError):
                found[name] = as_json(value)
    return found


def teacher_answers(rules: Sequence[Rule]) -> list[float]:
    """Costs and gradients of the rules, and the head's features, for plans that break each of them more or less."""
    plans, scene = fixed_plans()
    context = RuleContext.from_scene(scene)
    why = attribute(plans, context, rules=rules)
    seen = features.plan_features(plans, context.speed_now, context.accel_now)
    return torch.cat([why.cost.flatten(), why.gradient_norm.flatten(), seen.mean(1)]).tolist()


def alike(answers: Sequence[float], others: Sequence[float]) -> bool:
    """Equal up to what processors round differently."""
    return len(answers) == len(others) and np.allclose(answers, others, rtol=1e-6, atol=1e-9)


def fixed_plans() -> tuple[torch.Tensor, Scene]:
    """Plans (6, 80, 4), ever faster and more winding, on a straight road of two lanes with somebody ahead, somebody
    beside and a cone; the last three meet a red light. All in float64, in which little depends on rounding."""
    number, time = torch.arange(1.0, PLANS + 1)[:, None].double(), 0.1 * torch.arange(1.0, 81).double()
    x = 3 * number * time + 0.1 * number * time**2
    y = 0.12 * number**2 * torch.sin(0.25 * number * time)
    heading = torch.atan2(0.03 * number**3 * torch.cos(0.25 * number * time), 3 * number + 0.2 * number * time)
    ego = torch.zeros(PLANS, len(EgoColumn)).double()
    ego[:, EgoColumn.COS], ego[:, EgoColumn.VX], ego[:, EgoColumn.AX] = 1.0, 3 * number[:, 0], 0.25
    agents = torch.zeros(PLANS, 2, 21, len(AgentColumn)).double()
    for i, (ahead, aside, speed) in enumerate(((30.0, 0.25, 2.0), (12.0, 3.0, 6.0))):
        agents[:, i] = torch.tensor([ahead, aside, 1.0, 0.0, speed, 0.0, 2.0, 4.5, 1.0, 0.0, 0.0])
    cone = torch.zeros(PLANS, 1, len(StaticColumn)).double()
    cone[:, 0, : StaticColumn.LENGTH + 1] = torch.tensor([40.0, -1.5, 1.0, 0.0, 0.5, 0.5])
    lanes = torch.zeros(PLANS, 4, 20, len(LaneColumn)).double()
    for i in range(4):  # two one behind the other, two beside them
        lanes[:, i, :, LaneColumn.X] = -10.0 + 57.0 * (i % 2) + 3.0 * torch.arange(20)
        lanes[:, i, :, LaneColumn.Y] = 3.5 * (i // 2)
        lanes[:, i, :, LaneColumn.DX] = 3.0
        lanes[:, i, :, LaneColumn.LEFT_Y], lanes[:, i, :, LaneColumn.RIGHT_Y] = 1.75, -1.75
    lanes[3:, 1::2, :, LaneColumn.IS_RED] = 1.0
    limit = torch.full((PLANS, 4, 1), 9.0).double()
    plans = torch.stack((x, y, torch.cos(heading), torch.sin(heading)), -1)
    return plans, Scene(ego, agents, cone, lanes, limit, limit > 0, lanes, limit, limit > 0)
