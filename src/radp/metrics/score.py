"""The score of a drive: all metrics of nuPlan's closed-loop evaluation and their aggregation."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from radp.geometry.areas import Rows
from radp.metrics.collisions import CollisionResult, Contact, collisions
from radp.metrics.comfort import ComfortResult, comfort
from radp.metrics.drivable_area import DrivableResult, drivable_area
from radp.metrics.drive import Drive, box_centers, read_drive
from radp.metrics.driving_direction import DirectionResult, driving_direction
from radp.metrics.lanes import corner_lanes, locate, route_of
from radp.metrics.metric import NO_VALUE, Metric
from radp.metrics.progress import ProgressResult, progress
from radp.metrics.speed_limit import SpeedLimitResult, speed_limit
from radp.metrics.ttc import TtcResult, time_to_collision
from radp.road.arrays import road_arrays
from radp.runs.notebook import html_card
from radp.sim.rollout import Rollout

GATES = (
    "no_ego_at_fault_collisions",
    "drivable_area_compliance",
    "ego_is_making_progress",
    "driving_direction_compliance",
)
WEIGHTS = {
    "ego_progress_along_expert_route": 5.0,
    "time_to_collision_within_bound": 5.0,
    "speed_limit_compliance": 4.0,
    "ego_is_comfortable": 2.0,
}
METRICS = (*GATES, *WEIGHTS)


@dataclass(frozen=True)
class Details:
    """Everything the metrics found in one drive of S samples."""

    time_us: np.ndarray  # (S,)
    speed: np.ndarray  # (S,) m/s
    route: Rows  # S rows of lanes of the ego's centre
    connected: np.ndarray  # (S,) bool, the set C: wholly inside one lane or connected lanes
    collisions: CollisionResult
    ttc: TtcResult
    drivable: DrivableResult
    direction: DirectionResult
    progress: ProgressResult
    speed_limit: SpeedLimitResult
    comfort: ComfortResult


@dataclass(frozen=True)
class ScenarioScore:
    """score in [0, 1] and the eight metrics by name; `details` is None when the planner failed (score 0).

    The score of a drive whose map is unknown is NaN.
    """

    token: str
    kind: str
    planner: str
    agent_mode: str
    seed: int
    score: float
    metrics: dict[str, Metric]
    track_ids: tuple[str, ...]
    track_types: np.ndarray  # (A,) ObjectType
    lane_ids: tuple[str, ...]
    details: Details | None
    failure: str | None = None

    def __repr__(self) -> str:
        values = ", ".join(f"{name} {value}" for name, value in self._values().items())
        return f"ScenarioScore(token {self.token}, planner {self.planner}, {values})"

    def _repr_html_(self) -> str:
        return html_card(f"{self.planner} in {self.token}", self._values())

    def _values(self) -> dict[str, str]:
        """The score, and what is below 1."""
        below = {name: m.value for name, m in self.metrics.items() if m.valid and m.value < 1.0}
        found = {"score": self.score, **below}
        return {name: f"{value:.4f}" for name, value in found.items()} | (
            {} if self.failure is None else {"failure": self.failure}
        )

    @property
    def collisions(self) -> tuple[Contact, ...]:
        """First contacts in order of time."""
        return self.details.collisions.collisions if self.details else ()

    @property
    def ttc(self) -> np.ndarray:
        """(S,) seconds; infinite = nothing ahead, 0 = at-fault collision in this sample."""
        return self.details.ttc.ttc if self.details else np.zeros(0)

    @property
    def comfort(self) -> dict[str, bool]:
        """Six flags, True = within the bounds."""
        return self.details.comfort.flags if self.details else {}

    @property
    def in_one_or_connected_lanes(self) -> np.ndarray:
        """(S,) bool, the set C."""
        return self.details.connected if self.details else np.zeros(0, dtype=bool)

    @property
    def ego_route(self) -> list[list[str]]:
        """Per sample the ids of the lanes or connectors that the ego's centre is assigned to."""
        if self.details is None:
            return []
        route = self.details.route
        return [[self.lane_ids[lane] for lane in route.row(i)] for i in range(len(route.start))]

    @property
    def series(self) -> dict[str, np.ndarray]:
        """Per-sample values (S,) by metric."""
        if self.details is None:
            return {}
        d = self.details
        return {
            **{f"ego_{name}": values for name, values in d.comfort.series.items()},
            "ego_progress_along_expert_route": d.progress.series,
            "corners_in_drivable_area": d.drivable.inside.astype(np.float64),
            "time_to_collision_within_bound": d.ttc.ttc,
            "speed_limit_compliance": d.speed_limit.over,
            "driving_direction_compliance": d.direction.series,
        }


