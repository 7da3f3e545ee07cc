"""nuPlan's IDM planner: the route's centre line at the speed limit, behind whoever stands or drives on it now."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numba import njit

from radp.planners.corridor import (
    CENTER,
    FRONT,
    HALF_WIDTH,
    HEADING,
    SIDE_MARGIN,
    VX,
    VY,
    X,
    Y,
    blend_length,
    box_in_band,
    ego_on_line,
    idm_acceleration,
    lateral_at,
    place_on_line,
    pose_beside_line,
    stop_gap,
)
from radp.planners.guides import GuideBook, stop_points
from radp.road.guide import GUIDE_SPACING, OVERRUN
from radp.scenario import DT, Ego
from radp.sim.observation import Observation
from radp.sim.plan import Plan
from radp.sim.planner import plan_from_world

SAMPLES, EVERY = 16, 5  # poses after the present one, every 0.5 s up to 8 s


@dataclass
class IDMPlanner:
    """17 poses every 0.5 s along the route's centre line; agents further than `radius` from the ego are not seen."""

    target_speed: float = 10.0  # m/s where there is no limit
    min_gap: float = 1.0  # m
    headway: float = 1.5  # s
    accel: float = 1.0  # m/s2
    decel: float = 3.0  # m/s2
    exponent: float = 4.0
    radius: float = 40.0  # m
    deterministic: ClassVar[bool] = True
    name: str = field(default="idm", init=False)
    guides: GuideBook = field(default_factory=GuideBook, init=False, repr=False)

    def plan(self, observation: Observation) -> Plan:
        """B worlds -> plans of 17 poses with their times; the first one is where the ego should be now."""
        poses = np.empty((len(observation), SAMPLES + 1, 3))
        driver = (self.target_speed, self.min_gap, self.headway, self.accel, self.decel, self.exponent)
        for b in range(len(observation)):
            line = self.guides.line(observation, b)
            stops, yellow = stop_points(line, observation, b)
            follow_line(
                observation.ego[b, -1], observation.agents[b, -1], observation.agent_valid[b, -1],
                observation.agent_size[b], self.radius, line.points, line.headings, line.limits,
                line.first_end + OVERRUN, stops, yellow, driver, poses[b],
            )  # fmt: skip
        times = np.broadcast_to(np.arange(SAMPLES + 1) * (EVERY * DT), poses.shape[:2])
        return plan_from_world(observation, poses, times)


@njit(cache=True, nogil=True)
def follow_line(
    ego: np.ndarray,
    agents: np.ndarray,
    valid: np.ndarray,
    size: np.ndarray,
    radius: float,
    points: np.ndarray,
    headings: np.ndarray,
    limits: np.ndarray,
    until: float,
    stops: np.ndarray,
    yellow: np.ndarray,
    driver: tuple[float, float, float, float, float, float],
    out: np.ndarray,
) -> None:
    """One world: ego (11,), agents (A, 5) -> poses (17, 3) in the world frame, written to `out`.

    driver: speed without limit, min gap, headway, acceleration, deceleration, exponent.
    """
    s, lateral, slope = ego_on_line(ego, points, headings, GUIDE_SPACING, until)
    start, length = s, blend_length(ego[Ego.VX], lateral)
    speed = max(0.0, ego[Ego.VX])
    rear, lead_speed = _lead(s, ego, agents, valid, size, radius, points, headings)
    light, end = s + FRONT + stop_gap(s, speed, stops, yellow), (points.shape[0] - 1) * GUIDE_SPACING
    for k in range(SAMPLES * EVERY + 1):
        if k % EVERY == 0:
            offset, tilt = lateral_at(s, start, lateral, slope, 0.0, length)
            pose_beside_line(s, offset, tilt, points, headings, GUIDE_SPACING, out[k // EVERY])
        limit = limits[min(max(int(s / GUIDE_SPACING), 0), limits.shape[0] - 1)]
        target = limit if limit > 0.0 else driver[0]
        gap, other = rear + lead_speed * DT * k - s - FRONT, lead_speed
        for wall in (light, end):
            if wall - s - FRONT < gap:
                gap, other = wall - s - FRONT, 0.0
        change = idm_acceleration(speed, target, gap, other, driver[1], driver[2], driver[3], driver[4], driver[5])
        s += speed * DT
        speed = max(0.0, speed + change * DT)


@njit(cache=True, nogil=True)
def _lead(
    s: float,
    ego: np.ndarray,
    agents: np.ndarray,
    valid: np.ndarray,
    size: np.ndarray,
    radius: float,
    points: np.ndarray,
    headings: np.ndarray,
) -> tuple[float, float]:
    """Arc length of the rear of the nearest object on the ego's way, and its speed along the line; (inf, 0) if none."""
    best, best_speed = np.inf, 0.0
    x, y = ego[Ego.X] + CENTER * math.cos(ego[Ego.HEADING]), ego[Ego.Y] + CENTER * math.sin(ego[Ego.HEADING])
    half = HALF_WIDTH + SIDE_MARGIN
    for a in range(agents.shape[0]):
        if not valid[a] or math.hypot(agents[a, X] - x, agents[a, Y] - y) > radius:
            continue
        along, lateral, turned = place_on_line(
            agents[a, X], agents[a, Y], agents[a, HEADING], -1, 0, points, headings, GUIDE_SPACING
        )
        rear, _ = box_in_band(along, lateral, turned, size[a, 0], size[a, 1], -half, half)
        if rear < best and along > s + CENTER:
            direction = agents[a, HEADING] - turned
            best = rear
            best_speed = max(0.0, agents[a, VX] * math.cos(direction) + agents[a, VY] * math.sin(direction))
    return best, best_speed
