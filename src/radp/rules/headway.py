"""Headway: the time gap to whoever drives ahead in the ego's own way, by speed as UN R157 has it."""

from __future__ import annotations

import torch
from torch import Tensor

from radp.rules.body import EGO_WIDTH, REAR_TO_CENTER
from radp.rules.context import RuleContext
from radp.rules.rss import gaps
from radp.rules.rule import AgentRule
from radp.rules.surroundings import PathFrame, PlanSurroundings
from radp.scenario.scenario import FIRST_STATIC_TYPE, ObjectType
from radp.sim.plan import STEP_SECONDS

SPEEDS = (7.2 / 3.6, 10 / 3.6, 20 / 3.6, 30 / 3.6, 40 / 3.6, 50 / 3.6, 60 / 3.6)  # m/s
TIMES = (1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6)  # s
GRACE = 3.0  # s after somebody cut in
HISTORY = 2.0  # s that are known of the past
FOLLOWED = 0.5  # cosine of the angle to the path: whoever drives less along it is not followed


def time_gap(speed: Tensor) -> Tensor:
    """m/s -> s, linear between the rows of the table, constant beyond them. Differentiable."""
    at, times = speed.new_tensor(SPEEDS), speed.new_tensor(TIMES)
    k = torch.bucketize(speed.detach(), at[1:-1])
    share = ((speed - at[k]) / (at[k + 1] - at[k])).clamp(0, 1)
    return times[k] + share * (times[k + 1] - times[k])


class Headway(AgentRule):
    """z = v t_hw(v) - gap to the one ahead; not within 3 s after it came into the ego's way."""

    name, unit, scale, weight = "headway", "m", 2.0, 0.8
    describes = "the time gap"
    asks_motion, asks_road = True, True

    def agent_violation(self, trajectory: Tensor, context: RuleContext) -> tuple[Tensor, Tensor]:
        around = context.around(trajectory)
        ahead, _, _ = gaps(trajectory, around)
        speed = context.motion(trajectory).speed
        z = (speed * time_gap(speed)).unsqueeze(2) - ahead
        return z, followed(around, context)

    def kept_words(self, margin: float, whom: str = "", gap: float | None = None) -> str:
        return f"{margin:.1f} m more than the time gap to {whom}"


@torch.no_grad()
def in_the_way(path: PathFrame) -> Tensor:
    """(B, N, T) bool: the other's box reaches into the strip that the ego's body sweeps."""
    ego = torch.cat((torch.zeros_like(path.ego_across[:, :1]), path.ego_across), 1).unsqueeze(1)
    return ((path.across - ego).abs() < path.reach_across + EGO_WIDTH / 2) & path.valid


@torch.no_grad()
def followed(around: PlanSurroundings, context: RuleContext) -> Tensor:
    """(B, H, N) bool: vehicles and bicycles ahead, in the ego's way for three seconds and driving along it."""
    path, inside = around.path, in_the_way(around.path)
    ego = torch.cat((torch.zeros_like(path.ego_along[:, :1]), path.ego_along), 1).unsqueeze(1) + REAR_TO_CENTER
    ahead = (path.along > ego) & (path.same_way > FOLLOWED)
    steps = torch.arange(inside.shape[2], device=inside.device)
    out = torch.where(inside, -1, steps).cummax(-1).values  # the last step at which it was not in the way
    since = torch.where(out < 0, _entered(path, context).unsqueeze(2), STEP_SECONDS * out)
    long_enough = STEP_SECONDS * steps - since >= GRACE
    lead = (inside & ahead & long_enough)[:, :, 1:].transpose(1, 2)
    if context.road is None:
        return lead
    types = context.road.object_types
    return lead & ((types < FIRST_STATIC_TYPE) & (types != ObjectType.PEDESTRIAN)).unsqueeze(1)


def _entered(path: PathFrame, context: RuleContext) -> Tensor:
    """(B, N) seconds, at most 0, at which whoever is in the way now came into it; minus infinity: long ago.

    From where it was two seconds ago, as if it had come aside evenly.
    """
    if context.road is None:
        return torch.full_like(path.across[:, :, 0], -torch.inf)
    now = context.agents[:, :, 0].to(path.across.dtype)
    past = context.road.object_past.to(now.dtype)
    way = path.tangent[:, :1]  # the path's direction at the ego
    before = (
        path.across[:, :, 0] + way[..., 0] * (past - now[..., :2])[..., 1] - way[..., 1] * (past - now[..., :2])[..., 0]
    )
    limit = path.reach_across[:, :, 0] + EGO_WIDTH / 2
    share = (before.abs() - limit) / (before.abs() - path.across[:, :, 0].abs()).clamp(min=1e-3)
    return torch.where(before.abs() > limit, -HISTORY * (1 - share.clamp(0, 1)), -torch.inf)
