"""A planner whose plans are pushed down (or up, or anywhere) in control space where one rule presses."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from radp.attribution.calibration import Calibration
from radp.attribution.control import KNOTS, accelerations, amplitude_of, begin, descent, pushed, unit_knots
from radp.attribution.online import plan_and_scene
from radp.attribution.teacher import attribute, on_rules_terms
from radp.rules import RuleContext, rule_set
from radp.rules.sets import PAPER
from radp.scenario import Scenario
from radp.sim.observation import Observation
from radp.sim.plan import STEP_SECONDS, Plan
from radp.sim.planner import Planner, start_planner

HORIZON = 80
FADE = 1.0  # s in which a push ends
Way = Literal["down", "up", "random"]


@dataclass(frozen=True)
class Push:
    """Accelerations that are being added to the plans of one drive."""

    knots: Tensor  # (9, 2)
    begun: int  # step of the drive
    until: float  # s after that
    fades: bool = False  # what is left of a push whose time is over

    def elapsed(self, step: int) -> float:
        return STEP_SECONDS * (step - self.begun)

    def now(self, step: int) -> Tensor:
        """(2,) what was added in the step that led here."""
        elapsed = torch.tensor([self.elapsed(step) - STEP_SECONDS], dtype=self.knots.dtype)
        return accelerations(self.knots[None], elapsed, 1)[0, 0]


class NudgedPlanner:
    """Plans of `planner`, pushed where the pressure of `rule` is above `threshold`, and on for `window` seconds.

    down: along the descent of the rule's cost, as strongly as halves it; up: as strongly the other way; random: as
    strongly in a direction that is drawn once for each drive. Pushes begin and end without a jump of acceleration.
    """

    def __init__(
        self,
        planner: Planner,
        rule: str,
        threshold: float,
        way: Way = "down",
        calibration: Calibration | None = None,
        window: float = 2.0,
        sideways: bool = True,
    ) -> None:
        self.planner, self.threshold, self.way, self.calibration = planner, threshold, way, calibration
        self.window, self.sideways = window, sideways
        self.name = f"{planner.name} pushed {way} by {rule}"
        rules = {one.name: one for one in rule_set(calibration.rule_set if calibration is not None else PAPER)}
        if rule not in rules:
            raise ValueError(f"no rule {rule!r}; expected one of {', '.join(rules)}")
        self.rule = rules[rule]
        self._pushes: dict[str, Push] = {}

    def start(self, scenarios: Sequence[Scenario]) -> None:
        self._pushes = {}
        start_planner(self.planner, scenarios)

    def plan(self, observation: Observation) -> Plan:
        plan, scene = plan_and_scene(self.planner, observation, self.rule.asks_road)
        trajectory, context = on_rules_terms(plan, scene)
        why = attribute(trajectory, context, None, self.calibration, [self.rule])
        tokens = [briefing.token for briefing in observation.briefings]
        self._go_on(tokens, observation.step)
        presses = why.pressure[:, 0] > self.threshold
        if bool(presses.any()):
            self._push(trajectory, context, presses, tokens, observation.step)
        rows = [row for row, token in enumerate(tokens) if token in self._pushes]
        # Plans with times of their own keep them unless they are moved, so that an untouched drive stays the same.
        if not rows:
            return plan
        pushes = [self._pushes[tokens[row]] for row in rows]
        knots = torch.stack([push.knots for push in pushes])
        elapsed = torch.tensor([push.elapsed(observation.step) for push in pushes], dtype=knots.dtype)
        as_it_is = plan.times is None and plan.trajectory.shape[1] == HORIZON
        moved = (plan.trajectory if as_it_is else trajectory).clone()
        moved[rows] = pushed(trajectory[rows], knots, elapsed).to(moved)
        reference = plan.reference.clone() if plan.reference is not None and as_it_is else None
        if reference is not None:  # the controller follows this, so it must be pushed as well
            reference[rows] = pushed(reference[rows].to(trajectory), knots, elapsed).to(reference)
        return replace(plan, trajectory=moved, reference=reference, times=None)

    def _go_on(self, tokens: Sequence[str], step: int) -> None:
        """Pushes whose time is over fade out, and end."""
        for token in tokens:
            push = self._pushes.get(token)
            if push is None or push.elapsed(step) < push.until:
                continue
            del self._pushes[token]
            if not push.fades:
                self._pushes[token] = Push(begin(push.now(step)[None])[0], step, FADE, fades=True)

    def _push(
        self, trajectory: Tensor, context: RuleContext, presses: Tensor, tokens: Sequence[str], step: int
    ) -> None:
        """Begin a push for each plan that the rule presses on, from the acceleration that was added before."""
        rows = presses.nonzero()[:, 0]
        plans, scenes = trajectory[rows], context.rows(rows)
        mine = [tokens[int(row)] for row in rows]
        start = torch.stack([self._pushes[t].now(step) if t in self._pushes else torch.zeros(2) for t in mine])
        direction = descent(plans, scenes, self.rule, start, self.sideways)
        size = amplitude_of(plans, scenes, self.rule, start, direction)[:, None, None]
        if self.way == "random":
            there = direction.abs().amax((1, 2), keepdim=True)
            direction = torch.cat([self._drawn(token) for token in mine]) * there
        knots = begin(start) + (-size if self.way == "up" else size) * direction
        for token, one in zip(mine, knots):
            self._pushes[token] = Push(one, step, self.window)

    def _drawn(self, token: str) -> Tensor:
        """(1, 9, 2) the random direction of a drive."""
        generator = torch.Generator().manual_seed(zlib.crc32(f"{token} {self.rule.name}".encode()))
        return unit_knots(torch.randn(1, KNOTS, 2, generator=generator), self.sideways)
