"""What a rule is, and the registry that serves it as loss, guidance, pressure, report row and overlay."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from radp.rules.context import RuleContext
from radp.rules.penalty import Term, mean_penalties, penalty


class Rule(ABC):
    """One driving rule on plans (B, H, 4) = x, y, cos, sin of the rear axle, ego frame, physical units, 0.1 s.

    `cost` is differentiable in the plan; gates and matches inside it are held fixed (no gradient through them).

    >>> class Slow(radp.Rule):
    ...     name, unit, scale, weight, describes = "slow", "m/s", 1.0, 1.0, "walking pace"
    ...     def violation(self, trajectory, context):
    ...         return context.motion(trajectory).speed - 2.0
    ...     def cost(self, trajectory, context):
    ...         return self.penalty(self.violation(trajectory, context)).mean(-1)
    >>> now = radp.observe(radp.open_split("sumo14-val")[:1])
    >>> plan = radp.load_planner("constant_velocity").plan(now)
    >>> why = radp.attribute(plan, now, rules=[Slow()])
    >>> why.rules, tuple(why.pressure.shape)
    (('slow',), (1, 1))
    """

    name: ClassVar[str]
    unit: ClassVar[str]  # of the violation
    scale: ClassVar[float]  # sigma, in that unit
    weight: ClassVar[float]  # w_i in the alignment loss
    describes: ClassVar[str]  # what is violated, for reports: "clearance", "lane boundary", ...
    asks_motion: ClassVar[bool] = False  # whether `context.motion` is asked: it is then made once for all such rules
    asks_corners: ClassVar[bool] = False  # whether `context.corner_match` is asked, too
    asks_road: ClassVar[bool] = False  # whether `context.road` is asked: scenes are then built with it

    @property
    def constants(self) -> dict[str, Any]:
        """What this instance does otherwise than the defaults of its class: name -> value."""
        if not is_dataclass(self):
            return {}
        values = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}
        return {name: value for name, (value, default) in values.items() if value != default}

    @abstractmethod
    def cost(self, trajectory: Tensor, context: RuleContext) -> Tensor:
        """J_i (B,), at least 0."""

    def penalty(self, violation: Tensor) -> Tensor:
        """phi(z; sigma) with the rule's own scale: about max(0, z / sigma)^2, smooth at zero. Any shape."""
        return penalty(violation, self.scale)

    def agent_terms(self, trajectory: Tensor, context: RuleContext) -> Tensor | None:
        """(B, H, N) terms whose sum is the cost, for rules about other road users; None for all others."""
        return None

    def agent_costs(self, trajectory: Tensor, context: RuleContext) -> Tensor | None:
        """(B, N) part of each other road user in the cost; None for all other rules."""
        terms = self.agent_terms(trajectory, context)
        return None if terms is None else terms.sum(1)

    def agent_violations(self, trajectory: Tensor, context: RuleContext) -> Tensor | None:
        """(B, H, N) the violation of each other road user, -inf where it does not matter; None for all other rules."""
        return None

    def kept_words(self, margin: float, whom: str = "", gap: float | None = None) -> str:
        """What a plan keeps that is `margin` from breaking the rule, such as "0.4 m to bicycle 7".

        For rules about others: `whom` it keeps it to, and the least `gap` between the two boxes along the plan [m].
        """
        return f"{self.describes}{f' to {whom}' if whom else ''} by {margin:.1f} {self.unit}"

    @abstractmethod
    def violation(self, trajectory: Tensor, context: RuleContext) -> Tensor:
        """(B, H): signed local violation in `unit`, positive where the rule is broken, -inf where it does not apply."""

    def violated(self, trajectory: Tensor, context: RuleContext) -> Tensor:
        """(B,) bool: the exact verdict on the whole plan."""
        return (self.violation(trajectory, context) > 0).any(-1)


class PenaltyRule(Rule):
    """A rule whose cost is a sum of mean penalties over the steps; those of all such rules are computed together."""

    @abstractmethod
    def terms(self, trajectory: Tensor, context: RuleContext) -> list[Term]:
        """What is summed."""

    def cost(self, trajectory: Tensor, context: RuleContext) -> Tensor:
        return mean_penalties(self.terms(trajectory, context)).sum(0)


