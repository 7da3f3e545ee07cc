"""What a rule that weighs more asks of a plan: a push in control space, along which its cost falls; it is learnt.

Twice the weight asks for the smallest push that halves the rule's cost, four times for twice that push, half for the
opposite one: a step along the rule's pressure, as large as the weight says. Where a rule costs nothing it asks nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from radp.attribution.control import KNOTS, amplitude_of, descent, pushed
from radp.rules import Rule, RuleContext, rule_costs
from radp.rules.contact import MARGIN, WITHIN, first_contact
from radp.rules.red_light import RedLight
from radp.rules.rulebook import tier_of

NOTHING = 0.01  # cost up to which a rule asks for nothing
MOST = 0.5  # m/s2 that twice the weight may ask for
GENTLE = {"comfort": 0.25, "goal": 0.1}  # the same of rules that press nearly everywhere: a learner pushes blindly
MOST_IN_ALL = 2.0  # m/s2 of all rules together
SHARES = (1.0, 0.5, 0.25)  # of the pushes of other rules than collision, until they do no harm
DEARER = 1.1  # times as much as a rule of a higher tier may cost afterwards
COLLISION = "collision"


def pushes_of(plan: Tensor, contexts: Sequence[RuleContext], rules: Sequence[Rule], steer: Sequence[str]) -> Tensor:
    """Plans (B, H, 4) -> knots (B, M, 9, 2) [m/s2] that halve the cost of each rule, the mean over the contexts.

    Rules of `steer` may also push to the side.
    """
    found = plan.new_zeros(len(plan), len(rules), KNOTS, 2)
    for context in contexts:
        with torch.no_grad():
            costs = rule_costs(plan, context, rules)
        for i, rule in enumerate(rules):
            rows = (costs[:, i] > NOTHING).nonzero().squeeze(1)
            if len(rows):
                some, now, start = plan[rows], context.rows(rows), plan.new_zeros(len(rows), 2)
                way = descent(some, now, rule, start, rule.name in steer)
                size = amplitude_of(some, now, rule, start, way).clamp(max=GENTLE.get(rule.name, MOST))
                found[rows, i] += size[:, None, None] * way / len(contexts)
    return found


@torch.no_grad()
def give_way(
    plan: Tensor, pushes: Tensor, log_weights: Tensor, contexts: Sequence[RuleContext], rules: Sequence[Rule]
) -> Tensor:
    """Plans (B, H, 4), pushes (B, M, 9, 2), log-weights (B, M) -> the plans (B, H, 4) that these weights ask for.

    The contact of a plan is up to the weight of collision alone. The other rules push only as far as nobody is met whom
    the plan would not meet without them, no red light is passed, and no rule of a higher tier, if it has its usual
    weight, costs more.
    """
    knots = (log_weights / math.log(2.0))[:, :, None, None] * pushes
    safety = torch.tensor([rule.name == COLLISION for rule in rules])
    first, others = knots[:, safety].sum(1), knots[:, ~safety].sum(1)
    guards, guarded = (*rules, RedLight()), _guarded(log_weights, rules)
    made = pushed(plan, first.clamp(-MOST_IN_ALL, MOST_IN_ALL))
    meets, bounds = _meets(made, contexts), [DEARER * rule_costs(made, one, guards) + NOTHING for one in contexts]
    rows = torch.arange(len(plan))
    for share in SHARES:
        trial = pushed(plan[rows], (first + share * others)[rows].clamp(-MOST_IN_ALL, MOST_IN_ALL))
        now = [context.rows(rows) for context in contexts]
        fits = meets[rows] | ~_meets(trial, now)
        for context, bound in zip(now, bounds):
            fits &= ((rule_costs(trial, context, guards) <= bound[rows]) | ~guarded[rows]).all(1)
        made[rows[fits]] = trial[fits]
        rows = rows[~fits]
        if not len(rows):
            break
    return made


def _guarded(log_weights: Tensor, rules: Sequence[Rule]) -> Tensor:
    """(B, M) -> (B, M + 1) bool: rules of their usual weight above the lowest tier of the others; the red light always.

    Contact is not left to the cost of collision, which also asks for distance.
    """
    tiers = torch.tensor([tier_of(rule.name) for rule in rules])
    changed = log_weights != 0
    lowest = torch.where(changed, tiers, -1).amax(1, keepdim=True)
    kept = ~changed & (tiers < lowest) & torch.tensor([rule.name != COLLISION for rule in rules])
    return torch.cat((kept, torch.ones_like(kept[:, :1])), 1)


def _meets(plan: Tensor, contexts: Sequence[RuleContext]) -> Tensor:
    """(B,) bool: within 0.3 m of somebody within 4 s, in any of the contexts."""
    return torch.stack([first_contact(plan, context, MARGIN) <= WITHIN for context in contexts]).any(0)
