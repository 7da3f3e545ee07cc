"""What a rule that weighs more asks of a plan: a push in control space, along which its cost falls; it is learnt.

Twice the weight asks for the smallest push that halves the rule's cost, four times for twice that push, half for the
opposite one: a step along the rule's pressure, as large as the weight says. Where a rule costs nothing it asks nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from radp.attribution.control import amplitude_of, descent, pushed
from radp.rules import Rule, RuleContext
from radp.rules.contact import MARGIN, WITHIN, first_contact

MOST = 0.5  # m/s2 that twice the weight may ask for
MOST_IN_ALL = 2.0  # m/s2 of all rules together
SHARES = (1.0, 0.5, 0.25, 0.0)  # of the pushes of other rules than collision, until they let nobody be met
COLLISION = "collision"


def pushes_of(plan: Tensor, contexts: Sequence[RuleContext], rules: Sequence[Rule], steer: Sequence[str]) -> Tensor:
    """Plans (B, H, 4) -> knots (B, M, 9, 2) [m/s2] that halve the cost of each rule, the mean over the contexts.

    Rules of `steer` may also push to the side.
    """
    start = plan.new_zeros(len(plan), 2)
    found = []
    for rule in rules:
        each = []
        for context in contexts:
            way = descent(plan, context, rule, start, rule.name in steer)
            size = amplitude_of(plan, context, rule, start, way).clamp(max=MOST)
            each.append(size[:, None, None] * way)
        found.append(torch.stack(each).mean(0))
    return torch.stack(found, 1)


@torch.no_grad()
def give_way(
    plan: Tensor, pushes: Tensor, log_weights: Tensor, contexts: Sequence[RuleContext], rules: Sequence[Rule]
) -> Tensor:
    """Plans (B, H, 4), pushes (B, M, 9, 2), log-weights (B, M) -> the plans (B, H, 4) that these weights ask for.

    The contact of a plan is up to the weight of collision alone: the others push only as far as nobody is met whom the
    plan would not meet without them.
    """
    knots = (log_weights / math.log(2.0))[:, :, None, None] * pushes
    safety = torch.tensor([rule.name == COLLISION for rule in rules])
    first, others = knots[:, safety].sum(1), knots[:, ~safety].sum(1)
    made = pushed(plan, first.clamp(-MOST_IN_ALL, MOST_IN_ALL))
    meets = _meets(made, contexts)
    open_ = torch.ones(len(plan), dtype=torch.bool)
    for share in SHARES:
        trial = pushed(plan, (first + share * others).clamp(-MOST_IN_ALL, MOST_IN_ALL))
        fits = open_ & (meets | ~_meets(trial, contexts))
        made = torch.where(fits[:, None, None], trial, made)
        open_ &= ~fits
    return made


def _meets(plan: Tensor, contexts: Sequence[RuleContext]) -> Tensor:
    """(B,) bool: within 0.3 m of somebody within 4 s, in any of the contexts."""
    return torch.stack([first_contact(plan, context, MARGIN) <= WITHIN for context in contexts]).any(0)
