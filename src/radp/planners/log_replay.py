"""The expert's own drive as a plan: what a perfect imitator would ask the controller for."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from radp.scenario import Briefing, Ego, Scenario
from radp.sim.observation import Observation
from radp.sim.plan import STEP_SECONDS, Plan
from radp.sim.planner import plan_from_world

STATES = 81  # now and the next 8 s


class LogReplayPlanner:
    """At step i the expert's states i..i+80 with their own times; the first one (time 0) is the expert's pose now.

    Where the log ends, single steps of constant velocity follow, 0.1 s apart. The log comes through `start`.
    """

    name = "log_replay"
    deterministic = True

    def __init__(self) -> None:
        self._logs: dict[Briefing, Scenario] = {}

    def start(self, scenarios: Sequence[Scenario]) -> None:
        """Take the logs of the drives that come."""
        self._logs = {scenario.briefing: scenario for scenario in scenarios}

    def plan(self, observation: Observation) -> Plan:
        """B worlds -> plans of 81 poses."""
        unknown = [briefing.token for briefing in observation.briefings if briefing not in self._logs]
        if unknown:
            raise ValueError(f"log_replay has no log of {unknown[0]!r}: start(scenarios) comes before plan")
        futures = [_expert_future(self._logs[briefing], observation.step) for briefing in observation.briefings]
        poses, times = (np.stack(arrays) for arrays in zip(*futures))
        return plan_from_world(observation, poses, times)


def _expert_future(scenario: Scenario, step: int) -> tuple[np.ndarray, np.ndarray]:
    """poses (81, 3) x, y, heading in the world; times (81,) seconds after the frame of `step`."""
    first = min(scenario.start + step, len(scenario.time_us) - 1)
    known = scenario.ego[first : first + STATES]
    times = (scenario.time_us[first : first + STATES] - scenario.time_us[first]) * 1e-6
    missing = np.arange(1, STATES - len(known) + 1)
    last = known[-1]
    stride = last[Ego.VX] * STEP_SECONDS * missing
    x = last[Ego.X] + stride * math.cos(last[Ego.HEADING])
    y = last[Ego.Y] + stride * math.sin(last[Ego.HEADING])
    padding = np.stack((x, y, np.full(len(missing), last[Ego.HEADING])), -1)
    return (
        np.concatenate((known[:, : Ego.HEADING + 1], padding)),
        np.concatenate((times, times[-1] + STEP_SECONDS * missing)),
    )
