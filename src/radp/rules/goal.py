"""Goal: get along the route, up to what the expert did or what can be reached, and never backwards."""

from __future__ import annotations

import torch
from torch import Tensor

from radp.rules.context import RuleContext
from radp.rules.penalty import Term
from radp.rules.rule import PenaltyRule

LATERAL_WEIGHT, LATERAL_SCALE = 0.1, 0.5  # m
MONOTONE_WEIGHT = 0.2


class Goal(PenaltyRule):
    """J(s* - s_H; 5) + 0.1 J(d_H; 0.5) + 0.2 J(s_{h-1} - s_h; 5); zero without a route."""

    name, unit, scale, weight = "goal", "m", 5.0, 1.5
    describes = "progress along the route"

    def terms(self, trajectory: Tensor, context: RuleContext) -> list[Term]:
        match = context.match(trajectory)
        progress = torch.cat((context.progress_now(trajectory), match.progress(trajectory)), 1)
        at_end = match.valid.clone()
        at_end[:, :-1] = False
        return [
            Term(context.target.to(progress.dtype)[:, None] - progress[:, 1:], self.scale, at_end),
            Term(match.lateral(trajectory).abs(), LATERAL_SCALE, at_end, LATERAL_WEIGHT),
            Term(progress[:, :-1] - progress[:, 1:], self.scale, match.valid, MONOTONE_WEIGHT),
        ]

    def violation(self, trajectory: Tensor, context: RuleContext) -> Tensor:
        """Only the last step can break this rule: the progress that is missing there."""
        match = context.match(trajectory)
        out = torch.full_like(trajectory[..., 0], -torch.inf)
        missing = context.target.to(out.dtype) - match.progress(trajectory)[:, -1]
        out[:, -1] = missing.masked_fill(~match.valid[:, -1], -torch.inf)
        return out
