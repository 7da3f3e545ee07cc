"""The published planners in our closed loop."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from radp.planners.pdm.planner import PDMClosedPlanner
from radp.planners.zoo.batch import Sample, collate
from radp.planners.zoo.kinds import KINDS, ZooKind, times_of
from radp.planners.zoo.pdm_features import pdm_sample
from radp.planners.zoo.pdm_open import POSE_STEP, POSES
from radp.planners.zoo.vector_features import PLANTF_REACH_KNOWING, vector_sample
from radp.planners.zoo.view import views_of
from radp.sim.observation import Observation
from radp.sim.plan import STEP_SECONDS, Plan

KEPT = 21  # poses of PDM-Closed that PDM-Hybrid keeps: now and 2 s


class ZooPlanner:
    """A published network that plans anew at every step; worlds of a batch run through it together."""

    deterministic: ClassVar[bool] = True

    def __init__(self, kind: ZooKind, model: nn.Module, name: str | None = None) -> None:
        self.kind, self.model, self.name = kind, model.eval(), name or kind.name
        knows = getattr(getattr(model, "config", None), "categories", False)
        self.sample = partial(vector_sample, reach=PLANTF_REACH_KNOWING) if knows else kind.sample

    def plan(self, observation: Observation) -> Plan:
        """B worlds -> plans in the ego frames of now."""
        poses = self.poses([self.sample(view) for view in views_of(observation)])
        return plan_of(poses, times_of(self.kind, poses.shape[1]))

    @torch.no_grad()
    def poses(self, samples: list[Sample]) -> Tensor:
        """B samples -> (B, H, 3) x, y, heading."""
        batch = collate(samples)
        return self.kind.poses(self.model(batch), batch)


class PDMHybridPlanner(ZooPlanner):
    """PDM-Closed for the first 2 s, PDM-Offset's correction of its plan for the rest."""

    def __init__(
        self, kind: ZooKind, model: nn.Module, name: str | None = None, closed: PDMClosedPlanner | None = None
    ) -> None:
        super().__init__(kind, model, name)
        self.closed = closed or PDMClosedPlanner()

    def plan(self, observation: Observation) -> Plan:
        first = self.closed.plan(observation)
        samples = [pdm_sample(view, _in_world(first, b, view.pose)) for b, view in enumerate(views_of(observation))]
        return fuse(first, self.poses(samples))


def plan_of(poses: Tensor, times: Tensor) -> Plan:
    """poses (B, H, 3) x, y, heading in the ego frame, times (H,) s -> Plan."""
    trajectory = torch.cat((poses[..., :2], poses[..., 2:].cos(), poses[..., 2:].sin()), -1)
    return Plan(trajectory, times.expand(poses.shape[:2]))


def fuse(closed: Plan, offset: Tensor) -> Plan:
    """PDM-Closed's 81 poses and PDM-Offset's (B, 16, 3) -> 33 poses: 0 ... 2.0 s and 2.5 ... 8.0 s."""
    later = plan_of(offset, POSE_STEP * torch.arange(1, POSES + 1, dtype=torch.float64))
    begin = round((KEPT - 1) * STEP_SECONDS / POSE_STEP)
    times = torch.cat((closed.time_grid()[:, :KEPT], later.time_grid()[:, begin:]), 1)
    return Plan(torch.cat((closed.trajectory[:, :KEPT], later.trajectory[:, begin:].double()), 1), times)


def _in_world(plan: Plan, b: int, pose: np.ndarray) -> np.ndarray:
    """(n, 4): seconds, x, y, heading in the world of the plan of world b."""
    x, y, c, s = plan.trajectory[b].double().numpy().T
    heading = np.arctan2(s, c) + pose[2]
    cos, sin = np.cos(pose[2]), np.sin(pose[2])
    place = pose[0] + cos * x - sin * y, pose[1] + sin * x + cos * y
    return np.column_stack((plan.time_grid()[b].numpy(), *place, heading))


def make_planner(kind: str, model: nn.Module, name: str | None = None, **options: object) -> ZooPlanner:
    """The planner of a kind around a network."""
    if kind == "pdm-hybrid":
        return PDMHybridPlanner(KINDS[kind], model, name, **options)  # type: ignore[arg-type]
    return ZooPlanner(KINDS[kind], model, name, **options)
