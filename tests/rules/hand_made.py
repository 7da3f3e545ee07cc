"""Scenes made by hand: a straight two-lane road ahead of the ego, and whoever a test puts on it."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from radp.scene.scene import AgentColumn, EgoColumn, LaneColumn, Scene

LANE_WIDTH = 3.5
POINTS = 20


def straight_route(pieces: int = 4, length: float = 38.0, lanes: int = 1, start: float = -10.0) -> Tensor:
    """(R, 20, 12): `pieces` lanes end to end along x, `lanes` side by side to the left, unknown lights."""
    rows = []
    for piece in range(pieces):
        for lane in range(lanes):
            row = torch.zeros(POINTS, len(LaneColumn), dtype=torch.float64)
            row[:, LaneColumn.X] = torch.linspace(0, length, POINTS) + start + piece * length
            row[:, LaneColumn.Y] = lane * LANE_WIDTH
            row[:-1, LaneColumn.DX] = length / (POINTS - 1)
            row[:, LaneColumn.LEFT_Y], row[:, LaneColumn.RIGHT_Y] = LANE_WIDTH / 2, -LANE_WIDTH / 2
            row[:, LaneColumn.IS_UNKNOWN] = 1.0
            rows.append(row)
    return torch.stack(rows)


def scene(
    route: Tensor | None = None,
    agents: list[tuple[float, float, float, float, float]] = (),  # x, y, heading, speed, length (width 2)
    speed: float = 10.0,
    limit: float | None = 15.0,
    slots: int = 6,
    route_slots: int = 12,
) -> Scene:
    """One scene, float64, with room for `slots` agents and `route_slots` route lanes."""
    ego = torch.zeros(1, len(EgoColumn), dtype=torch.float64)
    ego[:, EgoColumn.COS], ego[:, EgoColumn.VX] = 1.0, speed
    past = torch.zeros(1, slots, 21, len(AgentColumn), dtype=torch.float64)
    for i, (x, y, heading, v, length) in enumerate(agents):
        c, s = math.cos(heading), math.sin(heading)
        back = torch.arange(-20, 1, dtype=torch.float64) * 0.1 * v
        past[0, i, :, AgentColumn.X], past[0, i, :, AgentColumn.Y] = x + back * c, y + back * s
        past[0, i, :, AgentColumn.COS], past[0, i, :, AgentColumn.SIN] = c, s
        past[0, i, :, AgentColumn.VX], past[0, i, :, AgentColumn.VY] = v * c, v * s
        past[0, i, :, AgentColumn.WIDTH], past[0, i, :, AgentColumn.LENGTH] = 2.0, length
        past[0, i, :, AgentColumn.IS_VEHICLE] = 1.0
    lanes = torch.zeros(1, route_slots, POINTS, len(LaneColumn), dtype=torch.float64)
    if route is not None:
        lanes[0, : len(route)] = route
    known = lanes.abs().sum((2, 3)).unsqueeze(-1) > 0
    has_limit = known & (limit is not None)
    return Scene(
        ego_current_state=ego,
        neighbor_agents_past=past,
        static_objects=torch.zeros(1, 5, 10, dtype=torch.float64),
        lanes=torch.zeros(1, 8, POINTS, len(LaneColumn), dtype=torch.float64),
        lanes_speed_limit=torch.zeros(1, 8, 1, dtype=torch.float64),
        lanes_has_speed_limit=torch.zeros(1, 8, 1, dtype=torch.bool),
        route_lanes=lanes,
        route_lanes_speed_limit=torch.where(has_limit, limit or 0.0, 0.0).double(),
        route_lanes_has_speed_limit=has_limit,
    )


def straight_plan(speed: float = 10.0, accel: float = 0.0, y: float = 0.0, steps: int = 80) -> Tensor:
    """(1, H, 4) along x at lateral position y, constant acceleration, never backwards."""
    speeds = (speed + accel * 0.1 * torch.arange(1, steps + 1, dtype=torch.float64)).clamp(min=0.0)
    plan = torch.zeros(1, steps, 4, dtype=torch.float64)
    plan[0, :, 0], plan[0, :, 1], plan[0, :, 2] = (speeds * 0.1).cumsum(0), y, 1.0
    return plan


def curved_plan(speed: float, curvature: float, steps: int = 80) -> Tensor:
    """(1, H, 4) on a circle through the origin."""
    s = speed * 0.1 * torch.arange(1, steps + 1, dtype=torch.float64)
    heading = curvature * s
    x = torch.sin(heading) / curvature
    y = (1 - torch.cos(heading)) / curvature
    return torch.stack((x, y, heading.cos(), heading.sin()), -1)[None]
