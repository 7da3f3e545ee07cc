"""A rule of your own in one file: keep two seconds behind whoever drives ahead.

    python examples/own_rule.py

Registering it is all: from then on it is a term of the alignment loss, an energy for guided sampling, a pressure of
the teacher, a row of `radp explain`, and a curve in the viewer. The command line learns of it when the file is
imported, for example by a planner in the same file (`radp simulate --planner own_rule.py:Careful ...`).
"""

from __future__ import annotations

import torch
from torch import Tensor

import radp
from radp import Observation, Plan, Rule, RuleContext, register_rule

WANTED = 2.0  # s
SLOWEST = 1.0  # m/s, below which there is no headway to keep
LANE = 0.5  # m, how far the two bodies may be apart sideways and still be behind each other


class Headway(Rule):
    """Mean over steps and road users ahead of phi(2 s - gap / speed; 0.5 s)."""

    name, unit, scale, weight = "headway", "s", 0.5, 0.5
    describes = "the time gap to the one ahead"

    def missing(self, trajectory: Tensor, context: RuleContext) -> tuple[Tensor, Tensor]:
        """(B, H, N): seconds that are missing, and which pairs are behind each other and moving."""
        steps, ego = trajectory.shape[1] + 1, context.vehicle
        other = context.agents[:, :, 1:steps].transpose(1, 2).to(trajectory.dtype)  # (B, H, N, 4)
        cos, sin = trajectory[..., None, 2], trajectory[..., None, 3]
        dx, dy = (other[..., i] - trajectory[..., None, i] for i in (0, 1))
        ahead, aside = cos * dx + sin * dy - ego.rear_axle_to_center, cos * dy - sin * dx
        length, width = context.agent_size.to(trajectory.dtype).unbind(-1)  # (B, N)
        gap = ahead - (ego.length + length[:, None]) / 2
        speed = context.motion(trajectory).speed.unsqueeze(-1).clamp(min=SLOWEST)
        follows = (ahead > 0) & (aside.abs() < (ego.width + width[:, None]) / 2 + LANE)
        counts = context.agent_valid[:, :, 1:steps].transpose(1, 2) & follows & (speed > SLOWEST)
        return WANTED - gap / speed, counts.detach()

    def agent_terms(self, trajectory: Tensor, context: RuleContext) -> Tensor:
        missing, counts = self.missing(trajectory, context)
        share = counts / counts.sum((1, 2), keepdim=True).clamp(min=1)
        return self.penalty(missing) * share

    def cost(self, trajectory: Tensor, context: RuleContext) -> Tensor:
        return self.agent_terms(trajectory, context).sum((1, 2))

    def violation(self, trajectory: Tensor, context: RuleContext) -> Tensor:
        missing, counts = self.missing(trajectory, context)
        nobody = missing.new_full((*missing.shape[:2], 1), -torch.inf)
        return torch.cat((missing.masked_fill(~counts, -torch.inf), nobody), -1).amax(-1)


HEADWAY = register_rule(Headway())


class Careful:
    """Any planner, here IDM: that it stands in this file makes `radp` import the file, and the rule with it."""

    name = "careful"

    def __init__(self) -> None:
        self.driver = radp.load_planner("idm")

    def plan(self, observation: Observation) -> Plan:
        return self.driver.plan(observation)


def main() -> None:
    """What presses on a plan that keeps its speed, with the rule of this file among the others."""
    now = radp.observe(radp.open_split("sumo14-val")[:40], step=20)
    why = radp.attribute(radp.load_planner("constant_velocity").plan(now), now)
    worst = int(why.pressure[:, why.rules.index(HEADWAY.name)].argmax())
    print(now.briefings[worst].token)
    for rule, pressure in zip(why.rules, why.pressure[worst].tolist()):
        print(f"{rule:12s} {pressure:.2f}")


if __name__ == "__main__":
    main()
