"""For planners that look at one world at a time: no batch, no tensors, poses in the world."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from radp.scenario import Briefing
from radp.sim.controller import PlanError
from radp.sim.observation import Observation
from radp.sim.plan import Plan
from radp.sim.planner import plan_from_world


@dataclass(frozen=True)
class OneWorld:
    """One world: K = 21 samples of history (the last one is now), A objects; world frame, SI units.

    >>> now = radp.OneWorld.of(radp.observe(radp.open_split("sumo14-val")[:2]), 1)
    >>> now.ego.shape, now.agents.shape[0] == 21, now.briefing.token == radp.open_split("sumo14-val").tokens()[1]
    ((21, 11), True, True)
    """

    briefing: Briefing  # map, route, goal and token
    step: int  # samples since the start of the drive
    time_us: np.ndarray  # (K,) int64
    ego: np.ndarray  # (K, 11) columns Ego
    ego_valid: np.ndarray  # (K,) bool
    agents: np.ndarray  # (K, A, 5) columns Box
    agent_valid: np.ndarray  # (K, A) bool
    agent_type: np.ndarray  # (A,) uint8 ObjectType
    agent_size: np.ndarray  # (A, 3) length, width, height
    light_state: np.ndarray  # (C,) uint8 LightState now, in step with `briefing.light_lanes`
    seed: int  # for a planner's randomness, here and now

    @classmethod
    def of(cls, now: Observation, i: int) -> OneWorld:
        """World i of an observation."""
        return cls(
            now.briefings[i], now.step, now.time_us[i], now.ego[i], now.ego_valid[i], now.agents[i],
            now.agent_valid[i], now.agent_type[i], now.agent_size[i], now.light_state[i], int(now.seeds[i]),
        )  # fmt: skip


class OneWorldPlanner(ABC):
    """Write `plan_one`; worlds of a batch are asked one after the other.

    >>> import numpy as np
    >>> class Straight(radp.OneWorldPlanner):
    ...     name = "straight"
    ...     def plan_one(self, now):
    ...         x, y, heading, speed = now.ego[-1, [radp.Ego.X, radp.Ego.Y, radp.Ego.HEADING, radp.Ego.VX]]
    ...         way = speed * 0.1 * np.arange(1, 81)
    ...         return np.stack((x + way * np.cos(heading), y + way * np.sin(heading), np.full(80, heading)), -1)
    >>> split = radp.open_split("sumo14-val")[:1]
    >>> [rollout.failure for rollout in radp.simulate(Straight(), split, agents="nonreactive")]
    [None]
    """

    name: str = "one world"

    @abstractmethod
    def plan_one(self, now: OneWorld) -> np.ndarray:
        """(H, 3) x, y, heading of the rear axle in the world, at 0.1, 0.2, ... s from now; the same H every time."""

    def plan(self, observation: Observation) -> Plan:
        worlds = [OneWorld.of(observation, i) for i in range(len(observation))]
        poses = [np.asarray(self.plan_one(world), dtype=np.float64) for world in worlds]
        for one in poses:
            if one.ndim != 2 or one.shape[1] != 3 or not len(one):
                raise PlanError(f"the plan of one world has shape {one.shape}, expected (H, 3)")
            if one.shape != poses[0].shape:
                raise PlanError(f"plans have {len(poses[0])} and {len(one)} poses, expected as many in every world")
        return plan_from_world(observation, np.stack(poses))
