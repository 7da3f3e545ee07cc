"""What a plan trades: the rule of a lower tier that it gives up, and the rule of a higher one that it keeps by that.

That it is a trade is tried, not guessed: the plan is pushed until it keeps the lower rule, by accelerations as a car
has them (`attribution.control`). Only if the pushed plan breaks the higher rule was the one given up for the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor

from radp.attribution.control import KNOTS, descent, pushed
from radp.geometry.boxes import separation_of
from radp.rules import Rule, RuleContext
from radp.rules.body import EGO_LENGTH, EGO_WIDTH, REAR_TO_CENTER, shifted
from radp.rules.motion import unit_heading, with_origin
from radp.rules.rulebook import TIERS, tier_name, tier_of

PUSHES = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0)  # m/s2, the largest of the accelerations that are added
NEAR = 4.0  # scales of a rule: what the plan keeps by more than that is not what holds it
BEYOND = 10.0  # m after the end of a plan's path, where a pushed plan goes straight on, that still count
ASIDE = ("lane", "drivable", "oncoming")  # rules that a plan which is only faster on its path cannot break


@dataclass(frozen=True)
class Trade:
    """Both amounts are measured on the plan itself, in the unit of their rule."""

    gives_up: str  # the rule of the lower tier
    given: float  # by how much the plan breaks it
    keeps: str  # the rule of the higher tier
    margin: float  # what is left before the plan breaks that one
    push: float  # m/s2 with which the plan would keep the lower rule
    breaks: float  # by how much it would then break the higher one
    track: int = -1  # rules about others: whom it keeps it to; -1: nobody, or not known
    gap: float | None = None  # m, the least between the two boxes along the plan

    def words(self, rules: Sequence[Rule], whom: str = "") -> str:
        """The plan gives up 3.0 m of progress along the route to keep 0.4 m to bicycle 7."""
        known = {rule.name: rule for rule in rules}
        lost, kept = known[self.gives_up], known[self.keeps]
        amount = f"{self.given:.1f} {lost.unit}"
        gives = (
            f"gives up {amount} of {lost.describes}" if lost.name == "goal" else f"breaks {lost.describes} by {amount}"
        )
        named = whom or ("" if self.gap is None else "somebody")
        return f"the plan {gives} to keep {kept.kept_words(self.margin, named, self.gap)}"

    def to_json(self) -> dict[str, Any]:
        tiers = {"gives_up_tier": tier_name(tier_of(self.gives_up)), "keeps_tier": tier_name(tier_of(self.keeps))}
        rounded = {k: round(v, 4) if isinstance(v, float) else v for k, v in asdict(self).items() if k != "track"}
        return {**rounded, **tiers}


@torch.no_grad()
def trades_of(plans: Tensor, context: RuleContext, rules: Sequence[Rule]) -> list[Trade | None]:
    """Plans (B, H, 4) -> what each trades, None where it trades nothing: of the rules that it breaks, the one of the
    lowest tier that it breaks for a higher one."""
    found: list[Trade | None] = [None] * len(plans)
    if not len(plans):
        return found
    bound = _bound(plans, context, rules)
    now = torch.stack([rule.violation(plans, bound).amax(-1) for rule in rules], 1)  # (B, M)
    for lost in sorted(rules, key=lambda rule: -tier_of(rule.name)):
        broken = now[:, rules.index(lost)] > 0
        rows = torch.tensor([b for b, one in enumerate(found) if one is None and broken[b]], dtype=torch.long)
        above = [rule for rule in rules if tier_of(rule.name) < tier_of(lost.name)]
        above = [rule for rule in above if lost.name not in TIERS[-1] or rule.name not in ASIDE]
        if not len(rows) or not above:
            continue
        push, moved = obeying(plans[rows], context.rows(rows), lost)
        helped = push > 0
        rows, push, moved = rows[helped], push[helped], moved[helped]
        kept = best_kept(plans[rows], moved, context.rows(rows), above) if len(rows) else []
        for b, size, best in zip(rows.tolist(), push.tolist(), kept):
            if best is not None:
                found[b] = replace(best, gives_up=lost.name, given=float(now[b, rules.index(lost)]), push=size)
    return found


def _bound(plans: Tensor, context: RuleContext, rules: Sequence[Rule]) -> RuleContext:
    return context.bind(plans, corners=any(rule.asks_corners for rule in rules))


def obeying(plans: Tensor, context: RuleContext, rule: Rule) -> tuple[Tensor, Tensor]:
    """The least push [m/s2] (B,) with which each plan keeps the rule, 0 where none does, and the plan so pushed."""
    direction = _way(plans, context, rule)
    count = len(PUSHES)
    sizes = plans.new_tensor(PUSHES)
    knots = (sizes[:, None, None] * direction[:, None]).flatten(0, 1)
    tried = pushed(plans.repeat_interleave(count, 0), knots)
    there = _bound(tried, context.repeat_interleave(count), [rule])
    kept = (rule.violation(tried, there).amax(-1) <= 0).view(-1, count)
    first = kept.int().argmax(1)
    chosen = tried.view(-1, count, *plans.shape[1:])[torch.arange(len(plans)), first]
    return torch.where(kept.any(1), sizes[first], 0.0), chosen


def _way(plans: Tensor, context: RuleContext, rule: Rule) -> Tensor:
    """Knots (B, 9, 2) of the push: evenly faster along the plan's own path for rules of progress, else where the rule's
    cost falls fastest."""
    if rule.name not in TIERS[-1]:
        return descent(plans, context, rule, plans.new_zeros(len(plans), 2), sideways=True)
    faster = plans.new_zeros(len(plans), KNOTS, 2)
    faster[:, 1:, 0] = 1.0
    return faster


def best_kept(plans: Tensor, moved: Tensor, context: RuleContext, rules: Sequence[Rule]) -> list[Trade | None]:
    """For each plan (B, H, 4) the highest of the rules that it just keeps and that the pushed plan breaks; what it
    gives up for that is not filled in."""
    far = travelled(moved) > travelled(plans)[:, -1:] + BEYOND  # (B, H)
    before, after = _bound(plans, context, rules), _bound(moved, context, rules)
    best: list[tuple[tuple[int, float], Trade] | None] = [None] * len(plans)
    for rule in rules:
        theirs, mine = rule.agent_violations(moved, after), rule.agent_violations(plans, before)
        about_others = theirs is not None
        if theirs is None or mine is None:
            theirs, mine = (rule.violation(p, c).unsqueeze(2) for p, c in ((moved, after), (plans, before)))
        if not theirs.shape[2]:
            continue
        breaks, who = theirs.masked_fill(far.unsqueeze(2), -torch.inf).amax(1).max(-1)  # (B,) of whoever is hurt most
        margins = -mine.amax(1).gather(1, who.unsqueeze(1)).squeeze(1)
        for b in ((breaks > 0) & (margins >= 0) & (margins <= NEAR * rule.scale)).nonzero()[:, 0].tolist():
            order = (tier_of(rule.name), -float(breaks[b]) / rule.scale)
            standing = best[b]
            if standing is None or order < standing[0]:
                one = Trade("", 0.0, rule.name, float(margins[b]), 0.0, float(breaks[b]))
                if about_others:
                    one = _with_whom(one, plans[b : b + 1], context.rows(torch.tensor([b])), int(who[b]))
                best[b] = order, one
    return [None if one is None else one[1] for one in best]


def travelled(plans: Tensor) -> Tensor:
    """(B, H, 4) -> (B, H) metres along each plan."""
    return torch.diff(with_origin(plans)[..., :2], dim=1).norm(dim=-1).cumsum(1)


def _with_whom(trade: Trade, plan: Tensor, context: RuleContext, row: int) -> Trade:
    track = -1 if context.tracks is None else int(context.tracks[0, row])
    return replace(trade, track=track, gap=least_gap(plan, context, row))


def least_gap(plan: Tensor, context: RuleContext, row: int) -> float:
    """Metres between the boxes of the ego along its plan (1, H, 4) and of object `row`, the least of them."""
    steps = plan.shape[1]
    other = context.agents[0, row, 1 : steps + 1].to(plan.dtype)
    ego = torch.cat((shifted(plan, REAR_TO_CENTER), unit_heading(plan)), -1)[0]
    size = context.agent_size[0, row].to(plan.dtype).expand(steps, 2)
    gaps = separation_of(ego, plan.new_tensor([EGO_LENGTH, EGO_WIDTH]), other, size)
    return float(gaps[context.agent_valid[0, row, 1 : steps + 1]].min())
