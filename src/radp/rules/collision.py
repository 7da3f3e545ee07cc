"""Collision: keep the clearance that the closing speed asks for (Eq. 6 and appendix B)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from radp.geometry.boxes import separation_of
from radp.rules.body import EGO_LENGTH, EGO_WIDTH, REAR_TO_CENTER
from radp.rules.context import RuleContext
from radp.rules.motion import unit_heading, with_origin
from radp.rules.rule import Rule
from radp.runtime.geometry import BRAKING, CLEARANCE, HEADWAY
from radp.sim.plan import STEP_SECONDS

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
    scenes: int  # of the batch


@dataclass(frozen=True)
class Collision(Rule):
    """Softmax-weighted mean over the active (h, n) of gate * phi(d_safe - d_box); exactly 0 when nothing is active.

    `from_now`: the gate counts from now on, so that an encounter matters only if it begins within these seconds; the
    paper's reading (None) counts the time to collision from each step of the plan. `discount`: the gate fades with
    exp(-t_h / discount) along the plan.
    """

    name, unit, scale, weight = "collision", "m", 0.5, 2.5
    describes = "clearance"
    from_now: float | None = None  # s
    discount: float | None = None  # s

    def cost(self, trajectory: Tensor, context: RuleContext) -> Tensor:
        return self.agent_costs(trajectory, context).sum(1)

    def agent_terms(self, trajectory: Tensor, context: RuleContext) -> Tensor:
        """(B, H, N) weighted terms, whose sum is the cost; the gate and the weights carry no gradient."""
        pairs = self.pairs(trajectory, context)
        shape = (*trajectory.shape[:2], context.agents.shape[1])
        return trajectory.new_zeros(shape).index_put((pairs.scene, pairs.step, pairs.agent), self._values(pairs))

    def agent_costs(self, trajectory: Tensor, context: RuleContext) -> Tensor:
        """(B, N) the same, summed over steps."""
        pairs, (batch, agents) = self.pairs(trajectory, context), context.agents.shape[:2]
        where = pairs.scene * agents + pairs.agent
        return trajectory.new_zeros(batch * agents).index_add(0, where, self._values(pairs)).view(batch, agents)

    def _values(self, pairs: Pairs) -> Tensor:
        return self.weights(pairs) * self.penalty(pairs.violation)

    def agent_violations(self, trajectory: Tensor, context: RuleContext) -> Tensor:
        """Overlap depth [m]: the verdict is physical contact, not a clearance that is too small."""
        pairs = self.pairs(trajectory, context)
        depth = trajectory.new_full((*trajectory.shape[:2], context.agents.shape[1]), -torch.inf)
        return depth.index_put((pairs.scene, pairs.step, pairs.agent), -pairs.separation)

    def violation(self, trajectory: Tensor, context: RuleContext) -> Tensor:
        depth = self.agent_violations(trajectory, context)
        return depth.amax(-1) if depth.shape[2] else torch.full_like(trajectory[..., 0], -torch.inf)

    def kept_words(self, margin: float, whom: str = "", gap: float | None = None) -> str:
        return f"{margin:.1f} m to {whom or 'others'}"

    def pairs(self, trajectory: Tensor, context: RuleContext) -> Pairs:
        """Candidates by their centres, then separation and closing speed of these only. Differentiable values."""
        ego, agents = _centres_over_time(trajectory, context)
        scene, step, agent = _candidates(ego, agents, context)
        one, times = scene * agents.shape[1] + agent, agents.shape[2]
        mine, mine_before = _rows(ego, scene * times + step)
        other, other_before = _rows(agents, one * times + step)
        size = context.agent_size.flatten(0, 1).index_select(0, one).to(ego.dtype)
        distance = separation_of(mine, mine.new_tensor([EGO_LENGTH, EGO_WIDTH]), other, size)
        line, line_before = other[:, :2] - mine[:, :2], other_before[:, :2] - mine_before[:, :2]
        nearer = ((line_before - line) * line).sum(-1) / (line.square().sum(-1) + 1e-12).sqrt()  # m per step
        known = context.agent_valid[scene, agent, step]
        closing = nearer.clamp(min=0) * (known / STEP_SECONDS)
        safe = CLEARANCE + HEADWAY * closing + closing.square() / (2 * BRAKING)
        miss = _miss_distance(mine, other, size, line - line_before)
        return Pairs(scene, step, agent, distance, closing, safe - distance, miss, len(trajectory))

    @torch.no_grad()
    def gate(self, pairs: Pairs) -> Tensor:
        """(Q,) in [0, 1]: near, or about to meet, and short of clearance; 0 beyond 20 m.

        Counted from now with L = `from_now`: near * sigmoid((L - t_h) / 0.5 s), and TTC becomes t_h + TTC below L.
        """
        ttc = pairs.separation.clamp(min=0) / pairs.closing.clamp(min=1e-3)
        near = torch.sigmoid((CLEARANCE - pairs.separation) / _NEAR_WIDTH)
        time = STEP_SECONDS * (pairs.step + 1).to(ttc.dtype)  # t_h
        left = RISK_TTC - ttc
        if self.from_now is not None:
            near = near * torch.sigmoid((self.from_now - time) / _TTC_WIDTH)
            left = self.from_now - time - ttc
        soon = torch.sigmoid(left / _TTC_WIDTH) * (1 - torch.exp(-pairs.closing / _CLOSING_WIDTH))
        meets = torch.sigmoid((CLEARANCE - pairs.miss) / _MISS_WIDTH)
        short = torch.sigmoid(pairs.violation / _DEFICIT_WIDTH)
        gate = torch.maximum(near, soon * meets) * short * (pairs.separation <= ACTIVE_DISTANCE)
        if self.discount is not None:
            gate = gate * torch.exp(-time / self.discount)
        return gate.masked_fill(gate < MIN_GATE, 0.0)

    @torch.no_grad()
    def weights(self, pairs: Pairs) -> Tensor:
        """(Q,) gate times softmax weight among the active pairs of the same scene.

        The softmax is of alpha * gate * missing share of the required clearance, which lies between 0 and alpha: its
        exponentials need no shift.
        """
        gate = self.gate(pairs)
        share = (pairs.violation / (pairs.violation + pairs.separation).clamp(min=CLEARANCE)).clamp(0, 1)
        scores = torch.exp(ALPHA * gate * share) * (gate > 0)
        total = scores.new_zeros(pairs.scenes).index_add(0, pairs.scene, scores)
        return gate * scores / total.index_select(0, pairs.scene).clamp(min=1)  # one active pair alone has 1 or more


@torch.no_grad()
def _miss_distance(mine: Tensor, other: Tensor, size: Tensor, moved: Tensor) -> Tensor:
    """(Q,) gap of the two boxes across the direction of their relative motion (Q, 2); below 0 they will meet.

    Without relative motion it says nothing, but then nothing closes either.
    """
    vectors = torch.stack((other[:, :2] - mine[:, :2], mine[:, 2:], other[:, 2:]))  # (3, Q, 2): line, both headings
    along = (vectors * moved).sum(-1).abs()
    across = (vectors[..., 0] * moved[:, 1] - vectors[..., 1] * moved[:, 0]).abs()
    reach = EGO_LENGTH * across[1] + EGO_WIDTH * along[1] + size[:, 0] * across[2] + size[:, 1] * along[2]
    return (across[0] - reach / 2) / moved.norm(dim=-1).clamp(min=1e-6)


def _centres_over_time(trajectory: Tensor, context: RuleContext) -> tuple[Tensor, Tensor]:
    """Box centres, index 0 now: of the ego (B, H + 1, 4), differentiable, and of the others (B, N, H + 1, 4)."""
    states = with_origin(trajectory)
    forward = unit_heading(states)
    ego = torch.cat((states[..., :2] + REAR_TO_CENTER * forward, forward), -1)
    return ego, context.agents[:, :, : states.shape[1]].to(trajectory.dtype)


def _rows(poses: Tensor, before: Tensor) -> tuple[Tensor, ...]:
    """poses (..., 4), places `before` (Q,) among all of them -> (Q, 4) one step later, and at these places."""
    return poses.reshape(-1, 4).index_select(0, torch.cat((before + 1, before))).chunk(2)


@torch.no_grad()
def _candidates(ego: Tensor, agents: Tensor, context: RuleContext) -> tuple[Tensor, ...]:
    """Scene, step and object (Q,) of all pairs that can have a weight: a wide net of centres, without any boxes.

    Along the best of an ego's axes the centres are at least gap / sqrt(2) apart, so boxes are separated by at least
    that minus both half diagonals; pairs whose clearance is then ample have a gate of 0.
    """
    steps = ego.shape[1]
    apart = agents.transpose(1, 2)[..., :2] - ego[:, :, None, :2]  # (B, H + 1, N, 2)
    gap = apart[:, 1:].square().sum(-1).sqrt()
    closing = -(torch.diff(apart, dim=1) * apart[:, 1:]).sum(-1) / (STEP_SECONDS * gap.clamp(min=1e-6))
    closing = (1.001 * closing + 0.01).clamp(min=0)  # a little wide: the exact one is computed another way
    reach = (EGO_LENGTH**2 + EGO_WIDTH**2) ** 0.5 / 2 + context.agent_size.norm(dim=-1).to(gap)[:, None] / 2
    short = CLEARANCE + HEADWAY * closing + closing.square() / (2 * BRAKING) - (gap / 2**0.5 - reach) > -AMPLE
    near = short & (gap - reach <= ACTIVE_DISTANCE)
    return (near & context.agent_valid[:, :, 1:steps].transpose(1, 2)).nonzero(as_tuple=True)
