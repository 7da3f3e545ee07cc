"""What the world shows at one moment, in the world frame: the only thing a planner is given in closed loop."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from radp.scenario import Scenario

HISTORY = 21  # samples: 2 s at 10 Hz and the present


@dataclass(frozen=True)
class Observation:
    """B worlds in lock step, K = 21 samples of history (the last one is now), A = most objects of any world.

    Arrays may be views of the simulator's memory: read them, do not write. `scenarios` gives map, route, goal and
    lights up to now; its log of the future is for planners that replay the log, nobody else.
    """

    scenarios: tuple[Scenario, ...]
    step: int  # samples since the start of the drive, the same for all worlds
    time_us: np.ndarray  # (B, K) int64
    ego: np.ndarray  # (B, K, 11) columns Ego
    ego_valid: np.ndarray  # (B, K) bool
    agents: np.ndarray  # (B, K, A, 5) columns Box
    agent_valid: np.ndarray  # (B, K, A) bool
    agent_type: np.ndarray  # (B, A) uint8 ObjectType
    agent_size: np.ndarray  # (B, A, 3) length, width, height
    seeds: np.ndarray  # (B,) uint64: a planner's randomness for this world at this step, whatever the batch

    def __len__(self) -> int:
        return len(self.scenarios)

    def select(self, rows: np.ndarray) -> Observation:
        """The worlds `rows` (indices) only."""
        return Observation(
            tuple(self.scenarios[int(i)] for i in rows), self.step, self.time_us[rows], self.ego[rows],
            self.ego_valid[rows], self.agents[rows], self.agent_valid[rows], self.agent_type[rows],
            self.agent_size[rows], self.seeds[rows],
        )  # fmt: skip

    def lights(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """World i: lane indices (C,) and LightState (C,) of the lights now."""
        scenario = self.scenarios[i]
        return scenario.lights.lane, scenario.lights.state[scenario.start + self.step]