class AgentRule(Rule):
    """A rule about other road users: at each step the one counts that breaks it most.

    J = mean over the steps at which somebody matters of phi(max over them of z); exactly 0 where nobody does.
    """

    @abstractmethod
    def agent_violation(self, trajectory: Tensor, context: RuleContext) -> tuple[Tensor, Tensor]:
        """z (B, H, N) of each of the N others, smooth, and whether it matters (B, H, N) bool."""

    def exact_violation(self, trajectory: Tensor, context: RuleContext) -> tuple[Tensor, Tensor]:
        """The same for the verdict, where the smooth one is only near it."""
        return self.agent_violation(trajectory, context)

    def cost(self, trajectory: Tensor, context: RuleContext) -> Tensor:
        return self.agent_terms(trajectory, context).sum((1, 2))

    def agent_terms(self, trajectory: Tensor, context: RuleContext) -> Tensor:
        z, matters = self.agent_violation(trajectory, context)
        if not z.shape[2]:
            return z
        worst = z.detach().masked_fill(~matters, -torch.inf).argmax(-1, keepdim=True)
        some = matters.any(-1, keepdim=True)
        share = some.to(z.dtype) / some.sum(1, keepdim=True).clamp(min=1)
        terms = self.penalty(torch.where(some, z.gather(2, worst), -torch.inf)) * share
        return torch.zeros_like(z).scatter(2, worst, terms)

    def agent_violations(self, trajectory: Tensor, context: RuleContext) -> Tensor:
        z, matters = self.exact_violation(trajectory, context)
        return z.masked_fill(~matters, -torch.inf)

    def violation(self, trajectory: Tensor, context: RuleContext) -> Tensor:
        z = self.agent_violations(trajectory, context)
        return z.amax(-1) if z.shape[2] else torch.full_like(z.sum(2), -torch.inf)


_REGISTRY: dict[str, Rule] = {}


def register_rule(rule: Rule) -> Rule:
    """Add a rule: from now on it is a term of the loss, a pressure, a row of reports. Names are unique.

    >>> class Nothing(radp.Rule):
    ...     name, unit, scale, weight, describes = "nothing", "m", 1.0, 0.0, "nothing at all"
    ...     def violation(self, trajectory, context):
    ...         return trajectory[..., 0] * 0.0
    ...     def cost(self, trajectory, context):
    ...         return self.violation(trajectory, context).mean(-1)
    >>> radp.register_rule(Nothing()).name
    'nothing'
    >>> from radp.rules.rule import registered_rules, unregister_rule
    >>> [rule.name for rule in registered_rules()][-1]
    'nothing'
    >>> unregister_rule("nothing")
    """
    if rule.name in _REGISTRY:
        raise ValueError(f"a rule named {rule.name!r} is registered already")
    _REGISTRY[rule.name] = rule
    return rule


def unregister_rule(name: str) -> None:
    """Take a rule out again."""
    if name not in _REGISTRY:
        raise KeyError(f"no rule named {name!r}; registered: {', '.join(_REGISTRY)}")
    del _REGISTRY[name]


def registered_rules() -> tuple[Rule, ...]:
    """All rules in order of registration; the paper's six come first."""
    default = default_rules()
    return tuple(sorted(_REGISTRY.values(), key=lambda rule: rule not in default))


_DEFAULT: tuple[Rule, ...] = ()


def default_rules() -> tuple[Rule, ...]:
    """The paper's six, in its order: collision, lane, speed, kinematics, comfort, goal."""
    global _DEFAULT
    if not _DEFAULT:
        from radp.rules.collision import Collision
        from radp.rules.comfort import Comfort
        from radp.rules.goal import Goal
        from radp.rules.kinematics import Kinematics
        from radp.rules.lane import Lane
        from radp.rules.speed import Speed

        _DEFAULT = tuple(register_rule(rule()) for rule in (Collision, Lane, Speed, Kinematics, Comfort, Goal))
    return _DEFAULT
