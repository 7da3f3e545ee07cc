"""How others, lanes and borders lie to one plan. Made when a rule first asks, and held fixed while the plan moves.

Nothing here carries a gradient: rules differentiate distances against it, as they do against the route.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from radp.geometry.polylines import directions, nearest_vertex, stations
from radp.rules.body import REAR_TO_CENTER, body_corners, shifted
from radp.rules.motion import unit_heading, with_origin
from radp.scenario.scenario import ObjectType
from radp.sim.plan import STEP_SECONDS

if TYPE_CHECKING:
    from radp.rules.context import RuleContext

STRIDE = 4  # steps between the points of a path
AHEAD, AHEAD_STEP = 4, 15.0  # points beyond the plan's end along the route, and metres between them
STANDING = 0.05  # m: shorter pieces of a path have no direction
DRIFT = 1.75  # m that a point beyond the plan's end may be put right
CROSSING_SINE = 0.3  # of the angle between paths that cross, not merge
CONFLICT_STEPS = 60  # steps of the plan within which paths may cross: 6 s
OPPOSITE = -0.5  # cosine of the angle to a lane that runs against the ego
OTHER_WAY, BESIDE = -0.7, 0.7  # cosines between the headings now: towards the ego; the same way
LEFT_TURN = 0.35  # rad by which the ego turns before the crossing


@dataclass(frozen=True)
class PathFrame:
    """N others and the ego along the ego's own path, T = H + 1 moments from now on; m, m/s."""

    along: Tensor  # (B, N, T) metres along the path, 0 at the ego now
    across: Tensor  # (B, N, T) metres beside it, positive to the left
    speed_along: Tensor  # (B, N, T)
    speed_across: Tensor  # (B, N, T) positive to the left
    reach_along: Tensor  # (B, N, T) half of the box along the path
    reach_across: Tensor  # (B, N, T)
    same_way: Tensor  # (B, N, T) cosine of the angle between the other's heading and the path
    valid: Tensor  # (B, N, T) bool
    ego_along: Tensor  # (B, H) of the plan's rear axle
    ego_across: Tensor  # (B, H)
    tangent: Tensor  # (B, H, 2) of the path at each step of the plan


@dataclass(frozen=True)
class Conflicts:
    """Where the path of each of N others crosses the ego's."""

    step: Tensor  # (B, N) step of the plan, 0..H - 1, at which the ego is there
    ego_time: Tensor  # (B, N) s
    other_time: Tensor  # (B, N) s
    tangent: Tensor  # (B, N, 2) direction of the ego there
    speed: Tensor  # (B, N) of the ego there, m/s
    yields: Tensor  # (B, N) bool: they cross within 6 s, and the other has priority


@dataclass(frozen=True)
class Border:
    """The nearest place of the drivable area's border to each of P points: signed distance (x - foot) . normal."""

    foot: Tensor  # (B, P, 2)
    normal: Tensor  # (B, P, 2) unit vector into the drivable area
    valid: Tensor  # (B, P) bool


