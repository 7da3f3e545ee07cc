"""Flow: do not hinder traffic by driving slowly on a free road."""

from __future__ import annotations

import torch
from torch import Tensor

from radp.rules.body import FRONT, REAR_TO_CENTER
from radp.rules.context import RuleContext
from radp.rules.headway import in_the_way
from radp.rules.penalty import Term
from radp.rules.rule import PenaltyRule
from radp.rules.stopping import front_progress

SHARE = 0.5  # of the speed that road and bend allow
LATERAL = 2.0  # a_lat [m/s2]
FREE = 50.0  # m of free road ahead


class Flow(PenaltyRule):
    """J(0.5 min(v_limit, sqrt(2.0 / curvature of the route)) - v; 1.0), where 50 m ahead are free.

    Free: nobody in the ego's way, no red stop line, no crosswalk that somebody takes, and not the end of the route.
    """

    name, unit, scale, weight = "flow", "m/s", 1.0, 0.5
    describes = "the flow of traffic"
    asks_motion, asks_road = True, True

    def terms(self, trajectory: Tensor, context: RuleContext) -> list[Term]:
        z, free = self._slow(trajectory, context)
        return [Term(z, self.scale, free)]

    def violation(self, trajectory: Tensor, context: RuleContext) -> Tensor:
        z, free = self._slow(trajectory, context)
        return z.masked_fill(~free, -torch.inf)

    def _slow(self, trajectory: Tensor, context: RuleContext) -> tuple[Tensor, Tensor]:
        """z (B, H), and where the road is free (B, H)."""
        match = context.match(trajectory)
        around = context.around(trajectory)
        bend = (LATERAL / context.route.curvature(around.plan[..., :2]).clamp(min=1e-6)).sqrt()
        fair = SHARE * torch.minimum(match.speed_limit.to(bend.dtype), bend)
        free = match.has_speed_limit & self._free(around.plan, context)
        return fair - context.motion(trajectory).speed, free

    @torch.no_grad()
    def _free(self, plan: Tensor, context: RuleContext) -> Tensor:
        around = context.around(plan)
        path, front = around.path, front_progress(plan, context)
        blocked = in_the_way(path)[:, :, 1:] & (path.along[:, :, 1:] > path.ego_along.unsqueeze(1) + REAR_TO_CENTER)
        ahead = (path.along - path.reach_along)[:, :, 1:] - (path.ego_along + FRONT).unsqueeze(1)
        lines = torch.cat((context.route.red_line(FRONT).unsqueeze(1), around.crossing_line), 1).to(front.dtype)
        to_line = lines.unsqueeze(1) - front.unsqueeze(2)
        stop = ((to_line > -FREE) & (to_line < FREE)).any(-1)
        end = context.route.end.to(front.dtype).unsqueeze(1) - front < FREE
        return ~((blocked & (ahead < FREE)).any(1) | stop | end)
