"""Goal: get along the route, up to what the expert did or what can be reached, and never backwards."""

from __future__ import annotations

import torch
from torch import Tensor

from radp.rules.context import RuleContext
from radp.rules.penalty import mean_penalty
from radp.rules.rule import Rule

LATERAL_WEIGHT, LATERAL_SCALE = 0.1, 0.5  # m
MONOTONE_WEIGHT = 0.2


class Goal(Rule):
    """J(s* - s_H; 5) + 0.1 J(d_H; 0.5) + 0.2 J(s_{h-1} - s_h; 5); zero without a route."""

    name, unit, scale, weight = "goal", "m", 5.0, 1.5
    describes = "progress along the route"

    def cost(self, trajectory: Tensor, context: RuleContext) -> Tensor:
        match = context.match(trajectory)
        progress = match.progress(trajectory)
        steps = torch.diff(progress, dim=1, prepend=context.progress_now(trajectory))
        valid = match.valid[:, -1:]
        return (
            mean_penalty((context.target.to(progress.dtype) - progress[:, -1])[:, None], self.scale, valid)
            + LATERAL_WEIGHT * mean_penalty(match.lateral(trajectory)[:, -1:].abs(), LATERAL_SCALE, valid)
            + MONOTONE_WEIGHT * mean_penalty(-steps, self.scale, match.valid)
        )

    def violation(self, trajectory: Tensor, context: RuleContext) -> Tensor:
        """Only the last step can break this rule: the progress that is missing there."""
        match = context.match(trajectory)
        out = torch.full_like(trajectory[..., 0], -torch.inf)
        missing = context.target.to(out.dtype) - match.progress(trajectory)[:, -1]
        out[:, -1] = missing.masked_fill(~match.valid[:, -1], -torch.inf)
        return out