class PlanSurroundings:
    """Of B plans (B, H, 4)."""

    def __init__(self, context: RuleContext, plan: Tensor) -> None:
        self.context, self.plan = context, plan.detach()

    @cached_property
    def crossing_line(self) -> Tensor:
        """(B, N) progress at which the route meets the crosswalk that each object walks on; infinite without one."""
        road = self.context.road
        if road is None:
            return self.plan.new_full(self.context.agents.shape[:2], torch.inf)
        entry = road.object_crossing.to(self.plan.dtype)
        line = self.context.route.match(entry[..., :2]).progress(entry)
        return line.masked_fill(entry[..., 2] <= 0, torch.inf)

    @cached_property
    @torch.no_grad()
    def path(self) -> PathFrame:
        context, plan = self.context, self.plan
        line = self._line()
        way, start = directions(line)[:, :-1], line[:, :-1]
        station = stations(line)
        length = torch.diff(station, dim=1)
        poses = context.agents[:, :, : plan.shape[1] + 1].to(plan.dtype)
        batch, count, times = poses.shape[:3]
        place, along, across = _on_line(poses[..., :2].reshape(batch, -1, 2), start, way, length)
        tangent = _pick(way, place).view(batch, count, times, 2)
        normal = torch.stack((-tangent[..., 1], tangent[..., 0]), -1)
        moved = torch.diff(poses[..., :2], dim=2, prepend=2 * poses[:, :, :1, :2] - poses[:, :, 1:2, :2]) / STEP_SECONDS
        cos, sin = ((poses[..., 2:] * axis).sum(-1) for axis in (tangent, normal))
        half = context.agent_size.to(plan.dtype)[:, :, None] / 2
        valid = context.agent_valid[:, :, :times]
        before = torch.cat((valid[:, :, :1], valid[:, :, :-1]), 2)
        mine, ego_along, ego_across = _on_line(plan[..., :2], start, way, length)
        return PathFrame(
            along=along.view(batch, count, times) + station.gather(1, place).view(batch, count, times),
            across=across.view(batch, count, times),
            speed_along=(moved * tangent).sum(-1),
            speed_across=(moved * normal).sum(-1),
            reach_along=half[..., 0] * cos.abs() + half[..., 1] * sin.abs(),
            reach_across=half[..., 0] * sin.abs() + half[..., 1] * cos.abs(),
            same_way=cos,
            valid=valid & before,
            ego_along=ego_along + station.gather(1, mine),
            ego_across=ego_across,
            tangent=_pick(way, mine),
        )

    def _line(self) -> Tensor:
        """(B, P, 2) the ego's path: where it is now, the plan, and further along the route beside which it ends."""
        plan, route = self.plan, self.context.route
        states = with_origin(plan)
        points = [states[:, ::STRIDE, :2]]
        if (states.shape[1] - 1) % STRIDE:
            points.append(states[:, -1:, :2])
        point, heading = plan[:, -1:, :2], unit_heading(plan[:, -1:])
        match = route.match(point)
        beside = match.lateral(point)
        for _ in range(AHEAD):
            usable = match.valid & ((match.tangent * heading).sum(-1) > 0)
            heading = torch.where(usable.unsqueeze(-1), match.tangent, heading)
            point = point + AHEAD_STEP * heading
            match = route.match(point)
            off = beside - match.lateral(point)
            off = torch.where(usable & (off.abs() < DRIFT), off, 0.0).unsqueeze(-1)
            point = point + off * torch.stack((-match.tangent[..., 1], match.tangent[..., 0]), -1)
            points.append(point)
        return torch.cat(points, 1)

    @cached_property
    @torch.no_grad()
    def conflicts(self) -> Conflicts:
        """The first crossing of each other's path along the ego's, both by their centres."""
        plan, context = self.plan, self.context
        states = with_origin(plan)
        ego = shifted(states, REAR_TO_CENTER)[:, : CONFLICT_STEPS + 1 : STRIDE]  # (B, P, 2)
        poses = context.agents[:, :, : states.shape[1]].to(plan.dtype)
        other = poses[:, :, : CONFLICT_STEPS + 1 : STRIDE, :2]
        a, r = ego[:, None, :-1, None], torch.diff(ego, dim=1)[:, None, :, None]  # (B, 1, P-1, 1, 2)
        b, q = other[:, :, None, :-1], torch.diff(other, dim=2)[:, :, None]  # (B, N, 1, P-1, 2)
        turn, gap = _cross(r, q), b - a
        safe = torch.where(turn.abs() > 1e-9, turn, 1.0)
        t, u = _cross(gap, q) / safe, _cross(gap, r) / safe
        known = context.agent_valid[:, :, : CONFLICT_STEPS + 1 : STRIDE]
        known = (known[:, :, 1:] & known[:, :, :-1]).unsqueeze(2)
        oblique = turn.abs() > CROSSING_SINE * r.norm(dim=-1) * q.norm(dim=-1)
        hits = _within(t) & _within(u) & oblique & (turn.abs() > 1e-9) & known
        pieces = hits.shape[2]
        first = hits.flatten(2).to(torch.int8).argmax(-1)  # the first True; 0 where there is none
        i, j = first // pieces, first % pieces
        shift_e, shift_o = (value.flatten(2).gather(2, first.unsqueeze(2)).squeeze(2) for value in (t, u))
        ego_time, other_time = (STRIDE * STEP_SECONDS * (k + shift) for k, shift in ((i, shift_e), (j, shift_o)))
        moved = _pick(torch.diff(ego, dim=1), i)
        tangent = moved / moved.norm(dim=-1, keepdim=True).clamp(min=1e-6)
        point = _pick(ego[:, :-1], i) + shift_e.unsqueeze(-1) * moved
        return Conflicts(
            step=(ego_time / STEP_SECONDS).round().long().clamp(1, plan.shape[1]) - 1,
            ego_time=ego_time,
            other_time=other_time,
            tangent=tangent,
            speed=moved.norm(dim=-1) / (STRIDE * STEP_SECONDS),
            yields=hits.flatten(2).any(-1) & self._other_goes_first(poses[:, :, 0], point, tangent),
        )

    def _other_goes_first(self, now: Tensor, point: Tensor, tangent: Tensor) -> Tensor:
        """(B, N) bool: whether each other at now (B, N, 4) has priority at the crossing `point`, where the ego goes
        `tangent`.

        The map does not say who has priority. A light that is green for the ego keeps crossing traffic back; without
        one, who comes from the right goes first; and who turns left lets oncoming traffic pass in any case.
        """
        cos, sin = now[..., 2], now[..., 3]  # against the ego's heading now, which is +x
        turns_left = torch.atan2(tangent[..., 1], tangent[..., 0]) > LEFT_TURN
        oncoming = (cos < OTHER_WAY) & turns_left
        from_right = (cos.abs() < BESIDE) & (sin > 0) & ~self.context.route.is_green(point)
        road = self.context.road
        if road is None:
            return oncoming | from_right
        drives = (road.object_types == ObjectType.VEHICLE) | (road.object_types == ObjectType.BICYCLE)
        return (oncoming | from_right) & drives

    @cached_property
    @torch.no_grad()
    def against(self) -> tuple[Tensor, Tensor]:
        """(B, H, 2) direction of the oncoming lane that the ego's centre is on, and (B, H) bool whether it is on one.

        A place that a lane of the ego's own direction covers too is not on an oncoming lane.
        """
        plan, road = self.plan, self.context.road
        if road is None or not road.lanes.shape[1]:
            return torch.zeros_like(plan[..., :2]), torch.zeros(plan.shape[:2], dtype=torch.bool, device=plan.device)
        lanes, centre = road.lanes.to(plan.dtype), shifted(plan, REAR_TO_CENTER)
        there, way = (lanes != 0).any(-1).any(-1), directions(lanes[..., :2])
        vertex, distance = nearest_vertex(centre, lanes[..., :2], there)  # (B, H, L)
        rows = torch.arange(lanes.shape[1], device=plan.device).expand(vertex.shape)
        batch = torch.arange(len(plan), device=plan.device)[:, None, None]
        at, tangent = lanes[batch, rows, vertex], way[batch, rows, vertex]  # (B, H, L, ...)
        gap = centre.unsqueeze(2) - at[..., :2]
        spacing = torch.diff(lanes[..., :2], dim=2).norm(dim=-1).amax(-1).unsqueeze(1)
        beside = _cross(tangent, gap)
        inside = (beside <= at[..., 2]) & (-beside <= at[..., 3]) & ((gap * tangent).sum(-1).abs() <= spacing)
        inside &= there.unsqueeze(1)
        cos = (tangent * unit_heading(plan).unsqueeze(2)).sum(-1)
        wrong, right = inside & (cos < OPPOSITE), inside & (cos > 0)
        nearest = distance.masked_fill(~wrong, torch.inf).argmin(-1, keepdim=True)
        direction = tangent.gather(2, nearest.unsqueeze(-1).expand(-1, -1, -1, 2)).squeeze(2)
        return direction, wrong.any(-1) & ~right.any(-1)

    @cached_property
    @torch.no_grad()
    def border(self) -> Border:
        """Of the body's corners, (B, 4 H) in the order of `body_corners`."""
        corners, road = body_corners(self.plan).flatten(1, 2), self.context.road
        if road is None or road.border is None or road.border_reach is None:
            nowhere = torch.zeros(corners.shape[:2], dtype=torch.bool, device=corners.device)
            return Border(corners, torch.zeros_like(corners), nowhere)
        pieces = road.border.to(corners.dtype)
        start, step = pieces[..., :2].unsqueeze(1), (pieces[..., 2:] - pieces[..., :2]).unsqueeze(1)
        gap = corners.unsqueeze(2) - start  # (B, P, S, 2)
        square = step.square().sum(-1)
        share = ((gap * step).sum(-1) / square.clamp(min=1e-9)).clamp(0, 1)
        off = gap - share.unsqueeze(-1) * step
        distance = off.square().sum(-1).sqrt()
        left = torch.stack((-step[..., 1], step[..., 0]), -1) / square.clamp(min=1e-9).sqrt().unsqueeze(-1)
        beside = (gap * left).sum(-1)
        # Two pieces that meet in the nearest point may disagree about the side: the more upright one is right.
        rank = (distance - 1e-4 * beside.abs()).masked_fill(square < 1e-9, torch.inf)
        best = rank.argmin(-1, keepdim=True)
        index = best.unsqueeze(-1).expand(-1, -1, -1, 2)
        apart, away = (value.gather(2, best).squeeze(2) for value in (distance, beside))
        foot = corners - off.gather(2, index).squeeze(2)
        upright = left.expand_as(gap).gather(2, index).squeeze(2)
        outwards = (corners - foot) * away.sign().unsqueeze(-1) / apart.clamp(min=1e-9).unsqueeze(-1)
        normal = torch.where((apart < 1e-6).unsqueeze(-1), upright, outwards)
        known = corners.norm(dim=-1) + apart <= road.border_reach
        return Border(foot, normal, known & torch.isfinite(rank.gather(2, best).squeeze(2)))


