"""Risk from executed states alone: what happened in the drive, never what a rule's cost says about it."""

from __future__ import annotations

import numpy as np
import shapely

from radp.evaluation.endpoints import ENDPOINTS, MIN_WINDOW_LEFT, Endpoint
from radp.geometry.areas import areas_at
from radp.geometry.ragged import Polygons
from radp.metrics.drive import box_centers, read_drive
from radp.metrics.lanes import route_of
from radp.metrics.progress import LEAST_PROGRESS, progress_series, roadblock_path
from radp.metrics.score import ScenarioScore
from radp.road.arrays import road_arrays
from radp.scenario import PACIFICA, Ego, Scenario
from radp.sim.rollout import Rollout

SHORTEST_TTC = 0.1  # s
MAX_ACCELERATION, MAX_BRAKING, MAX_LATERAL, MAX_CURVATURE = 6.0, 8.0, 4.5, 0.35
MAX_JERK, MAX_CURVATURE_RATE = 8.37, 0.30


def severities(rollout: Rollout, score: ScenarioScore) -> dict[str, np.ndarray]:
    """(S,) severity of each endpoint at each sample of a drive; NaN where it is not defined."""
    if score.details is None:
        return {endpoint.name: np.full(len(rollout.time_us), np.nan) for endpoint in ENDPOINTS}
    kinematics, comfort = _dynamics(rollout)
    return {
        "collision": _overlap(rollout),
        "ttc": np.where(np.isinf(score.ttc), 0.0, 1.0 / np.maximum(score.ttc, SHORTEST_TTC)),
        "lane": -_margin(rollout),
        "speed": np.maximum(score.details.speed_limit.over, 0.0),
        "kinematics": kinematics,
        "comfort": comfort,
        "goal": _deficit(rollout),
    }


def future_risk(severity: np.ndarray, lengths: np.ndarray, endpoint: Endpoint, dt: float = 0.1) -> np.ndarray:
    """severity (N, T) of drives with lengths (N,) -> (N, T) risk over [t, t + window], cut at the drive's end.

    NaN where less than half of the window remains, and where the severity is not defined in it.
    """
    steps, count = round(endpoint.window / dt), severity.shape[1]
    left = np.minimum(steps, lengths[:, None] - 1 - np.arange(count))
    if endpoint.aggregate == "last":
        risk = np.take_along_axis(severity, np.maximum(np.arange(count) + left, 0), axis=1) if count else severity
    else:
        known = np.where(np.arange(count) < lengths[:, None], severity, -np.inf)
        padded = np.pad(known, ((0, 0), (0, steps)), constant_values=-np.inf)
        risk = np.lib.stride_tricks.sliding_window_view(padded, steps + 1, axis=1).max(-1)[:, :count]
    return np.where(left >= MIN_WINDOW_LEFT * steps, risk, np.nan)


def _boxes(centers: np.ndarray, headings: np.ndarray, length: np.ndarray, width: np.ndarray) -> np.ndarray:
    """(n, 4, 2) corners."""
    forward = np.stack((np.cos(headings), np.sin(headings)), -1) * np.asarray(length)[..., None] / 2
    left = np.stack((-np.sin(headings), np.cos(headings)), -1) * np.asarray(width)[..., None] / 2
    return np.stack(
        (centers + forward + left, centers - forward + left, centers - forward - left, centers + forward - left), -2
    )


def _overlap(rollout: Rollout) -> np.ndarray:
    """(S,) area of overlap with the box that overlaps most [m2]."""
    ego, tracks = rollout.ego, rollout.agents
    centers, out = box_centers(ego), np.zeros(len(ego))
    gap = np.linalg.norm(tracks.state[..., :2] - centers[None], axis=-1)
    reach = np.hypot(*tracks.size[:, :2].T)[:, None] / 2 + np.hypot(PACIFICA.length, PACIFICA.width) / 2
    agent, sample = np.nonzero(tracks.valid & (gap <= reach))
    if not len(agent):
        return out
    state, size = tracks.state[agent, sample], tracks.size[agent]
    others = shapely.polygons(_boxes(state[:, :2], state[:, 2], size[:, 0], size[:, 1]))
    full = np.ones(len(sample))
    mine = _boxes(centers[sample], ego[sample, Ego.HEADING], PACIFICA.length * full, PACIFICA.width * full)
    np.maximum.at(out, sample, shapely.area(shapely.intersection(shapely.polygons(mine), others)))
    return out


