"""Collision: keep the clearance that the closing speed asks for (Eq. 6 and appendix B)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from radp.geometry.boxes import make_boxes, separation
from radp.geometry.frames import heading_vector, shift_forward
from radp.rules.context import EGO_LENGTH, EGO_WIDTH, REAR_TO_CENTER, RuleContext
from radp.rules.motion import STEP, heading_of
from radp.rules.penalty import penalty
from radp.rules.rule import Rule

CLEARANCE = 0.5  # d_0 [m]
HEADWAY = 0.8  # t_head [s]
BRAKING = 4.0  # a_brake [m/s2]
ACTIVE_DISTANCE = 20.0  # m
RISK_TTC = 4.0  # s
ALPHA = 8.0  # sharpness of the softmax over the active terms
MIN_GATE = 0.01  # below this a term is not active
AMPLE = 1.2  # m of clearance beyond the required one: the gate is then below MIN_GATE
_NEAR_WIDTH, _TTC_WIDTH, _CLOSING_WIDTH, _DEFICIT_WIDTH = 0.25, 0.5, 1.0, 0.25  # m, s, m/s, m: softness of the gate
_MISS_WIDTH = 0.25  # m


@dataclass(frozen=True)
class Pairs:
    """The Q pairs (step h, object n) of a batch that are near enough to matter."""

    scene: Tensor  # (Q,) index
    step: Tensor  # (Q,)
    agent: Tensor  # (Q,)
    separation: Tensor  # (Q,) signed box separation [m]
    closing: Tensor  # (Q,) closing speed [m/s], at least 0
    violation: Tensor  # (Q,) required minus actual clearance [m]
    miss: Tensor  # (Q,) clearance with which they pass each other if both go on as they are [m]; no gradient


class Collision(Rule):
    """Softmax-weighted mean over the active (h, n) of gate * phi(d_safe - d_box); exactly 0 when nothing is active."""

    name, unit, scale, weight = "collision", "m", 0.5, 2.5
    describes = "clearance"

    def cost(self, trajectory: Tensor, context: RuleContext) -> Tensor:
        return self.agent_terms(trajectory, context).sum((1, 2))

    def agent_terms(self, trajectory: Tensor, context: RuleContext) -> Tensor:
        """(B, H, N) weighted terms, whose sum is the cost; the gate and the weights carry no gradient."""
        pairs = self.pairs(trajectory, context)
        weight = self._weights(pairs, trajectory, context)
        value = weight * penalty(pairs.violation, self.scale)
        shape = (*trajectory.shape[:2], context.agents.shape[1])
        return trajectory.new_zeros(shape).index_put((pairs.scene, pairs.step, pairs.agent), value)

    def violation(self, trajectory: Tensor, context: RuleContext) -> Tensor:
        """Overlap depth [m]: the verdict is physical contact, not a clearance that is too small."""
        pairs = self.pairs(trajectory, context)
        shape = (*trajectory.shape[:2], context.agents.shape[1] + 1)  # one column more, so that none may be there
        depth = trajectory.new_full(shape, -torch.inf)
        return depth.index_put((pairs.scene, pairs.step, pairs.agent), -pairs.separation).amax(-1)

    def pairs(self, trajectory: Tensor, context: RuleContext) -> Pairs:
        """Candidates by their centres, then separation and closing speed of these only. Differentiable values."""
        ego, agents = _boxes_over_time(trajectory, context)
        scene, step, agent = _candidates(ego, agents, context)
        mine, before = ego[scene, step + 1], ego[scene, step]
        other, other_before = agents[scene, agent, step + 1], agents[scene, agent, step]
        size = context.agent_size.to(ego.dtype)[scene, agent]
        distance = separation(make_boxes(mine, EGO_LENGTH, EGO_WIDTH), make_boxes(other, size[:, 0], size[:, 1]))
        line = other[:, :2] - mine[:, :2]
        line = line / (line.square().sum(-1, keepdim=True) + 1e-12).sqrt()
        relative = ((other - other_before)[:, :2] - (mine - before)[:, :2]) / STEP
        known = context.agent_valid[scene, agent, step]
        closing = (-(relative * line).sum(-1)).clamp(min=0) * known
        safe = CLEARANCE + HEADWAY * closing + closing.square() / (2 * BRAKING)
        miss = _miss_distance(mine, other, size, relative)
        return Pairs(scene, step, agent, distance, closing, safe - distance, miss)

    @torch.no_grad()
    def gate(self, pairs: Pairs) -> Tensor:
        """(Q,) in [0, 1]: near, or about to meet, and short of clearance; 0 beyond 20 m."""
        ttc = pairs.separation.clamp(min=0) / pairs.closing.clamp(min=1e-3)
        near = torch.sigmoid((CLEARANCE - pairs.separation) / _NEAR_WIDTH)
        soon = torch.sigmoid((RISK_TTC - ttc) / _TTC_WIDTH) * (1 - torch.exp(-pairs.closing / _CLOSING_WIDTH))
        meets = torch.sigmoid((CLEARANCE - pairs.miss) / _MISS_WIDTH)
        short = torch.sigmoid(pairs.violation / _DEFICIT_WIDTH)
        gate = torch.maximum(near, soon * meets) * short * (pairs.separation <= ACTIVE_DISTANCE)
        return gate.masked_fill(gate < MIN_GATE, 0.0)

    @torch.no_grad()
    def _weights(self, pairs: Pairs, trajectory: Tensor, context: RuleContext) -> Tensor:
        """(Q,) gate times softmax weight; the softmax is of alpha times the missing share of the required clearance."""
        gate = self.gate(pairs)
        share = (pairs.violation / (pairs.violation + pairs.separation).clamp(min=CLEARANCE)).clamp(0, 1)
        shape = (*trajectory.shape[:2], context.agents.shape[1])
        scores = trajectory.new_full(shape, -torch.inf)
        where = (pairs.scene, pairs.step, pairs.agent)
        scores[where] = torch.where(gate > 0, ALPHA * gate * share, -torch.inf)
        weights = torch.softmax(scores.flatten(1), -1).nan_to_num(0.0).view(shape)
        return weights[where] * gate


@torch.no_grad()
def _miss_distance(mine: Tensor, other: Tensor, size: Tensor, relative: Tensor) -> Tensor:
    """(Q,) gap of the two boxes across the direction of their relative velocity (Q, 2); below 0 they will meet.

    Without relative motion it says nothing: any axis will do, since then nothing closes either.
    """
    across = torch.stack((-relative[:, 1], relative[:, 0]), -1)
    across = across / across.norm(dim=-1, keepdim=True).clamp(min=1e-6)
    offset = ((other - mine)[:, :2] * across).sum(-1).abs()
    return offset - _half_extent(mine, EGO_LENGTH, EGO_WIDTH, across) - _half_extent(other, *size.unbind(-1), across)


def _half_extent(pose: Tensor, length: Tensor | float, width: Tensor | float, axis: Tensor) -> Tensor:
    """(Q, 4) boxes, unit axis (Q, 2) -> (Q,) half the extent of the box along it."""
    along = (pose[:, 2:] * axis).sum(-1).abs()
    beside = (pose[:, 2] * axis[:, 1] - pose[:, 3] * axis[:, 0]).abs()
    return 0.5 * (length * along + width * beside)


def _boxes_over_time(trajectory: Tensor, context: RuleContext) -> tuple[Tensor, Tensor]:
    """Box centres, index 0 now: of the ego (B, H + 1, 4), differentiable, and of the others (B, N, H + 1, 4)."""
    origin = torch.zeros_like(trajectory[:, :1])
    origin[..., 2] = 1.0
    states = torch.cat((origin, trajectory), 1)
    poses = torch.cat((states[..., :2], heading_vector(heading_of(states))), -1)
    return shift_forward(poses, REAR_TO_CENTER), context.agents[:, :, : states.shape[1]].to(trajectory.dtype)


@torch.no_grad()
def _candidates(ego: Tensor, agents: Tensor, context: RuleContext) -> tuple[Tensor, ...]:
    """Scene, step and object (Q,) of all pairs that can have a weight: a wide net of centres, without any boxes.

    Along the best of an ego's axes the centres are at least gap / sqrt(2) apart, so boxes are separated by at least
    that minus both half diagonals; pairs whose clearance is then ample have a gate of 0.
    """
    steps = ego.shape[1]
    apart = agents.transpose(1, 2)[..., :2] - ego[:, :, None, :2]  # (B, H + 1, N, 2)
    gap = apart[:, 1:].square().sum(-1).sqrt()
    closing = -(torch.diff(apart, dim=1) * apart[:, 1:]).sum(-1) / (STEP * gap.clamp(min=1e-6))
    closing = (1.001 * closing + 0.01).clamp(min=0)  # a little wide: the exact one is computed another way
    reach = (EGO_LENGTH**2 + EGO_WIDTH**2) ** 0.5 / 2 + context.agent_size.norm(dim=-1).to(gap)[:, None] / 2
    short = CLEARANCE + HEADWAY * closing + closing.square() / (2 * BRAKING) - (gap / 2**0.5 - reach) > -AMPLE
    near = short & (gap - reach <= ACTIVE_DISTANCE)
    return (near & context.agent_valid[:, :, 1:steps].transpose(1, 2)).nonzero(as_tuple=True)
