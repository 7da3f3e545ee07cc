"""What the rules need to know of a scene: the other road users over the horizon, the route, the ego now."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import normalize

from radp.geometry.frames import pose_frame
from radp.rules.body import FRONT, body_corners
from radp.rules.motion import Motion, motion_of
from radp.rules.route import Match, Route
from radp.rules.surroundings import PlanSurroundings
from radp.runtime.geometry import NOMINAL_ACCELERATION
from radp.scenario.vehicle import PACIFICA, Vehicle
from radp.scene.scene import (
    COS_SIN,
    OBJECT_MOTION,
    OBJECT_SIZE,
    OBJECT_VELOCITY,
    XY,
    EgoColumn,
    RoadView,
    RuleView,
    Scene,
    map_tensors,
    present,
)
from radp.sim.plan import STEP_SECONDS

STOP_BUFFER = 2.0  # m kept before a red stop line


@dataclass(frozen=True)
class RuleContext:
    """B scenes, N other road users and static objects, H steps; ego frame, metres. Nothing in it carries a gradient.

    >>> scene = radp.build_scenes(radp.observe(radp.open_split("sumo14-val")[:2]))
    >>> context = radp.RuleContext.from_scene(scene)
    >>> context.agents.shape[2:], context.vehicle.width
    (torch.Size([81, 4]), 2.297)
    """

    vehicle: ClassVar[Vehicle] = PACIFICA  # the ego's size
    agents: Tensor  # (B, N, H + 1, 4) x, y, cos, sin of the box centre; index 0 is now
    agent_size: Tensor  # (B, N, 2) length, width
    agent_valid: Tensor  # (B, N, H + 1) bool
    route: Route
    speed_now: Tensor  # (B,) m/s
    accel_now: Tensor  # (B,) m/s2, along the heading
    dynamics_known: Tensor  # (B,) bool: whether the scene holds speed and acceleration
    target: Tensor  # (B,) progress that the goal asks for [m]
    tracks: Tensor | None = None  # (B, N) the track that each of them is, -1: nobody; None: not known
    road: RoadView | None = None  # what the rules of the road look at; None: not known
    bound: Match | None = None  # of the plan that the rules look at
    bound_now: Match | None = None  # (B, 1) of the ego now
    bound_corners: Match | None = None  # (B, 4 H) of the corners of the body along that plan
    bound_motion: Motion | None = None  # of that plan, differentiable
    bound_around: PlanSurroundings | None = None  # of that plan

    @classmethod
    @torch.no_grad()
    def from_scene(
        cls,
        scene: Scene,
        predictions: Tensor | None = None,
        tracks: Tensor | None = None,
        *,
        logged: bool = False,
        expert_target: bool = False,
        reachable: bool = False,
        horizon: int = 80,
    ) -> RuleContext:
        """At run time: `predictions` (B, K, H, 4) of a planner, everybody else goes straight on.

        They are about `tracks` (B, K), or, if these are not given, about the first K agents of the scene (the nearest K
        road users where it has none). With `logged`, in training: agents and goal from the futures in the scene. With
        `expert_target`, for studies: only the goal from the ego's future in the scene. `reachable`: the goal is what
        can be reached, also where the others are logged.
        """
        ego, view = scene.ego_current_state, RuleView.of(scene)
        if tracks is None and predictions is not None:
            predictions, tracks = of_first_agents(scene, predictions)
        dynamics = ego[:, EgoColumn.VX :]
        speed = dynamics[:, :2].norm(dim=-1)
        context = cls(
            *_agents(view, predictions, tracks, logged, horizon),
            route=Route.of(view),
            speed_now=speed,
            accel_now=ego[:, EgoColumn.AX],
            dynamics_known=(dynamics != 0).any(-1),
            target=torch.zeros_like(speed),
            tracks=view.object_tracks,
            road=RoadView.of(scene),
        )
        return replace(context, target=_target(context, scene, (logged or expert_target) and not reachable, horizon))

    def repeat_interleave(self, times: int) -> RuleContext:
        """Each scene `times` times in a row: batch B becomes B * times."""
        return replace(map_tensors(self, lambda value: value.repeat_interleave(times, 0)), bound_around=None)

    def rows(self, chosen: Tensor) -> RuleContext:
        """The scenes `chosen` (n,) alone."""
        return replace(map_tensors(self, lambda value: value[chosen]), bound_around=None)

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

    def corner_match(self, trajectory: Tensor) -> Match:
        """Where each corner of the body lies on the route, in the order of `body_corners`: (B, 4 H)."""
        if self.bound_corners is not None:
            return self.bound_corners
        return self.route.match(body_corners(trajectory.detach()).flatten(1, 2))

    def bind(self, trajectory: Tensor, corners: bool = False) -> RuleContext:
        """The context with the match of this plan, its body's `corners` and the ego now, made once for all rules."""
        plan = trajectory[..., :2].detach()
        points = [torch.zeros_like(plan[:, :1]), plan]
        if corners:
            points.append(body_corners(trajectory.detach()).flatten(1, 2))
        match, end = self.route.match(torch.cat(points, 1)), plan.shape[1] + 1
        edges = match.steps(end, 5 * end - 4) if corners else None
        bound = replace(self, bound=match.steps(1, end), bound_now=match.steps(0, 1), bound_corners=edges)
        return replace(bound, bound_around=PlanSurroundings(bound, trajectory))

    def around(self, trajectory: Tensor) -> PlanSurroundings:
        """How others, lanes and borders lie to the plan: the bound ones, or fresh ones."""
        return PlanSurroundings(self, trajectory) if self.bound_around is None else self.bound_around

    def progress_now(self, like: Tensor) -> Tensor:
        """(B, 1) progress of the ego now, in the type of `like` (B, ...)."""
        origin = like.new_zeros(like.shape[0], 1, 2)
        return (self.bound_now or self.route.match(origin)).progress(origin)


