"""Plans displaced in control space: accelerations along and across the path, integrated twice.

Displaced positions can jump from step to step; those that come from accelerations on knots a second apart cannot.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from radp.rules import Rule, RuleContext, rule_costs
from radp.rules.motion import unit_heading, with_origin
from radp.sim.plan import STEP_SECONDS

KNOTS = 9  # accelerations at 0, 1, .. 8 s, linear between them
SLOW = 2.0  # m/s below which a car moves less to the side, and not at all when it stands
AMPLITUDES = (0.03, 0.06, 0.125, 0.25, 0.5, 1.0, 1.5, 2.0)  # m/s2
ENOUGH = 0.5  # of the cost that is left when a displacement is large enough


def accelerations(knots: Tensor, elapsed: Tensor, steps: int) -> Tensor:
    """knots (B, 9, 2) along, across [m/s2], seconds since the first knot (B,) -> (B, H, 2) at 0.1, 0.2, .. s from then.

    After the last knot they stay as they are.
    """
    time = elapsed[:, None] + STEP_SECONDS * torch.arange(1, steps + 1, dtype=knots.dtype)
    before = time.floor().clamp(0, KNOTS - 2).long()
    share = (time - before).clamp(0, 1).unsqueeze(-1)
    row = torch.arange(len(knots))[:, None]
    return knots[row, before] * (1 - share) + knots[row, before + 1] * share


def displace(trajectory: Tensor, push: Tensor) -> Tensor:
    """Plans (B, H, 4) and accelerations (B, H, 2) added to theirs -> plans along the same path, faster or slower and to
    the side of it; never backwards. Differentiable in both."""
    states = with_origin(trajectory)
    station = torch.diff(states[..., :2], dim=1).square().sum(-1).clamp(min=1e-12).sqrt().cumsum(1)
    station = torch.cat((torch.zeros_like(station[:, :1]), station), 1)
    gained = STEP_SECONDS * push.cumsum(1)  # m/s
    way = (station[:, 1:] + STEP_SECONDS * gained[..., 0].cumsum(1)).clamp(min=0).cummax(1).values
    pose = _on_path(states, station, way)
    speed = torch.diff(way, dim=1, prepend=torch.zeros_like(way[:, :1])) / STEP_SECONDS
    rate = gained[..., 1] * (speed / SLOW).clamp(max=1)
    forward = unit_heading(pose)
    left = torch.stack((-forward[..., 1], forward[..., 0]), -1)
    xy = pose[..., :2] + STEP_SECONDS * rate.cumsum(1).unsqueeze(-1) * left
    turn = torch.atan(rate / speed.clamp(min=SLOW)).unsqueeze(-1)
    return torch.cat((xy, turn.cos() * forward + turn.sin() * left), -1)


def _on_path(states: Tensor, station: Tensor, way: Tensor) -> Tensor:
    """Poses (B, H, 4) at `way` (B, H) metres along a path of states (B, H + 1, 4); straight on after its end."""
    last = states.shape[1] - 1
    at = (torch.searchsorted(station.detach(), way.detach(), right=True) - 1).clamp(0, last - 1)
    row = torch.arange(len(states))[:, None]
    start, end = states[row, at], states[row, at + 1]
    length = (station.gather(1, at + 1) - station.gather(1, at)).clamp(min=1e-3)
    share = ((way - station.gather(1, at)) / length).clamp(max=1).unsqueeze(-1)
    heading = normalize(torch.lerp(unit_heading(start), unit_heading(end), share), dim=-1)
    beyond = torch.relu(way - station[:, -1:]).unsqueeze(-1)
    return torch.cat((torch.lerp(start[..., :2], end[..., :2], share) + beyond * heading, heading), -1)


def descent(trajectory: Tensor, context: RuleContext, rule: Rule, start: Tensor, sideways: bool) -> Tensor:
    """Knots (B, 9, 2) of largest entry 1 along which the rule's cost falls fastest; 0 where it does not change.

    `start` (B, 2) is the acceleration added in the step before: the first knot, which stays.
    """
    with torch.enable_grad():
        knots = trajectory.new_zeros(len(trajectory), KNOTS, 2).requires_grad_()
        cost = rule_costs(pushed(trajectory, begin(start) + knots), context, [rule])
        (gradient,) = torch.autograd.grad(cost.sum(), knots)
    return unit_knots(-gradient, sideways)


def unit_knots(knots: Tensor, sideways: bool) -> Tensor:
    """(B, 9, 2) with the first knot at 0, nothing across unless `sideways`, scaled to a largest entry of 1 (or 0)."""
    free = torch.ones_like(knots)
    free[:, 0] = 0
    free[..., 1] *= sideways
    knots = knots * free
    return knots / knots.abs().amax((1, 2), keepdim=True).clamp(min=torch.finfo(knots.dtype).tiny)


def begin(start: Tensor) -> Tensor:
    """(B, 2) -> knots (B, 9, 2) that fall from there to 0 within a second."""
    knots = start.new_zeros(len(start), KNOTS, 2)
    knots[:, 0] = start
    return knots


def pushed(trajectory: Tensor, knots: Tensor, elapsed: Tensor | None = None) -> Tensor:
    """Plans (B, H, 4) displaced by knots (B, 9, 2) that began `elapsed` (B,) seconds ago, now if not given."""
    elapsed = knots.new_zeros(len(knots)) if elapsed is None else elapsed
    return displace(trajectory, accelerations(knots, elapsed, trajectory.shape[1]))


@torch.no_grad()
def amplitude_of(trajectory: Tensor, context: RuleContext, rule: Rule, start: Tensor, direction: Tensor) -> Tensor:
    """(B,) the smallest of the amplitudes [m/s2] that halves the rule's cost along `direction` (B, 9, 2), or, if none
    does, the one of the lowest cost."""
    count = len(AMPLITUDES)
    sizes = trajectory.new_tensor(AMPLITUDES)
    knots = (begin(start)[:, None] + sizes[:, None, None] * direction[:, None]).flatten(0, 1)
    plans, scenes = trajectory.repeat_interleave(count, 0), context.repeat_interleave(count)
    cost = rule_costs(pushed(plans, knots), scenes, [rule]).view(-1, count)
    before = rule_costs(pushed(trajectory, begin(start)), context, [rule])
    enough = cost <= ENOUGH * before
    first = enough.int().argmax(1)
    return sizes[torch.where(enough.any(1), first, cost.argmin(1))]
