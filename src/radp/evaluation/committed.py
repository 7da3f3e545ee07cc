"""Risks of the plan itself: each plan of a drive is driven for 2 s without replanning, and the seven are measured.

A planner that reacts averts what pressure foretells; here nobody averts anything. The ego follows the plan by tracker
and bicycle; the others move as they did in the drive. All plans of a drive are followed and measured together.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from radp.evaluation.endpoints import COMMITTED, COMMITTED_SECONDS
from radp.evaluation.risk import (
    SHORTEST_TTC,
    ExecutedMotion,
    margins,
    motion_of,
    overlaps,
    progress_path,
    reachable,
)
from radp.geometry.areas import Rows
from radp.metrics.comfort import ACCEL_WINDOW, JERK_WINDOW, smoothed
from radp.metrics.drive import Drive, box_centers, mean_step, read_drive
from radp.metrics.lanes import Places, corner_lanes, locate, route_of
from radp.metrics.progress import progress_series
from radp.metrics.score import ScenarioScore
from radp.metrics.speed_limit import limit_series
from radp.metrics.ttc import ttc_series
from radp.road.arrays import RoadArrays, road_arrays
from radp.scenario import DT, Ego, Tracks
from radp.sim.committed import follow_plans
from radp.sim.controller import trajectories_from_plan
from radp.sim.plan import Plan
from radp.sim.rollout import Rollout

STEPS = round(COMMITTED_SECONDS / DT)
BEFORE = 20  # executed samples before the plan that smoothing sees


def committed_severities(rollout: Rollout, score: ScenarioScore) -> dict[str, np.ndarray]:
    """(S,) by the name of the committed endpoints' severities: the worst of the 2 s, NaN in the last 2 s of a drive."""
    samples = len(rollout.ego)
    out = {endpoint.series: np.full(samples, np.nan) for endpoint in COMMITTED}
    if score.details is None or rollout.plans is None or len(rollout.plans) < samples or samples <= STEPS:
        return out
    driven = drive_plans(rollout)
    for name, values in _measure(rollout, score, driven).items():
        out[f"committed_{name}"][: len(values)] = values
    return out


def drive_plans(rollout: Rollout) -> np.ndarray:
    """(K, 21, 11): what the ego would have done with the plan of each of the first K = S - 20 samples."""
    count = len(rollout.ego) - STEPS
    assert rollout.plans is not None
    plan = Plan(torch.from_numpy(np.ascontiguousarray(rollout.plans[:count])))
    when = np.arange(count)[:, None] + np.arange(STEPS)
    dt = np.diff(rollout.time_us)[when] * 1e-6
    return follow_plans(rollout.ego[:count], trajectories_from_plan(plan, count), dt)


def _measure(rollout: Rollout, score: ScenarioScore, driven: np.ndarray) -> dict[str, np.ndarray]:
    """driven (K, 21, 11) -> (K,) by endpoint."""
    count = len(driven)
    when = np.arange(count)[:, None] + 1 + np.arange(STEPS)
    piece = replace(rollout, ego=driven[:, 1:].reshape(-1, driven.shape[2]), agents=_at(rollout.agents, when.ravel()))
    motion = _smooth_motion(rollout.ego, driven, mean_step(rollout.time_us))
    drive, road = read_drive(piece), road_arrays(rollout.scenario.map)
    places = locate(drive, drive.center[:1], road)

    def worst(values: np.ndarray) -> np.ndarray:
        return values.reshape(count, STEPS).max(1)

    return {
        "collision": worst(overlaps(piece)),
        "ttc": worst(_inverse_ttc(drive, places, road, score)),
        "lane": worst(-margins(piece)),
        "speed": worst(_overspeed(drive, places, road)),
        "kinematics": worst(motion.kinematics()),
        "comfort": worst(motion.comfort()),
        "goal": _shortfall(rollout, driven),
    }


def _at(tracks: Tracks, samples: np.ndarray) -> Tracks:
    return Tracks(tracks.ids, tracks.type, tracks.size, tracks.state[:, samples], tracks.valid[:, samples])


def _inverse_ttc(drive: Drive, places: Places, road: RoadArrays, score: ScenarioScore) -> np.ndarray:
    """(K * 20,) 1 / time to collision; objects that the drive touched before a plan was made do not count for it."""
    assert score.details is not None
    touched = score.details.collisions.first_frame
    moment = np.arange(len(drive.ego)) // STEPS
    gone = (touched[:, None] >= 0) & (touched[:, None] <= moment)
    drive = drive._replace(agent_valid=drive.agent_valid & ~gone)
    connected = corner_lanes(places.corners, road.graph)[1]
    never = np.full(len(touched), -1, dtype=touched.dtype)
    ttc, _ = ttc_series(drive, connected, places.crossing, never, np.zeros(len(never), dtype=bool))
    return np.where(np.isinf(ttc), 0.0, 1.0 / np.maximum(ttc, SHORTEST_TTC))


def _overspeed(drive: Drive, places: Places, road: RoadArrays) -> np.ndarray:
    """(K * 20,) m/s above the limit; the lanes of each plan are followed on their own."""
    inside = places.center
    limit = np.zeros(len(drive.speed))
    for first in range(0, len(limit), STEPS):
        part = slice(first, first + STEPS)
        rows = Rows(inside.start[part], inside.size[part], inside.members)
        limit[part] = limit_series(route_of(drive.center[part], rows, road), road.graph)
    return np.where(limit > 0, np.maximum(drive.speed - limit, 0.0), 0.0)


def _smooth_motion(executed: np.ndarray, driven: np.ndarray, step: float) -> ExecutedMotion:
    """(K, 20) each: the committed motion, smoothed together with the 2 s before it (its first state, at the start)."""
    count = len(driven)
    before = np.maximum(np.arange(count)[:, None] + np.arange(-BEFORE, 0), 0)
    values = motion_of(np.concatenate((executed[before], driven), 1))  # (3, K, 41)
    values = smoothed(values.reshape(3 * count, -1), ACCEL_WINDOW, 2, 0, step)
    rates = smoothed(values, JERK_WINDOW, 2, 1, step)
    both = np.concatenate((values, rates)).reshape(6, count, -1)
    return ExecutedMotion(*both[..., -STEPS:])


def _shortfall(rollout: Rollout, driven: np.ndarray) -> np.ndarray:
    """(K,) max(0, 1 - metres made in the 2 s / metres in reach); the way so far decides where the route goes on."""
    blocks, lanes, road = progress_path(rollout.scenario)
    if not len(blocks):
        return np.full(len(driven), np.nan)
    centers, made = read_drive(rollout).center, np.zeros(len(driven))
    for moment, states in enumerate(driven):
        points = np.concatenate((centers[: moment + 1], box_centers(states[1:])))
        made[moment] = progress_series(points, blocks, lanes, road)[-STEPS:].sum()
    speed = np.abs(driven[:, 0, Ego.VX])
    return np.clip(1.0 - made / reachable(speed, np.full(len(made), COMMITTED_SECONDS)), 0.0, 1.0)