def _agents(
    view: RuleView, predictions: Tensor | None, tracks: Tensor | None, logged: bool, horizon: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Road users then static objects: poses (B, N, H + 1, 4), sizes (B, N, 2), valid (B, N, H + 1)."""
    from_log = logged and view.object_futures is not None
    poses, there = object_poses(view, None if from_log else predictions, tracks, slice(0, horizon + 1))
    valid = there.unsqueeze(-1).repeat(1, 1, horizon + 1)
    if from_log and view.object_futures is not None:
        future = view.object_futures[:, :, :horizon]
        count = future.shape[1]
        poses[:, :count, 1:] = pose_frame(future)
        valid[:, :count, 1:] &= present(future)
    return poses, view.objects[..., OBJECT_SIZE], valid


def of_first_agents(scene: Scene, predictions: Tensor) -> tuple[Tensor, Tensor | None]:
    """Predictions (B, K, H, 4) of a scene's first K agents -> those of real rows, and their tracks; None: not known."""
    agents = scene.agent_tracks
    if agents is None or not agents.shape[1]:
        return predictions, None
    return predictions[:, : agents.shape[1]], agents[:, : predictions.shape[1]]


def object_poses(
    view: RuleView, predictions: Tensor | None, tracks: Tensor | None, steps: slice
) -> tuple[Tensor, Tensor]:
    """Poses (B, N, T, 4) of all objects at the steps of a slice that begins now (0), and which are there (B, N).

    As predicted (B, K, H, 4, steps 1..H) for `tracks` (B, K), or for the first K road users where nobody knows tracks;
    everybody else goes straight on.
    """
    now = view.objects
    poses = _constant_velocity(now, torch.arange(steps.stop, dtype=now.dtype, device=now.device)[steps] * STEP_SECONDS)
    if predictions is not None:
        ahead = predictions[:, :, (steps.step or 1) - 1 : steps.stop - 1 : steps.step].to(poses.dtype)
        ahead = torch.cat((ahead[..., XY], normalize(ahead[..., COS_SIN], dim=-1)), -1)
        if tracks is None or view.object_tracks is None:
            count = min(ahead.shape[1], view.road_users)
            poses[:, :count, 1:] = ahead[:, :count]
        else:
            scene, row, thing = _same(tracks, view.object_tracks)
            poses[scene, thing, 1:] = ahead[scene, row]
    return poses, present(now[..., OBJECT_MOTION])


def _same(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    """Tracks (B, K) and (B, N) -> (Q,) scene, place in a, place in b of all that are in both."""
    return ((a.unsqueeze(2) == b.unsqueeze(1)) & (a >= 0).unsqueeze(2)).nonzero(as_tuple=True)


def _constant_velocity(now: Tensor, time: Tensor) -> Tensor:
    """(B, N, 8), seconds (T,) -> (B, N, T, 4)."""
    xy = now[..., None, XY] + time[:, None] * now[..., None, OBJECT_VELOCITY]
    return torch.cat((xy, now[..., None, COS_SIN].expand(*xy.shape[:-1], 2)), -1)


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
        time = horizon * STEP_SECONDS
        reachable = context.speed_now * time + 0.5 * NOMINAL_ACCELERATION * time**2
        target = torch.minimum(reachable, context.route.end)
    stop = context.route.stop_line(minimum=FRONT) - FRONT - STOP_BUFFER
    return torch.minimum(target, stop)
