"""Where a plan meets somebody or leaves its road: exact verdicts on plans, without gradients.

The contact gate of alignment, its focus states and the watch over states all go by these.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from radp.geometry.boxes import separation_of
from radp.rules.body import EGO_LENGTH, EGO_WIDTH, FRONT, REAR_TO_CENTER
from radp.rules.collision import Collision
from radp.rules.context import RuleContext
from radp.rules.lane import BodyLane
from radp.rules.motion import with_origin
from radp.scene.scene import COS_SIN, XY
from radp.sim.plan import STEP_SECONDS

MARGIN, WITHIN = 0.3, 4.0  # m, s: a plan that comes so near so soon is one to mend
DELAY, STOPPING = 1.5, 3.0  # s, m/s2: who has more time than this to stop may wait and see
OUTSIDE = 0.3  # m beyond the corridor's border that count as off the road, as in the metric of the drivable area
AHEAD = (3, 6, 9)  # steps of 0.1 s: who would be met so soon, all going straight on, fails nuPlan's bound of 0.95 s
STOPPED = 5e-4  # m in a step: then there is no time to collision
BESIDE = 0.5  # m: a follower's box overlaps the ego's lane of travel, widened by this
_COLLISION, _LANE = Collision(), BodyLane()


@torch.no_grad()
def first_contact(plan: Tensor, context: RuleContext, margin: float = 0.0) -> Tensor:
    """(B, H, 4) -> (B,) seconds until somebody is overlapped, or nearer than `margin` metres; inf if that never is."""
    return _first(_COLLISION.violation(plan, context) > -margin)


def time_to_stop(context: RuleContext) -> Tensor:
    """(B,) seconds in which an ego of its present speed can stop, 1.5 s of delay included; at most 4.

    What is met later may be left to later plans. The executed futures of others are their answers to what the ego did:
    where it waited they went, and a plan that drives on seems to meet them.
    """
    return stopping_time(context.speed_now.abs())


def stopping_time(speed: Tensor) -> Tensor:
    """Speeds (B,) in m/s -> (B,) the same seconds."""
    return (DELAY + speed / STOPPING).clamp(max=WITHIN)


@torch.no_grad()
def first_near_miss(plan: Tensor, context: RuleContext) -> Tensor:
    """(B, H, 4) -> (B,) seconds until the time to collision is below nuPlan's bound; inf if that never is.

    Everybody then goes straight on as they move in that step of the plan; a standing ego has no time to collision.
    """
    moved = torch.diff(with_origin(plan)[..., XY], dim=1)
    known = (context.agent_valid[..., 1:] & context.agent_valid[..., :-1]).unsqueeze(-1)
    others = torch.diff(context.agents[..., XY], dim=2) * known
    standing = moved.norm(dim=-1) < STOPPED
    first = plan.new_full((len(plan),), torch.inf)
    for steps in AHEAD:
        agents = context.agents.clone()
        agents[:, :, 1:, XY] += steps * others
        later = torch.cat((plan[..., XY] + steps * moved, plan[..., COS_SIN]), -1)
        meets = _COLLISION.violation(later, replace(context, agents=agents, bound_around=None)) > 0
        first = torch.minimum(first, _first(meets & ~standing))
    return first


@torch.no_grad()
def first_off_road(plan: Tensor, context: RuleContext) -> Tensor:
    """(B, H, 4) -> (B,) seconds until a corner of the body is 0.3 m outside the corridor of the route; inf if none is.

    A body that is outside now has left already: then it is inf, because no plan can mend that.
    """
    outside = _LANE.violation(plan, context) > OUTSIDE
    now = _LANE.violation(plan.new_tensor([[[0.0, 0.0, 1.0, 0.0]]]).expand(len(plan), 1, 4), context) > OUTSIDE
    return _first(outside & ~now)


@torch.no_grad()
def avoidable(context: RuleContext) -> RuleContext:
    """The same without those whom no plan can avoid: who is touched already, and who follows in the ego's lane.

    An executed future of a follower is its answer to what the ego did. A plan that brakes would be hit by it, and
    the rule would forbid to brake.
    """
    now, size = context.agents[:, :, 0], context.agent_size.to(context.agents)
    ego = now.new_tensor([REAR_TO_CENTER, 0.0, 1.0, 0.0]).expand_as(now)
    touched = separation_of(ego, now.new_tensor([EGO_LENGTH, EGO_WIDTH]), now, size) <= 0
    behind = now[..., 0] + size[..., 0] / 2 < FRONT - EGO_LENGTH
    in_lane = now[..., 1].abs() < (EGO_WIDTH + size[..., 1]) / 2 + BESIDE
    follows = behind & in_lane & (now[..., 2] > 0.5)
    return replace(context, agent_valid=context.agent_valid & ~(touched | follows).unsqueeze(-1))


def _first(happens: Tensor) -> Tensor:
    """(B, H) bool -> (B,) seconds of the first step at which it is true, else inf."""
    seconds = STEP_SECONDS * torch.arange(1, happens.shape[1] + 1, device=happens.device)
    return torch.where(happens, seconds, torch.inf).amin(-1)