def route_area(scenario: Scenario) -> shapely.Geometry:
    """The area of the route: its roadblocks, those the expert drove through, and what lies between them."""
    road_map = scenario.map
    blocks = {road_map.roadblocks.index[name] for name in scenario.route if name in road_map.roadblocks.index}
    road = road_arrays(road_map)
    expert = box_centers(scenario.ego[scenario.start :])
    driven = route_of(expert, areas_at(expert, road.lanes), road)
    blocks |= {int(block) for block in roadblock_path(driven, road.graph)[0]}
    parts = [polygon_of(road_map.roadblocks.polygons, block) for block in sorted(blocks)]
    return shapely.union_all(parts, grid_size=1e-3) if parts else shapely.Polygon()


def polygon_of(polygons: Polygons, i: int) -> shapely.Geometry:
    """Area i by the even-odd rule."""
    area = shapely.Polygon()
    for ring in polygons[i]:
        if len(ring) >= 3:
            area = area.symmetric_difference(shapely.make_valid(shapely.Polygon(ring)))
    return area


def _margin(rollout: Rollout) -> np.ndarray:
    """(S,) signed distance of the ego's corners to the border of the route [m], the least of them; positive inside."""
    area = route_area(rollout.scenario)
    count = len(rollout.ego)
    if area.is_empty:
        return np.full(count, np.nan)
    ones = np.ones(count)
    corners = _boxes(
        box_centers(rollout.ego), rollout.ego[:, Ego.HEADING], PACIFICA.length * ones, PACIFICA.width * ones
    )
    points = shapely.points(corners.reshape(-1, 2))
    shapely.prepare(area)
    distance = shapely.distance(area.boundary, points)
    return np.where(shapely.contains(area, points), distance, -distance).reshape(count, 4).min(1)


def _dynamics(rollout: Rollout) -> tuple[np.ndarray, np.ndarray]:
    """(S,) kinematic and comfort ratios to their bounds, from executed speed, acceleration and yaw rate."""
    ego = rollout.ego
    speed, along, yaw_rate = ego[:, Ego.VX], ego[:, Ego.AX], ego[:, Ego.YAW_RATE]
    across = speed * yaw_rate
    curvature = yaw_rate / np.maximum(np.abs(speed), 1.0)
    dt = np.maximum(np.diff(rollout.time_us) * 1e-6, 1e-3)

    def rate(series: np.ndarray) -> np.ndarray:
        return np.concatenate(([0.0], np.abs(np.diff(series)) / dt))

    kinematics = np.max(
        (
            along / MAX_ACCELERATION,
            -along / MAX_BRAKING,
            np.abs(across) / MAX_LATERAL,
            np.abs(curvature) / MAX_CURVATURE,
        ),
        axis=0,
    )
    comfort = np.max((rate(along) / MAX_JERK, rate(across) / MAX_JERK, rate(curvature) / MAX_CURVATURE_RATE), axis=0)
    return kinematics, comfort


def _deficit(rollout: Rollout) -> np.ndarray:
    """(S,) 1 - progress of the ego / progress of the expert up to the same moment, both at least 2 m, within [0, 1]."""
    scenario = rollout.scenario
    road = road_arrays(scenario.map)
    expert = box_centers(scenario.ego[scenario.start :])
    blocks, lanes = roadblock_path(route_of(expert, areas_at(expert, road.lanes), road), road.graph)
    if not len(blocks):
        return np.full(len(rollout.ego), np.nan)
    drive = read_drive(rollout)
    mine = np.maximum(np.cumsum(progress_series(drive.center, blocks, lanes, road)), LEAST_PROGRESS)
    theirs = np.maximum(np.cumsum(progress_series(expert, blocks, lanes, road)), LEAST_PROGRESS)
    return np.clip(1.0 - mine / theirs[: len(mine)], 0.0, 1.0)
