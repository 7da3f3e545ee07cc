"""Right of way: do not arrive at a crossing point together with somebody who goes first there."""

from __future__ import annotations

import torch
from torch import Tensor

from radp.rules.context import RuleContext
from radp.rules.rule import AgentRule

APART = 1.5  # T [s]
SLOWEST = 0.5  # m/s: slower cars arrive as if they drove this fast


class RightOfWay(AgentRule):
    """z = 1.5 s - |t_ego - t_other| at the point where both paths cross within 6 s and the other has priority."""

    name, unit, scale, weight = "right_of_way", "s", 0.5, 1.5
    describes = "the right of way"
    asks_road = True

    def agent_violation(self, trajectory: Tensor, context: RuleContext) -> tuple[Tensor, Tensor]:
        around = context.around(trajectory)
        conflicts = around.conflicts
        index = conflicts.step.unsqueeze(-1).expand(-1, -1, 2)
        moved = (trajectory[..., :2] - around.plan[..., :2]).gather(1, index)  # (B, N, 2)
        sooner = (moved * conflicts.tangent).sum(-1) / conflicts.speed.clamp(min=SLOWEST)
        z = APART - (conflicts.ego_time - sooner - conflicts.other_time).abs()
        shape = (*trajectory.shape[:2], z.shape[1])
        at = conflicts.step.unsqueeze(1)
        matters = torch.zeros(shape, dtype=torch.bool, device=z.device).scatter(1, at, conflicts.yields.unsqueeze(1))
        return z.unsqueeze(1).expand(shape), matters

    def kept_words(self, margin: float, whom: str = "", gap: float | None = None) -> str:
        return f"{margin + APART:.1f} s to {whom}, who goes first"
