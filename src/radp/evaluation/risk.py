"""Risk from executed states alone: what happened in the drive, never what a rule's cost says about it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import shapely

from radp.evaluation.endpoints import ENDPOINTS, EXECUTED, MIN_WINDOW_LEFT, Endpoint
from radp.geometry.areas import areas_at
from radp.geometry.ragged import Polygons
from radp.metrics.comfort import ACCEL_WINDOW, FEWEST_SAMPLES, JERK_WINDOW, smoothed
from radp.metrics.drive import box_centers, mean_step, read_drive
from radp.metrics.lanes import route_of
from radp.metrics.progress import LEAST_PROGRESS, progress_series, roadblock_path
from radp.metrics.score import ScenarioScore
from radp.road.arrays import RoadArrays, road_arrays
from radp.scenario import DT, PACIFICA, Ego, Scenario
from radp.sim.rollout import Rollout

SHORTEST_TTC = 0.1  # s
MAX_ACCELERATION, MAX_BRAKING, MAX_LATERAL, MAX_CURVATURE = 6.0, 8.0, 4.5, 0.35
MAX_JERK, MAX_CURVATURE_RATE = 8.37, 0.30
EASY_ACCELERATION = 0.5  # m/s2 within reach of any car
GOAL_WINDOW = next(endpoint.window for endpoint in ENDPOINTS if endpoint.name == "goal")


def severities(rollout: Rollout, score: ScenarioScore) -> dict[str, np.ndarray]:
    """(S,) severity of each endpoint of the main reading at each sample of a drive; NaN where it is not defined."""
    found = all_severities(rollout, score)
    return {endpoint.name: found[endpoint.series] for endpoint in ENDPOINTS}


def all_severities(rollout: Rollout, score: ScenarioScore) -> dict[str, np.ndarray]:
    """(S,) every severity that an endpoint of any reading is made of."""
    if score.details is None:
        return {name: np.full(len(rollout.time_us), np.nan) for name in EXECUTED}
    raw, smooth = executed_motion(rollout), smooth_motion(rollout)
    progress, speed = progress_of(rollout), np.abs(rollout.ego[:, Ego.VX])
    return {
        "collision": overlaps(rollout),
        "ttc": np.where(np.isinf(score.ttc), 0.0, 1.0 / np.maximum(score.ttc, SHORTEST_TTC)),
        "lane": -margins(rollout),
        "speed": np.maximum(score.details.speed_limit.over, 0.0),
        "kinematics": smooth.kinematics(),
        "comfort": smooth.comfort(),
        "kinematics_raw": raw.kinematics(),
        "comfort_raw": raw.comfort(),
        "goal": shortfall(progress.ego, speed),
        "goal_before": shortfall_before(progress.ego, speed),
        "goal_same": progress.deficit(progress.expert),
        "goal_total": progress.deficit(progress.expert[-1:]),
    }


def future_risk(severity: np.ndarray, lengths: np.ndarray, endpoint: Endpoint, dt: float = DT) -> np.ndarray:
    """severity (N, T) of drives with lengths (N,) -> (N, T) risk over [t, t + window], cut at the drive's end.

    A window that begins later is (t + begin, t + window]. NaN where less than half of the window remains, and where the
    severity is not defined in it.
    """
    steps, skipped, count = round(endpoint.window / dt), round(endpoint.begin / dt), severity.shape[1]
    left = np.minimum(steps, lengths[:, None] - 1 - np.arange(count))
    enough = left >= skipped + MIN_WINDOW_LEFT * (steps - skipped)
    if endpoint.aggregate == "now" or not count:
        risk = severity
    elif endpoint.aggregate == "last":
        risk = np.take_along_axis(severity, np.maximum(np.arange(count) + left, 0), axis=1)
    else:
        inside = np.pad(np.arange(count) < lengths[:, None], ((0, 0), (0, steps)))
        values = np.pad(severity, ((0, 0), (0, steps)))
        neutral = -np.inf if endpoint.aggregate == "max" else 0.0
        first = skipped + (skipped > 0)
        windows = _windows(np.where(inside, values, neutral), steps + 1)[:, :count, first:]
        if endpoint.aggregate == "max":
            risk = windows.max(-1)
        else:
            risk = windows.sum(-1) / np.maximum(_windows(inside, steps + 1)[:, :count, first:].sum(-1), 1)
    return np.where(enough, risk, np.nan)


def _windows(values: np.ndarray, size: int) -> np.ndarray:
    return np.lib.stride_tricks.sliding_window_view(values, size, axis=1)


def _boxes(centers: np.ndarray, headings: np.ndarray, length: np.ndarray, width: np.ndarray) -> np.ndarray:
    """(n, 4, 2) corners."""
    forward = np.stack((np.cos(headings), np.sin(headings)), -1) * np.asarray(length)[..., None] / 2
    left = np.stack((-np.sin(headings), np.cos(headings)), -1) * np.asarray(width)[..., None] / 2
    return np.stack(
        (centers + forward + left, centers - forward + left, centers - forward - left, centers + forward - left), -2
    )


def overlaps(rollout: Rollout) -> np.ndarray:
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


def margins(rollout: Rollout) -> np.ndarray:
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


@dataclass(frozen=True)
class ExecutedMotion:
    """Executed motion of S samples, (S,) each: accelerations [m/s2], curvature [1/m] and their rates."""

    along: np.ndarray
    across: np.ndarray
    curvature: np.ndarray
    jerk_along: np.ndarray
    jerk_across: np.ndarray
    curvature_rate: np.ndarray

    def kinematics(self) -> np.ndarray:
        """(S,) largest ratio to its bound of acceleration, braking, lateral acceleration and curvature."""
        forward, braking = self.along / MAX_ACCELERATION, -self.along / MAX_BRAKING
        return np.max(
            (forward, braking, np.abs(self.across) / MAX_LATERAL, np.abs(self.curvature) / MAX_CURVATURE), axis=0
        )

    def comfort(self) -> np.ndarray:
        """(S,) largest ratio to its bound of the jerks and the curvature rate."""
        rates = (self.jerk_along / MAX_JERK, self.jerk_across / MAX_JERK, self.curvature_rate / MAX_CURVATURE_RATE)
        return np.abs(rates).max(0)


def motion_of(ego: np.ndarray) -> np.ndarray:
    """Ego states (..., 11) -> (3, ...) acceleration along and across, curvature, from speed, acceleration, yaw rate."""
    speed, along, yaw_rate = (ego[..., column] for column in (Ego.VX, Ego.AX, Ego.YAW_RATE))
    return np.stack((along, speed * yaw_rate, yaw_rate / np.maximum(np.abs(speed), 1.0)))


def executed_motion(rollout: Rollout) -> ExecutedMotion:
    """As it is, rates by differences."""
    values = motion_of(rollout.ego)
    dt = np.maximum(np.diff(rollout.time_us) * 1e-6, 1e-3)
    return ExecutedMotion(*values, *np.pad(np.diff(values) / dt, ((0, 0), (1, 0))))


def smooth_motion(rollout: Rollout) -> ExecutedMotion:
    """Savitzky-Golay filtered with the windows of nuPlan's comfort metric, 8 samples for values, 15 for their rates.

    NaN for a drive of fewer than 4 samples, which cannot be smoothed.
    """
    values, step = motion_of(rollout.ego), mean_step(rollout.time_us)
    if values.shape[1] < FEWEST_SAMPLES:
        return ExecutedMotion(*np.full((6, values.shape[1]), np.nan))
    values = smoothed(values, ACCEL_WINDOW, 2, 0, step)
    return ExecutedMotion(*values, *smoothed(values, JERK_WINDOW, 2, 1, step))


@dataclass(frozen=True)
class RouteProgress:
    """Metres along the expert's roadblocks since the start, of the ego (S,) and the expert (at least S,)."""

    ego: np.ndarray
    expert: np.ndarray

    def deficit(self, expert: np.ndarray) -> np.ndarray:
        """(S,) 1 - progress of the ego / that of the expert (S,) or (1,), both at least 2 m; never below 0."""
        mine, theirs = np.maximum(self.ego, LEAST_PROGRESS), np.maximum(expert, LEAST_PROGRESS)
        return np.maximum(1.0 - mine / theirs[: len(mine)], 0.0)


