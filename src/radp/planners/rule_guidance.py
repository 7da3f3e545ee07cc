"""Guidance by the driving rules: while a plan is denoised, every rule pulls it towards a lower cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from radp.rules import Rule, RuleContext, registered_rules, rule_costs
from radp.scene.scene import Scene

STRENGTH = 0.1


@dataclass(frozen=True)
class RuleGuidance:
    """B scenes; call with trajectories (C, 1 + N, 81, 4) in metres, C a multiple of B (samples of a scene in a row).

    The energy is minus the weighted sum of the rules' costs, in the scene as the model sees it. Neighbours are taken
    where the model predicts them now. `weights` by name take the place of the rules' own.
    """

    scene: Scene
    rules: tuple[Rule, ...]
    strength: float = STRENGTH
    weights: Mapping[str, float] = field(default_factory=dict)

    def __call__(self, trajectories: Tensor, time: float) -> Tensor:
        """-> (C, 1 + N, 81, 4): gradient of the energy; only the ego's future has one."""
        gradient = torch.zeros_like(trajectories)
        gradient[:, 0, 1:] = -self.strength * self._gradient(trajectories)
        return gradient

    def _gradient(self, trajectories: Tensor) -> Tensor:
        """-> (C, 80, 4) of the weighted sum of costs by the ego's plan."""
        with torch.inference_mode(False), torch.enable_grad():
            states = trajectories.clone().detach()
            plan = states[:, 0, 1:].requires_grad_()
            scene = self.scene.repeat_interleave(len(states) // len(self.scene))
            context = RuleContext.from_scene(scene, states[:, 1:, 1:], horizon=plan.shape[1])
            weights = plan.new_tensor([self.weights.get(rule.name, rule.weight) for rule in self.rules])
            cost = (rule_costs(plan, context, self.rules) * weights).sum()
            return torch.autograd.grad(cost, plan)[0]


def rule_guidance(
    rules: Sequence[Rule] | None = None, strength: float = STRENGTH, weights: Mapping[str, float] | None = None
) -> Callable[[Scene, int], RuleGuidance]:
    """For `DiffusionPlanner(guidance=...)`: these rules, or all that are registered when it is asked."""
    return lambda scene, neighbours: RuleGuidance(
        replace(scene, rules=None), tuple(rules or registered_rules()), strength, weights or {}
    )
