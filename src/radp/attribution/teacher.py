"""The exact teacher: the gradient of each rule's cost with respect to the plan is that rule's pressure (Eq. 8, 9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from radp.attribution.calibration import Calibration
from radp.rules import Rule, RuleContext, needs_road, rule_set
from radp.rules.costs import RulePass, rule_pass
from radp.scene.builder import RULES_ALONE, build_scenes
from radp.scene.scene import Scene
from radp.sim.observation import Observation
from radp.sim.plan import Plan

SEAM = 3  # first steps of a plan: their differences reach back to the state now, those of later steps do not


@dataclass(frozen=True)
class Attribution:
    """B plans of H steps, M rules, N other objects (agents of the scene, then static objects).

    >>> now = radp.observe(radp.open_split("sumo14-val")[:2])
    >>> plan = radp.load_planner("constant_velocity").plan(now)
    >>> why = radp.attribute(plan, now)
    >>> tuple(why.per_step.shape), tuple(why.dominant.shape)
    ((2, 6, 80), (2,))
    """

    rules: tuple[str, ...]
    pressure: Tensor  # (B, M) calibrated, at least 0
    gradient_norm: Tensor  # (B, M) root mean square over all H * 4 values of the plan
    per_step: Tensor  # (B, M, H) the same over the 4 values of each step: gradient_norm^2 is the mean of its square
    direction: Tensor  # (B, M, H, 4) minus the gradient: where the rule would move the plan
    cost: Tensor  # (B, M) J_i
    agent_share: Tensor  # (B, N) share of each object in the collision cost; zeros where that cost is 0
    calibrated: bool  # all of the rules are
    tracks: Tensor | None = None  # (B, N) the track that each object is, -1: nobody; None: the scene does not say

    @property
    def step_share(self) -> Tensor:
        """(B, M, H) share of each step in the squared gradient: it sums to one, or is 0 where nothing presses."""
        squares = self.per_step.square()
        return squares / squares.sum(-1, keepdim=True).clamp(min=torch.finfo(squares.dtype).tiny)

    @property
    def seam_share(self) -> Tensor:
        """(B, M) share of the seam, steps 1 to 3: what presses there is how the plan begins, not where it leads."""
        return self.step_share[..., :SEAM].sum(-1)

    @property
    def dominant(self) -> Tensor:
        """(B,) index of the rule that presses most."""
        return self.pressure.argmax(-1)


def attribute(
    plan: Plan | Tensor,
    scene: Observation | Scene | RuleContext,
    predictions: Tensor | None = None,
    calibration: Calibration | None = None,
    rules: Sequence[Rule] | None = None,
) -> Attribution:
    """Explain any planner's plan, or its trajectory (B, H, 4): x, y, cos, sin of the rear axle, ego frame, 0.1 s.

    `scene` is what the planner saw: the observation itself, or scenes. `predictions` (B, K, H, 4) are the planner's own
    forecasts of the first K agents of the scene, if not those of the plan; without any, all keep their velocity. Needs
    no model. `rules`: those of the calibration's set, or the paper's, if not given. The calibration is looked up by the
    rules' names; pressures of rules without one are not comparable with others.

    >>> now = radp.observe(radp.open_split("sumo14-val")[:1], step=20)
    >>> plan = radp.load_planner("constant_velocity").plan(now)
    >>> radp.attribute(plan, now).rules
    ('collision', 'lane', 'speed', 'kinematics', 'comfort', 'goal')
    """
    calibration = calibration or Calibration.none()
    rules = tuple(rules or rule_set(calibration.rule_set))
    trajectory, context = on_rules_terms(plan, scene, predictions, road=needs_road(rules))
    once = rule_pass(trajectory, context, rules)
    names = tuple(rule.name for rule in rules)
    if calibration.is_fitted and not set(calibration.rules) & set(names):
        raise ValueError(f"the calibration is for {', '.join(calibration.rules)}, the rules are {', '.join(names)}")
    scale = calibration.of_rules(names)
    squares = once.gradient.square()
    norm = squares.mean((2, 3)).sqrt()
    return Attribution(
        rules=names,
        pressure=scale.pressure(norm),
        gradient_norm=norm,
        per_step=squares.mean(3).sqrt(),
        direction=-once.gradient,
        cost=once.cost,
        agent_share=_agent_share(once, trajectory.new_zeros(len(trajectory), context.agents.shape[1])),
        calibrated=all(scale.known),
        tracks=context.tracks,
    )


def on_rules_terms(
    plan: Plan | Tensor,
    scene: Observation | Scene | RuleContext,
    predictions: Tensor | None = None,
    expert_target: bool = False,
    road: bool = False,
) -> tuple[Tensor, RuleContext]:
    """Trajectories (B, H, 4) at 0.1, 0.2, ... s, and the context in which rules judge them.

    With `expert_target` the goal asks for the end of the ego's future in the scene. `road`: an observation is shown
    with what the rules of the road look at.
    """
    tracks = None
    if isinstance(plan, Plan):
        if predictions is None:
            predictions, tracks = plan.predictions, plan.predicted_tracks
        plan = plan.on_grid().to(torch.float32)
    if isinstance(scene, Observation):
        scene = build_scenes(scene, replace(RULES_ALONE, road=road))
    if isinstance(scene, Scene):
        horizon = plan.shape[1]
        scene = RuleContext.from_scene(scene, predictions, tracks, expert_target=expert_target, horizon=horizon)
    return plan, scene


def part_pressure(pressure: Tensor, share: Tensor) -> Tensor:
    """Pressure of a part that has this share of the squared gradient, any shape: log(1 + g sqrt(share) / kappa)."""
    return torch.log1p(torch.expm1(pressure) * share.sqrt())


def _agent_share(once: RulePass, nobody: Tensor) -> Tensor:
    """(B, N) share in the collision cost; `nobody` (B, N) zeros where that rule is not among them."""
    parts = once.agent_cost.get("collision", nobody)
    return parts / parts.sum(-1, keepdim=True).clamp(min=torch.finfo(parts.dtype).tiny)
