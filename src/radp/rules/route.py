"""The route under a plan: which piece of it each step is on, how far along, and how wide the corridor is there.

Everything here is held fixed while the plan moves (no gradient): the rules differentiate signed errors against it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from radp.geometry.polylines import directions, nearer_segment, nearest_vertex, stations
from radp.runtime.geometry import SAME_WAY, SIDE_BY_SIDE
from radp.scene.scene import LaneColumn, RuleView, present

LINK_GAP = 1.5  # m between the end of a lane and the start of its successor, in scenes that do not say what follows

# columns of a route's table: point [m], unit direction, borders relative to the point [m], progress [m]
POINT, DIRECTION, LEFT, RIGHT, STATION = slice(0, 2), slice(2, 4), slice(4, 6), slice(6, 8), 8


@dataclass(frozen=True)
class Match:
    """Where H points lie on the route; all (B, H) or (B, H, 2), without gradient."""

    anchor: Tensor  # (B, H, 2) start of the matched segment [m]
    tangent: Tensor  # (B, H, 2) its unit direction
    station: Tensor  # (B, H) progress of the anchor along the route [m], 0 at the ego now
    left_width: Tensor  # (B, H) from the matched centre line to the corridor's left border [m]
    right_width: Tensor  # (B, H)
    speed_limit: Tensor  # (B, H) m/s
    has_speed_limit: Tensor  # (B, H) bool
    valid: Tensor  # (B, H) bool, False where there is no route

    def steps(self, first: int, last: int) -> Match:
        """The points first..last - 1 alone."""
        return Match(*(getattr(self, name.name)[:, first:last] for name in fields(self)))

    def lateral(self, trajectory: Tensor) -> Tensor:
        """(B, H, >=2) -> (B, H) signed distance from the matched line, positive to the left. Differentiable."""
        offset = trajectory[..., :2] - self.anchor
        return self.tangent[..., 0] * offset[..., 1] - self.tangent[..., 1] * offset[..., 0]

    def progress(self, trajectory: Tensor) -> Tensor:
        """(B, H, >=2) -> (B, H) metres along the route from where the ego is now. Differentiable."""
        return self.station + ((trajectory[..., :2] - self.anchor) * self.tangent).sum(-1)


@dataclass(frozen=True)
class Route:
    """R route lanes of P points, ego frame; rows that no scene of the batch uses are left out."""

    table: Tensor  # (B, R, P, 9) what is known of each point, in the order of the columns below
    placed: Tensor  # (B, R) bool: lane present and its station known
    speed_limit: Tensor  # (B, R)
    has_speed_limit: Tensor  # (B, R) bool
    red: Tensor  # (B, R) bool: the light at the lane's start is red
    green: Tensor  # (B, R) 1 where that light is green
    links: Tensor  # (B, R, R) bool: lane j follows lane i

    @classmethod
    @torch.no_grad()
    def of(cls, view: RuleView) -> Route:
        valid = present(view.route_lanes).any(-1)
        used = valid.any(0)
        used[0] = True  # at least one row, even without a route
        rows = used.nonzero()[:, 0]
        lanes, valid = view.route_lanes[:, rows], valid[:, rows]
        points = lanes[..., : LaneColumn.DX]
        direction, along = directions(points), stations(points)
        if view.route_links is None:
            links = _meeting_ends(points, valid)
        else:
            links = view.route_links[:, rows][:, :, rows]
        offset, placed = _lane_offsets(points, direction, along, valid, links)
        borders = lanes[..., LaneColumn.LEFT_X : LaneColumn.IS_GREEN]
        return cls(
            table=torch.cat((points, direction, borders, (along + offset.unsqueeze(-1)).unsqueeze(-1)), -1),
            placed=placed,
            speed_limit=view.route_lanes_speed_limit[:, rows, 0],
            has_speed_limit=view.route_lanes_has_speed_limit[:, rows, 0] & placed,
            red=(lanes[..., 0, LaneColumn.IS_RED] > 0.5) & placed,
            green=lanes[..., 0, LaneColumn.IS_GREEN],
            links=links,
        )

    @property
    def points(self) -> Tensor:
        """(B, R, P, 2)"""
        return self.table[..., POINT]

    @property
    def station(self) -> Tensor:
        """(B, R, P) progress along the route, 0 at the ego."""
        return self.table[..., STATION]

    @property
    def end(self) -> Tensor:
        """(B,) progress at the end of the route; 0 without a route."""
        return self.station[..., -1].masked_fill(~self.placed, 0.0).amax(-1)

    def stop_line(self, minimum: float) -> Tensor:
        """(B,) progress of the nearest red stop line at least `minimum` ahead; infinite where none is."""
        start = self.station[..., 0]
        return torch.where(self.red & (start >= minimum), start, torch.inf).amin(-1)

    @torch.no_grad()
    def red_line(self, minimum: float) -> Tensor:
        """As `stop_line`, but a long lane that was cut has a line at its first part only."""
        goes_on = (self.links & self.red.unsqueeze(2)).any(1)
        start = self.station[..., 0]
        return torch.where(self.red & ~goes_on & (start > minimum), start, torch.inf).amin(-1)

    @torch.no_grad()
    def curvature(self, points: Tensor) -> Tensor:
        """(B, H, 2) -> (B, H) 1/m: how much the nearest lane bends there, over two vertices to either side."""
        lane, vertex = self._nearest(points)
        last = self.table.shape[2] - 1
        before, after = (vertex - 2).clamp(min=0), (vertex + 2).clamp(max=last)
        a, b = (_take(self.table, lane, k) for k in (before, after))
        turn = a[..., 2] * b[..., 3] - a[..., 3] * b[..., 2]
        return turn.abs().clamp(max=1.0).asin() / (b[..., STATION] - a[..., STATION]).clamp(min=1e-3)

    @torch.no_grad()
    def is_green(self, points: Tensor) -> Tensor:
        """(B, H, 2) -> (B, H) bool: the nearest lane has a green light."""
        return self.green.gather(1, self._nearest(points)[0]) > 0.5

    def _nearest(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """(B, H, 2) -> lane and vertex (B, H)."""
        vertex, distance = nearest_vertex(points, self.points, self.placed)
        lane = distance.argmin(-1)
        return lane, vertex.gather(-1, lane.unsqueeze(-1)).squeeze(-1)

    @torch.no_grad()
    def match(self, points: Tensor) -> Match:
        """points (B, H, 2) -> Match: nearest lane, its nearest segment, corridor over the lanes side by side."""
        vertex, distance = nearest_vertex(points, self.points, self.placed)  # (B, H, R)
        lane = distance.argmin(-1)  # (B, H)
        k = vertex.gather(-1, lane.unsqueeze(-1)).squeeze(-1)
        last = self.table.shape[2] - 1
        around = (k.unsqueeze(-1) + torch.arange(-1, 2, device=k.device)).clamp(0, last)
        before, at, after = _take(self.table, lane.unsqueeze(-1), around).unbind(2)  # (B, H, 9) each
        forward = nearer_segment(points, before[..., POINT], at[..., POINT], after[..., POINT]) & (k < last)
        forward = (forward | (k == 0)).unsqueeze(-1)
        start, end = torch.where(forward, at, before), torch.where(forward, after, at)
        anchor, tangent = start[..., POINT], start[..., DIRECTION]
        along = ((points - anchor) * tangent).sum(-1)
        share = (along / (end - start)[..., POINT].norm(dim=-1).clamp(min=1e-6)).clamp(0, 1).unsqueeze(-1)
        foot = start.lerp(end, share)
        normal = torch.stack((-tangent[..., 1], tangent[..., 0]), -1)
        left_width, right_width = self._corridor(vertex, foot[..., POINT], tangent, normal)
        valid = self.placed.any(-1, keepdim=True).expand(lane.shape)
        return Match(
            anchor=anchor,
            tangent=tangent,
            station=start[..., STATION],
            left_width=torch.maximum(left_width, (foot[..., LEFT] * normal).sum(-1)),
            right_width=torch.maximum(right_width, -(foot[..., RIGHT] * normal).sum(-1)),
            speed_limit=self.speed_limit.gather(1, lane),
            has_speed_limit=self.has_speed_limit.gather(1, lane) & valid,
            valid=valid,
        )

    def _corridor(self, vertex: Tensor, foot: Tensor, tangent: Tensor, normal: Tensor) -> tuple[Tensor, Tensor]:
        """Left and right reach (B, H) of the lanes that lie side by side with the foot point (B, H, 2)."""
        batch, horizon, rows = vertex.shape
        row = torch.arange(rows, device=vertex.device).expand(batch, horizon, rows)
        there = _take(self.table, row, vertex)  # (B, H, R, 9)
        tangent, normal = tangent.unsqueeze(2), normal.unsqueeze(2)
        gap, way = there[..., POINT] - foot.unsqueeze(2), there[..., DIRECTION]
        ahead = (gap * tangent).sum(-1)
        cos = (way * tangent).sum(-1)
        across = (way * normal).sum(-1)
        offset = (gap * normal).sum(-1) - ahead * across / cos.clamp(min=SAME_WAY)
        spacing = (self.station[..., -1] - self.station[..., 0]) / max(1, self.table.shape[2] - 1)  # (B, R)
        beside = (
            self.placed.unsqueeze(1)
            & (ahead.abs() <= spacing.unsqueeze(1))
            & (cos >= SAME_WAY)
            & (offset.abs() <= SIDE_BY_SIDE)
        )
        left = offset + (there[..., LEFT] * normal).sum(-1)
        right = -offset - (there[..., RIGHT] * normal).sum(-1)
        both = torch.stack((left, right)).masked_fill(~beside, -torch.inf).amax(-1)
        return both[0], both[1]


def _take(rows: Tensor, lane: Tensor, vertex: Tensor) -> Tensor:
    """rows (B, R, P, ...), lane and vertex (B, ...) -> rows[b, lane, vertex]."""
    batch = torch.arange(rows.shape[0], device=rows.device).view(-1, *[1] * (lane.dim() - 1))
    return rows[batch, lane, vertex]


def _meeting_ends(points: Tensor, valid: Tensor) -> Tensor:
    """(B, R, R) bool, for scenes without a map, such as published files: lane j starts where lane i ends."""
    meets = (points[:, :, None, -1] - points[:, None, :, 0]).norm(dim=-1) < LINK_GAP
    itself = torch.eye(valid.shape[1], dtype=torch.bool, device=points.device)
    return meets & valid[:, :, None] & valid[:, None, :] & ~itself


def _lane_offsets(
    points: Tensor, direction: Tensor, station: Tensor, valid: Tensor, links: Tensor
) -> tuple[Tensor, Tensor]:
    """Progress (B, R) at the start of each lane, 0 at the origin, and whether it is known.

    `station` (B, R, P) runs from the start of each lane. Lanes come in any order. Those beside the ego are placed by
    the ego's own station on them; successors and predecessors follow by `links` (B, R, R); what is still left is placed
    by the nearest lane that is known.
    """
    rows, length = valid.shape[1], station[..., -1]
    along, gap = _station_of_origin(points, direction, station)
    beside = valid & (along >= 0) & (along <= length) & (gap <= SIDE_BY_SIDE) & (direction[:, :, 0, 0] > -0.5)
    nearest = gap.masked_fill(~valid, torch.inf).argmin(-1, keepdim=True)
    is_nearest = torch.zeros_like(valid).scatter(1, nearest, True) & valid
    known = torch.where(beside.any(-1, keepdim=True), beside, is_nearest)
    offset = torch.where(known, -along, 0.0)
    for _ in range(rows):
        ahead = torch.where(links & known[:, :, None], (offset + length)[:, :, None], -torch.inf).amax(1)
        behind = torch.where(links & known[:, None, :], offset[:, None, :], torch.inf).amin(2) - length
        new_ahead, new_behind = torch.isfinite(ahead) & ~known, torch.isfinite(behind) & ~known
        if not bool((new_ahead | new_behind).any()):
            break
        offset = torch.where(new_ahead, ahead, torch.where(new_behind, behind, offset))
        known = known | new_ahead | new_behind
    return _place_by_neighbours(points, direction, station, offset, known, valid)


def _station_of_origin(points: Tensor, direction: Tensor, station: Tensor) -> tuple[Tensor, Tensor]:
    """Where the origin lies on each lane: station from its start (B, R), may be outside the lane, and distance."""
    gap = points.norm(dim=-1)
    nearest = gap.argmin(-1, keepdim=True)
    at = station.gather(-1, nearest).squeeze(-1)
    index = nearest.unsqueeze(-1).expand(*nearest.shape, 2)
    extra = -(points.gather(2, index) * direction.gather(2, index)).sum(-1).squeeze(-1)
    return at + extra, gap.gather(-1, nearest).squeeze(-1)


def _place_by_neighbours(
    points: Tensor, direction: Tensor, station: Tensor, offset: Tensor, known: Tensor, valid: Tensor
) -> tuple[Tensor, Tensor]:
    left = valid & ~known & known.any(-1, keepdim=True)
    if bool(left.any()):
        along = station + offset.unsqueeze(-1)
        starts = points[:, :, 0]
        vertex, distance = nearest_vertex(starts, points, known)  # each lane's start against every known lane
        lane = distance.argmin(-1)
        k = vertex.gather(-1, lane.unsqueeze(-1)).squeeze(-1)
        shift = ((starts - _take(points, lane, k)) * _take(direction, lane, k)).sum(-1)
        offset = torch.where(left, _take(along, lane, k) + shift, offset)
    return offset, valid & (known | left)
