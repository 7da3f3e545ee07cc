"""Two drivers in one car: the first drives up to a moment, then the second takes over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from radp.scenario import Scenario
from radp.sim.observation import Observation
from radp.sim.plan import Plan
from radp.sim.planner import Planner, start_planner


class Takeover:
    """`first` plans up to the step that `steps` gives for a scenario's token, `then` plans from there on."""

    def __init__(self, first: Planner, then: Planner, steps: Mapping[str, int]) -> None:
        self.first, self.then, self.steps = first, then, steps
        self.name = f"{first.name}, then {then.name}"

    def start(self, scenarios: Sequence[Scenario]) -> None:
        for planner in (self.first, self.then):
            start_planner(planner, scenarios)

    def plan(self, observation: Observation) -> Plan:
        """The plans of both, on one grid of times that begins now."""
        taken = np.array([observation.step >= self.steps[briefing.token] for briefing in observation.briefings])
        parts = [(self.first, np.flatnonzero(~taken)), (self.then, np.flatnonzero(taken))]
        parts = [(planner, rows) for planner, rows in parts if len(rows)]
        plans = [_from_now(planner.plan(observation.select(rows))) for planner, rows in parts]
        order = torch.from_numpy(np.argsort(np.concatenate([rows for _, rows in parts])))
        length = min(plan.trajectory.shape[1] for plan in plans)
        poses = torch.cat([plan.trajectory[:, :length].double() for plan in plans])
        times = torch.cat([plan.time_grid()[:, :length] for plan in plans])
        return Plan(poses[order], times[order])


def _from_now(plan: Plan) -> Plan:
    """What the controller follows of a plan, the pose of now first: where it has none, the ego's own."""
    times, poses = plan.time_grid(), plan.trajectory if plan.reference is None else plan.reference
    if bool((times[:, 0] <= 0).all()):
        return Plan(poses, times)
    origin = poses.new_tensor([0.0, 0.0, 1.0, 0.0]).expand(len(poses), 1, 4)
    return Plan(torch.cat((origin, poses), 1), torch.cat((torch.zeros_like(times[:, :1]), times), 1))
