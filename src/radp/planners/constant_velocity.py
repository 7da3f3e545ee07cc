"""Straight ahead at the present speed: the plan of someone who sees nothing."""

from __future__ import annotations

import numpy as np
import torch

from radp.scenario import Ego
from radp.sim.observation import Observation
from radp.sim.plan import Plan

INTERVAL = 0.25  # s
STATES = 33  # now and the next 8 s


class ConstantVelocityPlanner:
    """33 poses every 0.25 s from the current rear axle along the current heading; speed = vx of the rear axle."""

    name = "constant_velocity"
    deterministic = True

    def plan(self, observation: Observation) -> Plan:
        """B worlds -> plans of 33 poses with their times."""
        times = np.arange(STATES) * INTERVAL
        trajectory = np.zeros((len(observation), STATES, 4))
        trajectory[..., 0] = observation.ego[:, -1, Ego.VX, None] * times
        trajectory[..., 2] = 1.0
        grid = np.broadcast_to(times, (len(observation), STATES)).copy()
        return Plan(torch.from_numpy(trajectory), torch.from_numpy(grid))
