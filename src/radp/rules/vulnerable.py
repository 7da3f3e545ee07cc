"""Vulnerable: room for people on foot and on bicycles, and a stop before the crosswalk that they are on."""

from __future__ import annotations

import torch
from torch import Tensor

from radp.geometry.boxes import separation_of
from radp.rules.body import EGO_LENGTH, EGO_WIDTH, REAR_TO_CENTER, shifted
from radp.rules.context import RuleContext
from radp.rules.motion import unit_heading
from radp.rules.rule import AgentRule
from radp.rules.stopping import KEPT, past_line
from radp.scenario.scenario import ObjectType
from radp.sim.plan import STEP_SECONDS

CLEARANCE = 1.5  # m
NEAR = 15.0  # m
SAME = 0.01  # m


class Vulnerable(AgentRule):
    """z = 1.5 m - clearance within 15 m; before the crosswalk that somebody takes, z = f - (s_walk - 1.0) if larger."""

    name, unit, scale, weight = "vulnerable", "m", 0.5, 2.0
    describes = "room for people on foot and on bicycles"
    asks_road = True

    def agent_violation(self, trajectory: Tensor, context: RuleContext) -> tuple[Tensor, Tensor]:
        who = self._who(context)
        horizon = trajectory.shape[1]
        others = context.agents[:, :, 1 : horizon + 1].to(trajectory.dtype).transpose(1, 2)
        ego = torch.cat((shifted(trajectory, REAR_TO_CENTER), unit_heading(trajectory)), -1).unsqueeze(2)
        size = context.agent_size.to(trajectory.dtype).unsqueeze(1)
        room = separation_of(ego.expand_as(others), others.new_tensor([EGO_LENGTH, EGO_WIDTH]), others, size)
        there = context.agent_valid[:, :, 1 : horizon + 1].transpose(1, 2) & who.unsqueeze(1)
        near = there & (room.detach() <= NEAR)
        past, counts = past_line(trajectory, context, context.around(trajectory).crossing_line)
        walks = there & counts.unsqueeze(1) & self._still_there(context, horizon)
        z = torch.where(near & walks, torch.maximum(CLEARANCE - room, past), torch.where(walks, past, CLEARANCE - room))
        return z, near | walks

    def kept_words(self, margin: float, whom: str = "", gap: float | None = None) -> str:
        """The gap where that is what counts; the crosswalk where its line does."""
        if gap is not None and abs(gap - CLEARANCE - margin) < SAME:
            return f"{gap:.1f} m to {whom}"
        return f"{margin + KEPT:.1f} m to the crosswalk of {whom}"

    def _who(self, context: RuleContext) -> Tensor:
        """(B, N) bool."""
        if context.road is None:
            return torch.zeros_like(context.agent_valid[:, :, 0])
        types = context.road.object_types
        return (types == ObjectType.PEDESTRIAN) | (types == ObjectType.BICYCLE)

    def _still_there(self, context: RuleContext, horizon: int) -> Tensor:
        """(B, H, N) bool: steps at which each still takes its crosswalk."""
        if context.road is None:
            return torch.zeros_like(context.agent_valid[:, :, 1 : horizon + 1].transpose(1, 2))
        until = context.road.object_crossing[..., 2]
        time = STEP_SECONDS * torch.arange(1, horizon + 1, device=until.device)
        return time[:, None] <= until.unsqueeze(1)
