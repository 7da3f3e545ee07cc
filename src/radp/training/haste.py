"""Driving on where the way is free: the counterweight to rules that only ever ask to brake.

A planner that learns to avoid contact learns to wait, and nothing asks it to go. So where nobody is near the way of a
plan and no other rule speaks, the plan to be learnt is a little faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from radp.rules import RuleContext
from radp.rules.contact import first_contact
from radp.rules.motion import motion_of, way_length
from radp.rules.red_light import RedLight
from radp.rules.speed import Speed
from radp.scenario import DT
from radp.training.copies import hastened

APART = 1.5  # s between the ego and anybody else at one place
BESIDE = 0.5  # m
FASTER, SHARE = 2.0, 0.25  # m/s beyond the plan's own speed, and share of it, at most: a stop stays a stop
PARTS = (0.25, 0.5, 1.0)  # of the haste, from the least
SIDEWAYS = 1.5  # m/s2 in bends
SHORTEST = 2.0  # m: who plans to stand has no path to follow
_RED, _SPEED = RedLight(), Speed()


@torch.no_grad()
def driven_on(plan: Tensor, contexts: Sequence[RuleContext], haste: float) -> tuple[Tensor, Tensor]:
    """Plans (B, H, 4) -> the same paths, faster, and (B,) bool: where that may be. With `haste` m/s2 more at first, or
    half or a quarter of it, whatever is the most that may be driven."""
    chosen, free = plan.clone(), torch.zeros(len(plan), dtype=torch.bool)
    drives = way_length(plan) > SHORTEST
    for part in PARTS:
        faster = hastened(plan, part * haste, part * FASTER, part * SHARE)
        may = drives & torch.stack([way_is_free(faster, context) for context in contexts]).all(0)
        chosen[may], free = faster[may], free | may
    return chosen, free


@torch.no_grad()
def way_is_free(plan: Tensor, context: RuleContext) -> Tensor:
    """(B, H, 4) -> (B,) bool: nobody is where the plan is within 1.5 s before or after; and it may be driven: no red
    light, the limit kept, slow in bends. Who is not known any longer is taken to stand where it was."""
    motion = motion_of(plan, context.speed_now, context.accel_now, context.dynamics_known)
    free = motion.a_lat.abs().amax(-1) < SIDEWAYS
    free &= ((_RED.violation(plan, context) <= 0) & (_SPEED.violation(plan, context) <= 0)).all(-1)
    others = _held(context)
    for steps in range(-round(APART / DT), round(APART / DT) + 1, 5):
        free &= first_contact(plan, _shifted(others, steps), BESIDE).isinf()
    return free


def _held(context: RuleContext) -> RuleContext:
    """Everybody who is there now stays where they were last seen."""
    steps = torch.arange(context.agent_valid.shape[-1], device=context.agents.device)
    last = (context.agent_valid * steps).cummax(-1).values
    agents = context.agents.gather(2, last.unsqueeze(-1).expand_as(context.agents))
    return replace(context, agents=agents, agent_valid=context.agent_valid[..., :1].expand_as(context.agent_valid))


def _shifted(context: RuleContext, steps: int) -> RuleContext:
    """Where the others are so many steps later, or earlier if it is negative: as far as that is known."""
    count = context.agents.shape[2]
    index = (torch.arange(count, device=context.agents.device) + steps).clamp(0, count - 1)
    return replace(context, agents=context.agents[:, :, index], agent_valid=context.agent_valid[:, :, index])
