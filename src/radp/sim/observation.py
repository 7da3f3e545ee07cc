"""What the world shows at one moment, in the world frame: the only thing a planner is given in closed loop."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from radp.scenario import Briefing, Scenario

HISTORY = 21  # samples: 2 s at 10 Hz and the present


@dataclass(frozen=True)
class Observation:
    """B worlds in lock step, K = 21 samples of history (the last one is now), A = most objects of any world.

    Arrays may be views of the simulator's memory: read them, do not write. Nothing here is of the future.

    >>> now = radp.observe(radp.open_split("sumo14-val")[:2], step=10)
    >>> len(now), now.ego.shape, now.agents.shape[:2]
    (2, (2, 21, 11), (2, 21))
    """

    briefings: tuple[Briefing, ...]  # map, route, goal and token of each world, the same objects at every step
    step: int  # samples since the start of the drive, the same for all worlds
    time_us: np.ndarray  # (B, K) int64
    ego: np.ndarray  # (B, K, 11) columns Ego
    ego_valid: np.ndarray  # (B, K) bool
    agents: np.ndarray  # (B, K, A, 5) columns Box
    agent_valid: np.ndarray  # (B, K, A) bool
    agent_type: np.ndarray  # (B, A) uint8 ObjectType
    agent_size: np.ndarray  # (B, A, 3) length, width, height
    light_state: tuple[np.ndarray, ...]  # B rows (C,) uint8 LightState now, in step with `light_lanes` of the briefing
    seeds: np.ndarray  # (B,) uint64: a planner's randomness for this world at this step, whatever the batch

    def __len__(self) -> int:
        return len(self.briefings)

    def select(self, rows: np.ndarray) -> Observation:
        """The worlds `rows` (indices) only."""
        return Observation(
            tuple(self.briefings[int(i)] for i in rows), self.step, self.time_us[rows], self.ego[rows],
            self.ego_valid[rows], self.agents[rows], self.agent_valid[rows], self.agent_type[rows],
            self.agent_size[rows], tuple(self.light_state[int(i)] for i in rows), self.seeds[rows],
        )  # fmt: skip

    def lights(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """World i: lane indices (C,) and LightState (C,) of the lights now."""
        return self.briefings[i].light_lanes, self.light_state[i]


def lights_at(scenario: Scenario, step: int) -> np.ndarray:
    """(C,) LightState at a step of the drive, the last known ones after the log's end.

    A copy, since a view would lead to the lights of the future.
    """
    return scenario.lights.state[min(scenario.start + step, len(scenario.lights.state) - 1)].copy()
