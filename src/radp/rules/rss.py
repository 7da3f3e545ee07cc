"""RSS: a safe distance ahead or a safe distance aside, after Shalev-Shwartz et al. and ad-rss-lib."""

from __future__ import annotations

import torch
from torch import Tensor

from radp.rules.body import EGO_WIDTH, FRONT, REAR
from radp.rules.context import RuleContext
from radp.rules.rule import AgentRule
from radp.rules.surroundings import PathFrame, PlanSurroundings

RESPONSE = 1.0  # rho [s]
ACCELERATION = 3.5  # of the ego while it responds [m/s2]
BRAKE_MIN, BRAKE_MAX = 4.0, 8.0  # of the ego and of the one ahead [m/s2]
SIDE_ACCELERATION, SIDE_BRAKE = 0.2, 0.8  # m/s2
SIDE_MARGIN = 0.1  # mu [m]
SHARPNESS = 4.0  # 1/m, of the soft minimum


def gaps(trajectory: Tensor, around: PlanSurroundings) -> tuple[Tensor, Tensor, Tensor]:
    """(B, H, N) metres: from the ego's front to each other's rear, from its rear to its front, and aside.

    Along the ego's own path, which is held fixed. Differentiable in the plan.
    """
    path = around.path
    moved = trajectory[..., :2] - around.plan[..., :2]
    ego_along = path.ego_along + (moved * path.tangent).sum(-1)
    ego_across = path.ego_across + path.tangent[..., 0] * moved[..., 1] - path.tangent[..., 1] * moved[..., 0]
    along, across = (_steps(value) for value in (path.along, path.across))
    ahead = along - _steps(path.reach_along) - (ego_along + FRONT).unsqueeze(2)
    behind = (ego_along - REAR).unsqueeze(2) - along - _steps(path.reach_along)
    aside = (across - ego_across.unsqueeze(2)).abs() - _steps(path.reach_across) - EGO_WIDTH / 2
    return ahead, behind, aside


def _steps(value: Tensor) -> Tensor:
    """(B, N, T) -> (B, H, N): without now."""
    return value[:, :, 1:].transpose(1, 2)


class Rss(AgentRule):
    """z = softmin of what is missing ahead and of what is missing aside.

    Ahead: [v rho + a rho^2 / 2 + (v + a rho)^2 / (2 b_min) - v_lead^2 / (2 b_max)]+ - gap. Aside: the stopping paths
    of both towards each other + mu - gap; the ego drives along its own path and has no speed aside. Who is wholly
    behind does not count, and traffic that comes towards the ego counts as standing.
    """

    name, unit, scale, weight = "rss", "m", 2.0, 1.0
    describes = "the safe distance"
    asks_motion = True

    def agent_violation(self, trajectory: Tensor, context: RuleContext) -> tuple[Tensor, Tensor]:
        ahead, aside, matters = self._missing(trajectory, context)
        return -torch.logaddexp(-SHARPNESS * ahead, -SHARPNESS * aside) / SHARPNESS, matters

    def exact_violation(self, trajectory: Tensor, context: RuleContext) -> tuple[Tensor, Tensor]:
        ahead, aside, matters = self._missing(trajectory, context)
        return torch.minimum(ahead, aside), matters

    def kept_words(self, margin: float, whom: str = "", gap: float | None = None) -> str:
        return f"{margin:.1f} m more than the safe distance to {whom}"

    def _missing(self, trajectory: Tensor, context: RuleContext) -> tuple[Tensor, Tensor, Tensor]:
        """Metres that are missing ahead and aside (B, H, N), and who counts (B, H, N)."""
        around = context.around(trajectory)
        path = around.path
        ahead, behind, aside = gaps(trajectory, around)
        speed = context.motion(trajectory).speed.unsqueeze(2)
        lead = _steps(path.speed_along).clamp(min=0)
        after = speed + ACCELERATION * RESPONSE
        needed = speed * RESPONSE + ACCELERATION * RESPONSE**2 / 2 + after.square() / (2 * BRAKE_MIN)
        needed = (needed - lead.square() / (2 * BRAKE_MAX)).clamp(min=0)
        towards = -_steps(path.speed_across) * self._side(path)
        needed_aside = stopping_aside(towards) + stopping_aside(torch.zeros_like(towards)) + SIDE_MARGIN
        return needed - ahead, needed_aside - aside, _steps(path.valid) & (behind < 0)

    def _side(self, path: PathFrame) -> Tensor:
        """(B, H, N) 1 where the other is to the left of the ego, -1 to the right."""
        return torch.where(_steps(path.across) >= path.ego_across.unsqueeze(2), 1.0, -1.0)


def stopping_aside(towards: Tensor) -> Tensor:
    """Speed towards the other -> metres until it is stopped aside, after one response time. Any shape."""
    responding = (towards + SIDE_ACCELERATION * RESPONSE / 2).clamp(min=0) * RESPONSE
    return responding + (towards + SIDE_ACCELERATION * RESPONSE).clamp(min=0).square() / (2 * SIDE_BRAKE)