def _on_line(points: Tensor, start: Tensor, way: Tensor, length: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """points (B, Q, 2), P pieces of a line (B, P, 2), their directions and lengths -> the nearest piece (B, Q), metres
    along it and beside it. The first and the last piece go on without end."""
    gap = points.unsqueeze(2) - start.unsqueeze(1)
    along = (gap * way.unsqueeze(1)).sum(-1)
    least, most = torch.zeros_like(length), length.clone()
    moves = length > STANDING
    first = moves.to(torch.int8).argmax(-1, keepdim=True)
    least.scatter_(1, first, -torch.inf)
    most[:, -1] = torch.inf
    held = along.clamp(least.unsqueeze(1), most.unsqueeze(1))
    distance = (gap - held.unsqueeze(-1) * way.unsqueeze(1)).square().sum(-1)
    best = distance.masked_fill(~moves.unsqueeze(1), torch.inf).argmin(-1, keepdim=True)
    across = _cross(way.unsqueeze(1), gap)
    return best.squeeze(2), along.gather(2, best).squeeze(2), across.gather(2, best).squeeze(2)


def _pick(rows: Tensor, index: Tensor) -> Tensor:
    """rows (B, P, C), index (B, Q) -> (B, Q, C)."""
    return rows.gather(1, index.unsqueeze(-1).expand(-1, -1, rows.shape[-1]))


def _within(share: Tensor) -> Tensor:
    """Whether a place lies on a piece, its ends included."""
    return (share >= -1e-6) & (share <= 1 + 1e-6)


def _cross(a: Tensor, b: Tensor) -> Tensor:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
