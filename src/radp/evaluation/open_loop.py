"""Open loop: how far a planner's plan is from what the expert then drove."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from radp.scenario import Scenario
from radp.scene.builder import FUTURE, ego_future
from radp.sim.planner import Planner, start_planner
from radp.sim.replay import observe_logs

HORIZONS = (3, 5, 8)  # s


@dataclass(frozen=True)
class Displacement:
    """One plan: its poses (80, 2) and the expert's in the ego frame, and the distances (80,) between them [m]."""

    token: str
    plan: np.ndarray
    expert: np.ndarray
    distance: np.ndarray

    def average(self, seconds: int) -> float:
        """Mean distance up to a horizon (ADE)."""
        return float(self.distance[: 10 * seconds].mean())

    def final(self, seconds: int) -> float:
        """Distance at a horizon (FDE)."""
        return float(self.distance[10 * seconds - 1])


def displacements(planner: Planner, scenarios: Sequence[Scenario], step: int = 0, seed: int = 0) -> list[Displacement]:
    """The plan of each log at `step` samples after its start, against the 8 s that the expert drove."""
    found = []
    for scenario in scenarios:
        start_planner(planner, (scenario,))
        plan = planner.plan(observe_logs([scenario], step, seed)).on_grid(FUTURE)[0, :, :2].double().numpy()
        expert = ego_future(scenario.ego, scenario.start + step)[:, :2]
        found.append(Displacement(scenario.token, plan, expert, np.hypot(*(plan[: len(expert)] - expert).T)))
    return found
