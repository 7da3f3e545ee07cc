"""What a planner answers with."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from radp.scenario import DT

STEP_SECONDS = DT  # between two poses of a plan


@dataclass(frozen=True)
class Plan:
    """B plans of H poses: trajectory (B, H, 4) = x, y, cos, sin of the REAR AXLE [m], in the ego frame of now.

    times (B, H): seconds from now, increasing; None means 0.1, 0.2, ... A first time of 0 is the plan's own idea of
    the present pose; otherwise the current pose is put in front of the plan before it is tracked.

    >>> import torch
    >>> still = torch.tensor([0.0, 0.0, 1.0, 0.0]).expand(3, 80, 4)  # three worlds stay where they are, for 8 s
    >>> radp.Plan(still).time_grid()[0, -1].item()
    8.0
    """

    trajectory: Tensor
    times: Tensor | None = None
    reference: Tensor | None = None  # (B, H, 4) what the controller follows, at the same times, if not the trajectory
    predictions: Tensor | None = None  # (B, K, H, 4) box centres of neighbours, same frame and times
    pressure: Tensor | None = None  # (B, M) rule pressures that the planner itself reports with its plan
    exact_pressure: Tensor | None = None  # (B, M) those of the exact teacher about the same plan
    rule_cost: Tensor | None = None  # (B, M) raw costs J_i of the same rules
    rules: tuple[str, ...] = ()  # names of the M rules; empty where nobody named them
    agent_share: Tensor | None = None  # (B, N) share of each object of the scene in the collision pressure
    predicted_tracks: Tensor | None = None  # (B, K) object of the observation that a prediction is about, -1: nobody
    share_tracks: Tensor | None = None  # (B, N) object of the observation that has the share, -1: nobody
    seam_share: Tensor | None = None  # (B, M) share of the first three steps in each exact pressure's squared gradient

    def time_grid(self) -> Tensor:
        """(B, H) seconds, float64."""
        if self.times is not None:
            return self.times.to(torch.float64)
        batch, horizon = self.trajectory.shape[:2]
        grid = torch.arange(1, horizon + 1, dtype=torch.float64) * STEP_SECONDS
        return grid.expand(batch, horizon)

    def on_grid(self, horizon: int = 80) -> Tensor:
        """(B, horizon, 4): the poses at 0.1, 0.2, ... s, whatever times the plan has; straight on after its end."""
        if self.times is None and self.trajectory.shape[1] == horizon:
            return self.trajectory
        batch = self.trajectory.shape[0]
        origin = self.trajectory.new_tensor([0.0, 0.0, 1.0, 0.0]).expand(batch, 1, 4)
        times, poses = self.time_grid(), self.trajectory
        if bool((times[:, 0] > 0).all()):
            times, poses = torch.cat((torch.zeros_like(times[:, :1]), times), 1), torch.cat((origin, poses), 1)
        wanted = (torch.arange(1, horizon + 1, dtype=times.dtype) * STEP_SECONDS).expand(batch, horizon).contiguous()
        after = torch.searchsorted(times.contiguous(), wanted).clamp(1, times.shape[1] - 1)
        t0, t1 = times.gather(1, after - 1), times.gather(1, after)
        rows = torch.arange(batch).unsqueeze(1)
        share = ((wanted - t0) / (t1 - t0)).to(poses.dtype).unsqueeze(-1)
        start, end = poses[rows, after - 1], poses[rows, after]
        xy = start[..., :2] + share * (end[..., :2] - start[..., :2])
        h0, h1 = (torch.atan2(p[..., 3], p[..., 2]) for p in (start, end))
        turn = torch.remainder(h1 - h0 + torch.pi, 2 * torch.pi) - torch.pi
        heading = h0 + share.squeeze(-1).clamp(max=1.0) * turn
        return torch.cat((xy, torch.stack((heading.cos(), heading.sin()), -1)), -1)