def aggregate(metrics: dict[str, Metric]) -> float:
    """Product of the gates times the weighted mean of the others; metrics without a value are left out."""
    gate = 1.0
    for name in GATES:
        if metrics[name].valid:
            gate *= metrics[name].value
    weights = {name: weight for name, weight in WEIGHTS.items() if metrics[name].valid}
    if not weights:
        return gate
    return gate * sum(weight * metrics[name].value for name, weight in weights.items()) / sum(weights.values())


def evaluate(rollout: Rollout) -> ScenarioScore:
    """Score one drive. A drive whose planner failed scores 0 and has no metrics."""
    if rollout.failure is not None or len(rollout.time_us) == 0:
        reason = rollout.failure or "the drive has no samples"
        return _score_of(rollout, 0.0, dict.fromkeys(METRICS, NO_VALUE), None, reason)
    details = _details(rollout, read_drive(rollout))
    metrics = {
        "no_ego_at_fault_collisions": details.collisions.metric,
        "drivable_area_compliance": details.drivable.metric,
        "ego_is_making_progress": details.progress.making_progress,
        "driving_direction_compliance": details.direction.metric,
        "ego_progress_along_expert_route": details.progress.progress,
        "time_to_collision_within_bound": details.ttc.metric,
        "speed_limit_compliance": details.speed_limit.metric,
        "ego_is_comfortable": details.comfort.metric,
    }
    metrics = known_metrics(rollout, metrics, details)
    score = np.nan if "map" in _unknown(rollout) else aggregate(metrics)
    return _score_of(rollout, score, metrics, details, None)


def _unknown(rollout: Rollout) -> list[str]:
    """What the log of a drive did not say: a road without lanes is known, a map that was not at hand is not."""
    return rollout.scenario.tags.get("unknown", "").split(", ")


def known_metrics(rollout: Rollout, metrics: dict[str, Metric], details: Details) -> dict[str, Metric]:
    """With an unknown map only comfort has a value, and collisions if there is none; progress needs an expert."""
    unknown = _unknown(rollout)
    if "map" in unknown:
        kept = {"ego_is_comfortable"} | (set() if details.collisions.collisions else {GATES[0]})
    elif "expert" in unknown:
        kept = set(METRICS) - {"ego_is_making_progress", "ego_progress_along_expert_route"}
    else:
        return metrics
    return {name: value if name in kept else NO_VALUE for name, value in metrics.items()}


def evaluate_many(rollouts: Iterable[Rollout], threads: int | None = None) -> list[ScenarioScore]:
    """Score many drives, as `evaluate` would one by one; the kernels release the interpreter, so threads help.

    >>> split, planner = radp.open_split("sumo14-val")[:1], radp.load_planner("log_replay")
    >>> (result,) = radp.score(radp.simulate(planner, split, agents="nonreactive"))
    >>> result.score > 0.9, result.metrics["no_ego_at_fault_collisions"].value
    (True, 1.0)
    """
    drives: Sequence[Rollout] = list(rollouts)
    threads = min(threads or os.cpu_count() or 1, len(drives))
    if threads <= 1:
        return [evaluate(drive) for drive in drives]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(evaluate, drives))


def _details(rollout: Rollout, drive: Drive) -> Details:
    road, scenario = road_arrays(rollout.scenario.map), rollout.scenario
    expert_center = box_centers(scenario.ego[scenario.start :])
    where = locate(drive, expert_center, road)
    has_lane, connected = corner_lanes(where.corners, road.graph)
    route = route_of(drive.center, where.center, road)
    found = collisions(drive, connected, rollout.agents.ids, rollout.agents.type)
    return Details(
        time_us=drive.time_us,
        speed=drive.speed,
        route=route,
        connected=connected,
        collisions=found,
        ttc=time_to_collision(drive, connected, where.crossing, found),
        drivable=drivable_area(drive, route, has_lane, road),
        direction=driving_direction(drive, route, road),
        progress=progress(drive, expert_center, route_of(expert_center, where.expert, road), road),
        speed_limit=speed_limit(drive, route, road),
        comfort=comfort(drive),
    )


def _score_of(
    rollout: Rollout, score: float, metrics: dict[str, Metric], details: Details | None, failure: str | None
) -> ScenarioScore:
    scenario, tracks = rollout.scenario, rollout.agents
    return ScenarioScore(
        scenario.token, scenario.kind, rollout.planner, rollout.agent_mode, rollout.seed, score, metrics,
        tracks.ids, tracks.type, scenario.map.lane_ids, details, failure,
    )  # fmt: skip
