"""A planner of a user's: wanders with the randomness it is given, slowly if asked, and notes what it was asked for."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from radp.scenario import Scenario
from radp.sim.observation import Observation
from radp.sim.plan import Plan


class WanderingPlanner:
    name = "wandering"

    def start(self, scenarios: Sequence[Scenario]) -> None:
        if "RADP_TEST_NOTES" in os.environ:
            with Path(os.environ["RADP_TEST_NOTES"]).open("a") as notes:
                notes.writelines(f"{scenario.token}\n" for scenario in scenarios)

    def plan(self, observation: Observation) -> Plan:
        time.sleep(float(os.environ.get("RADP_TEST_SLEEP", "0")))
        trajectory = np.zeros((len(observation), 40, 4))
        for b, briefing in enumerate(observation.briefings):
            if briefing.token == os.environ.get("RADP_TEST_DIES_ON"):
                os.kill(os.getpid(), 9)
            if briefing.token == os.environ.get("RADP_TEST_HANGS_ON") and observation.step == 2:
                while "RADP_TEST_HANGS_IN_C" not in os.environ:
                    pass
                ctypes.PyDLL(None).sleep(10_000)  # with the interpreter's lock held: no thread of Python can help
            if briefing.token == os.environ.get("RADP_TEST_FAILS_ON") and observation.step == 2:
                raise ValueError("lost")
            speed = 5.0 + np.random.default_rng(int(observation.seeds[b])).normal()
            trajectory[b, :, 0] = 0.1 * speed * np.arange(1, 41)
        trajectory[..., 2] = 1.0
        return Plan(torch.from_numpy(trajectory).float())
