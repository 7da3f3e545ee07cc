"""What every planner is: an object with a name and one method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import torch

from radp.geometry.frames import heading_vector, points_to_frame, pose_frame, rotate_back
from radp.runs.allowance import Allowance, deadline
from radp.scenario import Ego, Scenario
from radp.sim.observation import Observation
from radp.sim.plan import Plan


@runtime_checkable
class Planner(Protocol):
    """Plans for B worlds at once: world b's plan may depend on world b alone, never on the rest of the batch.

    A planner may also have `start(scenarios)`, which is called once for each batch before its first step. That call is
    privileged: scenarios hold the whole log. Only planners that replay the log may use what lies ahead in it; any other
    planner that does cheats.

    A planner that draws nothing from `observation.seeds` may say so with `deterministic = True`: it is then driven once
    where others are driven with several seeds.
    """

    @property
    def name(self) -> str: ...

    def plan(self, observation: Observation) -> Plan:
        """Observation of B worlds -> B plans in the ego frames of now."""
        ...


def start_planner(planner: Planner, scenarios: Sequence[Scenario]) -> None:
    """Hand a planner the scenarios that come, if it has `start`."""
    start = getattr(planner, "start", None)
    if start is not None:
        start(scenarios)


class TimedPlanner:
    """A planner that ends its process if an answer takes longer than so many seconds; see `runs.allowance.deadline`."""

    def __init__(self, planner: Planner, seconds: float) -> None:
        self.planner, self.seconds = planner, seconds

    @property
    def name(self) -> str:
        return self.planner.name

    def start(self, scenarios: Sequence[Scenario]) -> None:
        with deadline(self.seconds):
            start_planner(self.planner, scenarios)

    def plan(self, observation: Observation) -> Plan:
        with deadline(self.seconds):
            return self.planner.plan(observation)


def timed_allowance(seconds: float | None) -> Allowance | None:
    """For pieces of work that drive a TimedPlanner: they need processes of their own, and nothing is bounded but it."""
    said = f"the planner gave no answer within {seconds} s, and was stopped"
    return None if seconds is None else Allowance(stopped=said)


def is_random(planner: Planner) -> bool:
    """Whether another seed may give another drive; a planner that does not say counts as random."""
    return not getattr(planner, "deterministic", False)


def plan_from_world(observation: Observation, poses: np.ndarray, times: np.ndarray | None = None) -> Plan:
    """poses (B, H, 3): x, y, heading of the rear axle in the WORLD; times (B, H) seconds from now -> Plan, float64."""
    return plan_from_poses(observation.ego[:, -1, : Ego.HEADING + 1], poses, times)


def plan_from_poses(now: np.ndarray, poses: np.ndarray, times: np.ndarray | None = None) -> Plan:
    """`plan_from_world` for rear axles that are at `now` (B, 3)."""
    frame = pose_frame(torch.from_numpy(np.ascontiguousarray(now, dtype=np.float64))).unsqueeze(1)
    world = torch.from_numpy(np.ascontiguousarray(poses, dtype=np.float64))
    direction = rotate_back(heading_vector(world[..., 2]), frame[..., 2], frame[..., 3])
    trajectory = torch.cat((points_to_frame(world[..., :2], frame), direction), -1)
    return Plan(trajectory, None if times is None else torch.from_numpy(np.array(times, dtype=np.float64)))
