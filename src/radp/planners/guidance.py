"""Guidance by energy: gradients that pull a plan while it is denoised. Here the published collision energy."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from radp.geometry.boxes import axis_gaps, make_boxes
from radp.geometry.frames import rotate, rotate_back, shift_forward
from radp.scene.scene import COS_SIN, POSE, XY, AgentColumn, Scene, present

EGO_LENGTH, EGO_WIDTH = 5.176, 2.297  # m
REAR_AXLE_TO_CENTRE = 1.67  # m, as the published guidance has it
INFLATION = 1.0  # m, added to the length and width of every box
SAFE_DISTANCE = 1.0  # m
ENERGY_SCALE = 3.0
KERNEL_TAPS, KERNEL_REACH = 21, 2.0
COUNT_FLOOR = 1e-5


@dataclass(frozen=True)
class CollisionGuidance:
    """sizes (B, N, 2) length and width in metres, missing (B, N) bool, of the predicted neighbours of B scenes.

    Call with trajectories (C, 1 + N, 81, 4) in metres, C a multiple of B (samples of a scene in a row).
    """

    sizes: Tensor
    missing: Tensor

    @staticmethod
    def of_scene(scene: Scene, neighbours: int = 10) -> CollisionGuidance:
        """From a Scene in metres."""
        now = scene.neighbor_agents_past[:, :neighbours, -1]
        sizes = now[..., [AgentColumn.LENGTH, AgentColumn.WIDTH]]
        return CollisionGuidance(sizes, ~present(now[..., POSE]))

    def __call__(self, trajectories: Tensor, time: float) -> Tensor:
        """-> (C, 1 + N, 81, 4): gradient of the energy; only the ego's x and y have one."""
        gradient = torch.zeros_like(trajectories)
        gradient[:, 0, :, XY] = ENERGY_SCALE * self.push(trajectories)
        return gradient

    def push(self, trajectories: Tensor) -> Tensor:
        """-> (C, 81, 2): gradient of the reward by the ego's positions, across the heading only, smoothed over time.

        No value moves along the heading, so the plan is pushed sideways but neither braked nor hastened.
        """
        heading = F.normalize(trajectories[:, 0, :, COS_SIN].detach(), dim=-1)
        cos, sin = heading.unbind(-1)
        across = rotate_back(self._reward_gradient(trajectories), cos, sin)[..., 1]
        offsets = torch.linspace(-KERNEL_REACH, KERNEL_REACH, KERNEL_TAPS, device=across.device, dtype=across.dtype)
        kernel = torch.exp(-(offsets**2) / 4).view(1, 1, -1)
        padded = F.pad(across.unsqueeze(1), (KERNEL_TAPS // 2, KERNEL_TAPS // 2), mode="replicate")
        smooth = F.conv1d(padded, kernel).squeeze(1)
        return rotate(torch.stack((torch.zeros_like(smooth), smooth), -1), cos, sin)

    def _reward_gradient(self, trajectories: Tensor) -> Tensor:
        """-> (C, 81, 2): d reward / d (x, y) of the ego; zero at step 0, the current pose."""
        with torch.inference_mode(False), torch.enable_grad():
            states = trajectories.clone().detach()
            ego_xy = states[:, 0, :, XY].clone().requires_grad_()
            reward = self._reward(ego_xy, states).sum()
            return torch.autograd.grad(reward, ego_xy)[0]

    def _reward(self, ego_xy: Tensor, states: Tensor) -> Tensor:
        """ego_xy (C, 81, 2), states (C, 1 + N, 81, 4) -> (C,): -exp(mean strong overlap + mean weak nearness)."""
        draws = states.shape[0] // self.sizes.shape[0]
        size = (self.sizes + INFLATION).repeat_interleave(draws, 0)[:, :, None]  # (C, N, 1, 2)
        there = ~self.missing.repeat_interleave(draws, 0)[:, :, None]  # (C, N, 1)
        heading = F.normalize(states[..., 1:, COS_SIN], dim=-1)
        poses = torch.cat((states[:, 1:, 1:, XY], heading[:, 1:]), -1)
        neighbours = make_boxes(poses, size[..., 0], size[..., 1])
        ego_pose = shift_forward(torch.cat((ego_xy[:, 1:], heading[:, 0]), -1), REAR_AXLE_TO_CENTRE)
        ego = make_boxes(ego_pose, EGO_LENGTH + INFLATION, EGO_WIDTH + INFLATION).unsqueeze(1)
        closeness = (1 - box_distance(ego, neighbours) / SAFE_DISTANCE).clamp(min=0)
        strong = _mean_over(closeness, there & (closeness > 1))
        weak = _mean_over(closeness, there & (closeness > 0) & (closeness <= 1))
        return -torch.exp(strong + weak)


def box_distance(a: Tensor, b: Tensor) -> Tensor:
    """(..., 6) boxes -> (...): the largest gap if all are negative (overlap), else the SMALLEST that is not (m).

    The second half differs from the usual separation by axes; it is what the published guidance does.
    """
    gaps = axis_gaps(a, b)
    apart = (gaps >= 0).any(-1)
    nearest = gaps.masked_fill(gaps < 0, torch.inf).amin(-1)
    return torch.where(apart, nearest, gaps.amax(-1))


def _mean_over(values: Tensor, chosen: Tensor) -> Tensor:
    """(C, N, T), bool -> (C,): mean over the chosen entries of a sample, 0 if there are none."""
    return (values * chosen).sum((1, 2)) / (chosen.sum((1, 2)) + COUNT_FLOOR)