def progress_path(scenario: Scenario) -> tuple[np.ndarray, np.ndarray, RoadArrays]:
    """Roadblocks (K,) of the expert, a lane (K,) for each, and the road; K = 0 where the expert was in none."""
    road = road_arrays(scenario.map)
    expert = box_centers(scenario.ego[scenario.start :])
    return *roadblock_path(route_of(expert, areas_at(expert, road.lanes), road), road.graph), road


def progress_of(rollout: Rollout) -> RouteProgress:
    """NaN where the expert drove through no roadblock."""
    scenario = rollout.scenario
    expert, (blocks, lanes, road) = box_centers(scenario.ego[scenario.start :]), progress_path(scenario)
    if not len(blocks):
        return RouteProgress(np.full(len(rollout.ego), np.nan), np.full(len(expert), np.nan))
    centers = read_drive(rollout).center
    return RouteProgress(*(np.cumsum(progress_series(points, blocks, lanes, road)) for points in (centers, expert)))


def reachable(speed: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """Metres that a car can come in some time from its speed: v t + 0.25 t^2 (as the goal's rule), at least 2 m."""
    return np.maximum(speed * seconds + 0.5 * EASY_ACCELERATION * seconds**2, LEAST_PROGRESS)


def shortfall(progress: np.ndarray, speed: np.ndarray, seconds: float = GOAL_WINDOW) -> np.ndarray:
    """progress, speed (S,) -> (S,): max(0, 1 - metres made / metres in reach) over the next seconds, cut at the end."""
    frame = np.arange(len(progress))
    ahead = np.minimum(frame + round(seconds / DT), len(progress) - 1)
    made = progress[ahead] - progress
    return np.clip(1.0 - made / reachable(speed, (ahead - frame) * DT), 0.0, 1.0)


def shortfall_before(progress: np.ndarray, speed: np.ndarray, seconds: float = GOAL_WINDOW) -> np.ndarray:
    """(S,) the same over the seconds before, as far as there are any; NaN in the first second."""
    frame = np.arange(len(progress))
    then = np.maximum(frame - round(seconds / DT), 0)
    made = progress - progress[then]
    short = np.clip(1.0 - made / reachable(speed[then], (frame - then) * DT), 0.0, 1.0)
    return np.where(frame * DT < 1.0, np.nan, short)
