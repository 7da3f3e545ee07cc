"""The cheap geometry in plain torch, step by step: the reference for the compiled one."""

from __future__ import annotations

import torch
from torch import Tensor

from radp.geometry.polylines import directions, stations
from radp.model.cheap_geometry import BESIDE, EVERY, FAR, MOMENTS, MOST_ERROR, MOST_OVER, MOST_SPEED, NEAREST_GAP
from radp.rules.body import EGO_LENGTH, EGO_WIDTH, FRONT, REAR_TO_CENTER, body_corners
from radp.rules.collision import BRAKING, CLEARANCE, HEADWAY
from radp.rules.context import NOMINAL_ACCELERATION, object_poses, of_first_agents
from radp.rules.motion import unit_heading, with_origin
from radp.rules.route import Route
from radp.scene.scene import OBJECT_SIZE, EgoColumn, LaneColumn, RuleView, Scene, present
from radp.sim.plan import STEP_SECONDS


def plain_geometry(trajectory: Tensor, scene: Scene, predictions: Tensor | None = None) -> Tensor:
    """(B, 131): at 16 moments, every 0.5 s, margins to the corridor's borders, speed against the limit and clearances;
    then progress that is missing, distance to the next red stop line, speed now."""
    view, speed = RuleView.of(scene), scene.ego_current_state[:, EgoColumn.VX : EgoColumn.AX].norm(dim=-1)
    moments = with_origin(trajectory)[:, ::EVERY][:, : MOMENTS + 1]  # now, 0.5 s, 1 s, ...
    route = _lanes_of(view)
    predicted, tracks = (None, None) if predictions is None else of_first_agents(scene, predictions)
    boxes = object_poses(view, predicted, tracks, slice(0, MOMENTS * EVERY + 1, EVERY))
    series = [*_borders(moments, route), *_clearances(moments, *boxes, view)]
    time = trajectory.shape[1] * STEP_SECONDS
    way = torch.diff(with_origin(trajectory)[..., :2], dim=1).norm(dim=-1).sum(-1)
    missing = speed * time + 0.5 * NOMINAL_ACCELERATION * time**2 - way
    once = torch.stack((_compressed(missing / 5.0), _stop_line(route) / FAR, speed / 10.0), -1)
    return torch.cat((torch.stack(series, 1).flatten(1), once), -1).float()


def _compressed(values: Tensor) -> Tensor:
    return values.sign() * values.abs().log1p()


def _lanes_of(view: RuleView) -> Route:
    """The lanes of the route, not put in driving order: stations run from the start of each lane."""
    valid = present(view.route_lanes).any(-1)
    used = valid.any(0)
    used[0] = True
    rows = used.nonzero()[:, 0]
    lanes, valid = view.route_lanes[:, rows], valid[:, rows]
    points = lanes[..., : LaneColumn.DX]
    borders = lanes[..., LaneColumn.LEFT_X : LaneColumn.IS_GREEN]
    return Route(
        table=torch.cat((points, directions(points), borders, stations(points).unsqueeze(-1)), -1),
        placed=valid,
        speed_limit=view.route_lanes_speed_limit[:, rows, 0],
        has_speed_limit=view.route_lanes_has_speed_limit[:, rows, 0] & valid,
        red=(lanes[..., 0, LaneColumn.IS_RED] > 0.5) & valid,
        green=lanes[..., 0, LaneColumn.IS_GREEN],
        links=torch.zeros(*valid.shape, len(rows), dtype=torch.bool),
    )


def _borders(moments: Tensor, route: Route) -> list[Tensor]:
    """moments (B, 17, 4), now first -> four (B, 16): lateral error, body beyond the left and right border, speed over
    the limit; 0 where there is no route or limit."""
    poses = moments[:, 1:]
    points = torch.cat((poses[..., :2], body_corners(poses).flatten(1, 2)), 1).to(route.table.dtype)
    match = route.match(points)
    axle, corners = match.steps(0, MOMENTS), match.steps(MOMENTS, 5 * MOMENTS)
    error, at_corner = axle.lateral(points[:, :MOMENTS]), corners.lateral(points[:, MOMENTS:])
    left = (at_corner - corners.left_width).unflatten(1, (-1, 4)).amax(-1)
    right = (-at_corner - corners.right_width).unflatten(1, (-1, 4)).amax(-1)
    speed = torch.diff(moments[..., :2], dim=1).norm(dim=-1) / (EVERY * STEP_SECONDS)
    over = (speed - axle.speed_limit).clamp(-MOST_SPEED, MOST_SPEED) * axle.has_speed_limit
    return [
        error.clamp(-MOST_ERROR, MOST_ERROR) * axle.valid,
        left.clamp(-MOST_OVER, MOST_OVER) * axle.valid,
        right.clamp(-MOST_OVER, MOST_OVER) * axle.valid,
        over,
    ]


def _clearances(moments: Tensor, others: Tensor, there: Tensor, view: RuleView) -> list[Tensor]:
    """Four (B, 16): least gap to any of the others (B, N, 17, 4), and of the one in the way that lacks most clearance:
    how much it lacks, its closing speed and the missing share. Boxes are projected on the ego's own axes."""
    forward = unit_heading(moments)
    centre = moments[..., :2] + REAR_TO_CENTER * forward
    line = others.transpose(1, 2)[..., :2] - centre.unsqueeze(2)  # (B, 17, N, 2)
    distance = line.square().sum(-1).clamp(min=1e-6).sqrt()
    closing = ((distance[:, :-1] - distance[:, 1:]) / (EVERY * STEP_SECONDS)).clamp(min=0.0)
    line, ahead = line[:, 1:], forward[:, 1:].unsqueeze(2)
    heading = others.transpose(1, 2)[:, 1:, :, 2:]
    size = view.objects[:, None, :, OBJECT_SIZE] / 2
    cos = (heading * ahead).sum(-1).abs()
    sin = (heading[..., 0] * ahead[..., 1] - heading[..., 1] * ahead[..., 0]).abs()
    along = (line * ahead).sum(-1).abs() - EGO_LENGTH / 2 - (cos * size[..., 0] + sin * size[..., 1])
    beside = (line[..., 0] * ahead[..., 1] - line[..., 1] * ahead[..., 0]).abs()
    beside = beside - EGO_WIDTH / 2 - (sin * size[..., 0] + cos * size[..., 1])
    gap = torch.maximum(along, beside).masked_fill(~there.unsqueeze(1), FAR)
    lacks = CLEARANCE + HEADWAY * closing + closing.square() / (2 * BRAKING) - gap
    lacks = torch.where(there.unsqueeze(1) & (beside < BESIDE), lacks, -FAR)
    if not gap.shape[2]:
        nobody = torch.zeros_like(moments[:, 1:, 0])
        return [nobody + 1.0, nobody, nobody, nobody]
    most, which = lacks.max(-1)
    most = most.clamp(min=0.0)
    of_that = which.unsqueeze(-1)
    room = gap.gather(-1, of_that).squeeze(-1).clamp(min=0.0)
    fast = closing.gather(-1, of_that).squeeze(-1) * (most > 0)
    least = gap.amin(-1).clamp(max=NEAREST_GAP) / NEAREST_GAP
    return [least, _compressed(most), _compressed(fast), most / (most + room).clamp(min=1e-6)]


def _stop_line(route: Route) -> Tensor:
    """(B,) distance of the nearest red stop line ahead of the front bumper [m], at most FAR."""
    start = route.points[:, :, 0]
    distance = start.norm(dim=-1).masked_fill(~(route.red & (start[..., 0] > FRONT)), FAR)
    return distance.amin(-1).clamp(max=FAR)
