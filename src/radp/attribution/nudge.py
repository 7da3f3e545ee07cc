"""A planner whose plans are moved a small step down (or up) the gradient of one rule, where that rule presses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from radp.attribution.calibration import Calibration
from radp.attribution.online import plan_and_scene
from radp.attribution.teacher import attribute, on_rules_terms
from radp.rules import default_rules
from radp.scenario import Scenario
from radp.sim.observation import Observation
from radp.sim.plan import Plan
from radp.sim.planner import Planner, start_planner

HEADING_LENGTH = 3.0  # m: a turn of 0.1 rad counts as much as a shift of 0.3 m
SMOOTHING = 5.0  # steps: a gradient that sits in one step would ask for a jump
HORIZON = 80


def step_along(trajectory: Tensor, direction: Tensor, size: float) -> Tensor:
    """trajectory and direction (B, H, 4) -> plans moved along the direction, smoothed over time; at most `size` m.

    Smoothing with a positive kernel and weighing headings keep a descent direction one. A zero direction moves nothing.
    """
    steps = torch.arange(trajectory.shape[1], dtype=trajectory.dtype)
    kernel = torch.exp(-((steps[:, None] - steps) ** 2) / (2 * SMOOTHING**2))
    length = direction.new_tensor([1.0, 1.0, HEADING_LENGTH, HEADING_LENGTH])
    smooth = kernel @ (direction / length**2)
    farthest = (smooth * length).norm(dim=-1).amax(-1)[:, None, None]
    moved = trajectory + size * smooth / farthest.clamp(min=torch.finfo(smooth.dtype).tiny)
    heading = torch.nn.functional.normalize(moved[..., 2:], dim=-1)
    return torch.where(farthest > 0, torch.cat((moved[..., :2], heading), -1), trajectory)


class NudgedPlanner:
    """Plans of `planner`, moved where the pressure of `rule` is above `threshold`; size < 0 goes up the gradient."""

    def __init__(
        self, planner: Planner, rule: str, threshold: float, size: float, calibration: Calibration | None = None
    ) -> None:
        self.planner, self.rule, self.threshold, self.size = planner, rule, threshold, size
        self.name = f"{planner.name} nudged by {rule}"
        self._rules = [one for one in default_rules() if one.name == rule]
        if not self._rules:
            raise ValueError(f"no rule {rule!r}; expected one of {', '.join(one.name for one in default_rules())}")
        self.calibration = calibration

    def start(self, scenarios: Sequence[Scenario]) -> None:
        start_planner(self.planner, scenarios)

    def plan(self, observation: Observation) -> Plan:
        plan, scene = plan_and_scene(self.planner, observation)
        trajectory, context = on_rules_terms(plan, scene)
        why = attribute(trajectory, context, None, self.calibration, self._rules)
        moved = step_along(trajectory, why.direction[:, 0], self.size)
        presses = (why.pressure[:, 0] > self.threshold)[:, None, None]
        if plan.times is None and plan.trajectory.shape[1] == HORIZON:
            return replace(plan, trajectory=torch.where(presses, moved.to(plan.trajectory), plan.trajectory))
        # Plans with times of their own keep them unless they are moved, so that an untouched drive stays the same.
        if not bool(presses.any()):
            return plan
        return replace(plan, trajectory=torch.where(presses, moved, trajectory), times=None)
