"""What the rules need to know of a scene: the other road users over the horizon, the route, the ego now."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import normalize

from radp.geometry.frames import pose_frame
from radp.rules.motion import STEP, Motion, motion_of
from radp.rules.route import Match, Route
from radp.scenario.vehicle import PACIFICA
from radp.scene.scene import AGENT_VELOCITY, POSE, AgentColumn, EgoColumn, Scene, StaticColumn, present

EGO_WIDTH, EGO_LENGTH = PACIFICA.width, PACIFICA.length
REAR_TO_CENTER, FRONT = PACIFICA.rear_axle_to_center, PACIFICA.front_length
NOMINAL_ACCELERATION = 0.5  # m/s2, of the reachable progress
STOP_BUFFER = 2.0  # m kept before a red stop line


@dataclass(frozen=True)
class RuleContext:
    """B scenes, N other road users, H steps; ego frame, metres. Nothing in it carries a gradient."""

    agents: Tensor  # (B, N, H + 1, 4) x, y, cos, sin of the box centre; index 0 is now
    agent_size: Tensor  # (B, N, 2) length, width
    agent_valid: Tensor  # (B, N, H + 1) bool
    route: Route
    speed_now: Tensor  # (B,) m/s
    accel_now: Tensor  # (B,) m/s2, along the heading
    dynamics_known: Tensor  # (B,) bool: whether the scene tells speed and acceleration
    target: Tensor  # (B,) progress that the goal asks for [m]
    bound: Match | None = None  # of the plan that the rules look at
    bound_now: Match | None = None  # (B, 1) of the ego now
    bound_motion: Motion | None = None  # of that plan, differentiable

    @classmethod
    @torch.no_grad()
    def from_scene(
        cls, scene: Scene, predictions: Tensor | None = None, *, logged: bool = False, horizon: int = 80
    ) -> RuleContext:
        """At run time: `predictions` (B, K, H, 4) of the planner for the first K agents, the others go straight on.

        With `logged`, in training: agents and goal from the futures in the scene.
        """
        ego = scene.ego_current_state
        dynamics = ego[:, EgoColumn.VX :]
        speed = dynamics[:, :2].norm(dim=-1)
        context = cls(
            *_agents(scene, predictions, logged, horizon),
            route=Route.from_scene(scene),
            speed_now=speed,
            accel_now=ego[:, EgoColumn.AX],
            dynamics_known=(dynamics != 0).any(-1),
            target=torch.zeros_like(speed),
        )
        return replace(context, target=_target(context, scene, logged, horizon))

    def motion(self, trajectory: Tensor) -> Motion:
        """Finite differences of a plan (B, H, 4): the bound ones, or fresh ones."""
        if self.bound_motion is not None:
            return self.bound_motion
        return motion_of(trajectory, self.speed_now, self.accel_now, self.dynamics_known)

    def motions(self, copies: Tensor) -> list[Motion]:
        """Copies (K, B, H, 4) of a plan -> the motion of each, computed in one go."""
        count, batch = copies.shape[:2]
        now = (value.repeat(count) for value in (self.speed_now, self.accel_now, self.dynamics_known))
        motion = motion_of(copies.flatten(0, 1), *now)
        return [motion.plans(k * batch, (k + 1) * batch) for k in range(count)]

    def match(self, trajectory: Tensor) -> Match:
        """Where the plan lies on the route: the bound match, or a fresh one."""
        return self.bound if self.bound is not None else self.route.match(trajectory[..., :2].detach())

    def bind(self, trajectory: Tensor) -> RuleContext:
        """The context with the match of this plan, and of the ego now, computed once for all rules."""
        plan = trajectory[..., :2].detach()
        match = self.route.match(torch.cat((torch.zeros_like(plan[:, :1]), plan), 1))
        return replace(self, bound=match.steps(1, plan.shape[1] + 1), bound_now=match.steps(0, 1))

    def progress_now(self, like: Tensor) -> Tensor:
        """(B, 1) progress of the ego now, in the type of `like` (B, ...)."""
        origin = like.new_zeros(like.shape[0], 1, 2)
        return (self.bound_now or self.route.match(origin)).progress(origin)


def _agents(scene: Scene, predictions: Tensor | None, logged: bool, horizon: int) -> tuple[Tensor, Tensor, Tensor]:
    """Road users then static objects: poses (B, N, H + 1, 4), sizes (B, N, 2), valid (B, N, H + 1)."""
    now = scene.neighbor_agents_past[:, :, -1]
    here = present(now[..., : AGENT_VELOCITY.stop])
    poses = _constant_velocity(now, horizon)
    valid = here.unsqueeze(-1).repeat(1, 1, horizon + 1)
    if logged and scene.neighbor_agents_future is not None:
        future = scene.neighbor_agents_future[:, : poses.shape[1], :horizon]
        count = future.shape[1]
        poses[:, :count, 1:] = pose_frame(future)
        valid[:, :count, 1:] &= present(future)
    elif predictions is not None:
        count = min(predictions.shape[1], poses.shape[1])
        told = predictions[:, :count, :horizon].to(poses.dtype)
        poses[:, :count, 1:] = torch.cat((told[..., :2], normalize(told[..., 2:], dim=-1)), -1)
    still = scene.static_objects
    sizes = torch.cat((now[..., [AgentColumn.LENGTH, AgentColumn.WIDTH]],
                       still[..., [StaticColumn.LENGTH, StaticColumn.WIDTH]]), 1)  # fmt: skip
    still_poses = still[..., POSE].unsqueeze(2).expand(-1, -1, horizon + 1, -1)
    still_valid = present(still).unsqueeze(-1).expand(-1, -1, horizon + 1)
    return torch.cat((poses, still_poses), 1), sizes, torch.cat((valid, still_valid), 1)


def _constant_velocity(now: Tensor, horizon: int) -> Tensor:
    """(B, A, 11) -> (B, A, H + 1, 4)."""
    time = torch.arange(horizon + 1, dtype=now.dtype, device=now.device) * STEP
    xy = now[..., None, :2] + time[:, None] * now[..., None, AGENT_VELOCITY]
    return torch.cat((xy, now[..., None, 2:4].expand(*xy.shape[:-1], 2)), -1)


def _target(context: RuleContext, scene: Scene, logged: bool, horizon: int) -> Tensor:
    """s* (B,): the expert's own progress in training; otherwise what is reachable, up to the route's end.

    A red light ahead caps it so that the front bumper stops 2 m before the line.
    """
    if logged and scene.ego_agent_future is not None:
        future = scene.ego_agent_future[:, :horizon]
        steps = torch.arange(1, future.shape[1] + 1, device=future.device)
        last = (present(future) * steps).amax(-1)  # 0 where nothing is known: then the target is where the ego is
        end = future.gather(1, (last - 1).clamp(min=0)[:, None, None].expand(-1, 1, 2)) * (last > 0)[:, None, None]
        target = context.route.match(end).progress(end)[:, 0]
    else:
        time = horizon * STEP
        reachable = context.speed_now * time + 0.5 * NOMINAL_ACCELERATION * time**2
        target = torch.minimum(reachable, context.route.end)
    stop = context.route.stop_line(minimum=FRONT) - FRONT - STOP_BUFFER
    return torch.minimum(target, stop)
