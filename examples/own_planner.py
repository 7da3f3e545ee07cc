"""A planner of your own: a class with a name and one method.

    python examples/own_planner.py
    radp simulate --planner examples/own_planner.py:CarefulPlanner --scenarios sumo14-val --out runs/careful

It goes straight ahead, at its present speed as long as nothing is in the way, and brakes gently otherwise.
"""

from __future__ import annotations

import numpy as np
import torch

import radp
from radp import Box, Ego, Observation, Plan


class CarefulPlanner:
    """Options of the constructor are given where the planner is loaded: load_planner("...:CarefulPlanner", brake=2)."""

    name = "careful"

    def __init__(self, sight: float = 3.0, brake: float = 1.5) -> None:
        self.sight = sight  # seconds ahead in which something may be in the way
        self.brake = brake  # m/s2

    def plan(self, observation: Observation) -> Plan:
        """B worlds -> 80 poses each, 0.1 s apart, in the ego frame: x forward, y left, cos and sin of the heading."""
        speed = observation.ego[:, -1, Ego.VX, None]  # (B, 1), the last sample is now
        decel = np.where(self.is_blocked(observation), self.brake, 1e-9)[:, None]
        time = np.minimum(np.arange(1, 81) * 0.1, speed / decel)  # it stands after speed / decel seconds
        trajectory = np.zeros((len(observation), 80, 4))
        trajectory[..., 0] = speed * time - 0.5 * decel * time**2
        trajectory[..., 2] = 1.0
        return Plan(torch.from_numpy(trajectory))

    def is_blocked(self, observation: Observation) -> np.ndarray:
        """(B,): whether an object is less than `sight` seconds ahead and less than 2 m to the side."""
        ego = observation.ego[:, -1, None, :]  # (B, 1, 11)
        agents = observation.agents[:, -1]  # (B, A, 5)
        dx, dy = agents[..., Box.X] - ego[..., Ego.X], agents[..., Box.Y] - ego[..., Ego.Y]
        cos, sin = np.cos(ego[..., Ego.HEADING]), np.sin(ego[..., Ego.HEADING])
        ahead, aside = cos * dx + sin * dy, cos * dy - sin * dx
        near = (ahead > 0.0) & (ahead < 8.0 + self.sight * ego[..., Ego.VX]) & (np.abs(aside) < 2.0)
        return (near & observation.agent_valid[:, -1]).any(axis=1)


if __name__ == "__main__":
    worlds = radp.open_split("sumo14-val@every-40")
    for planner in (CarefulPlanner(), radp.load_planner("constant_velocity")):
        scores = [result.score for result in radp.score(radp.simulate(planner, worlds, agents="reactive"))]
        print(f"{planner.name:18s} {100 * np.mean(scores):5.1f}")
