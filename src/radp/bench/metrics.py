"""How long scoring takes: drives of 15 s with 30 vehicles (and a few pedestrians and cones) on made scenarios."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from radp.geometry.ragged import Polygons
from radp.metrics.collisions import collisions
from radp.metrics.comfort import comfort
from radp.metrics.drivable_area import drivable_area
from radp.metrics.drive import box_centers, read_drive
from radp.metrics.driving_direction import driving_direction
from radp.metrics.lanes import corner_lanes, locate, route_of
from radp.metrics.progress import progress
from radp.metrics.score import evaluate, evaluate_many
from radp.metrics.speed_limit import speed_limit
from radp.metrics.ttc import time_to_collision
from radp.road.arrays import road_arrays
from radp.scenario import Areas, Ego, RoadMap, Tracks
from radp.sim.rollout import Rollout
from radp.sources.synthetic import make_scenario

AGENTS = 30


def made_rollout(seed: int, agents: int = AGENTS) -> Rollout:
    """A drive of 150 samples that follows the log of a made scenario, off its line by a slow weave of up to 0.8 m."""
    scenario = make_scenario(seed, agents=agents)
    first, last = scenario.start, len(scenario.time_us) - 1
    ego = scenario.ego[first:last].copy()
    offset = np.random.default_rng(seed).uniform(0.2, 0.8) * np.sin(np.arange(last - first) * 0.05)
    ego[:, Ego.X] -= offset * np.sin(ego[:, Ego.HEADING])
    ego[:, Ego.Y] += offset * np.cos(ego[:, Ego.HEADING])
    log = scenario.tracks
    tracks = Tracks(log.ids, log.type, log.size, log.state[:, first:last], log.valid[:, first:last])
    return Rollout(scenario, scenario.time_us[first:last], ego, tracks, planner="weave", seed=seed)


def bench_metrics() -> dict[str, Any]:
    """`metrics_ms_per_scenario`: milliseconds per drive, one at a time and in a batch of 64 (best of some rounds);
    `metrics_ms_by_part`: where they go; `metrics_ms_new_map`: once more for a drive on a map not seen before."""
    drives = [made_rollout(seed) for seed in range(64)]
    evaluate_many(drives[:4])  # compiles, or loads what was compiled before
    return {
        "metrics_ms_per_scenario": {
            "1": _best_ms(lambda: [evaluate(drive) for drive in drives[:16]], 5) / 16,
            "64": _best_ms(lambda: evaluate_many(drives), 5) / 64,
        },
        "metrics_ms_new_map": min(_best_ms(lambda: road_arrays(_fresh(drives[0].scenario.map)), 1) for _ in range(5)),
        "metrics_ms_by_part": _parts(drives[:16]),
    }


def _fresh(road: RoadMap) -> RoadMap:
    """The same map with nothing computed ahead."""

    def copy(polygons: Polygons) -> Polygons:
        return Polygons(polygons.rings, polygons.offsets)

    return replace(
        road,
        lane_polygons=copy(road.lane_polygons),
        roadblocks=Areas(road.roadblocks.ids, copy(road.roadblocks.polygons)),
        intersections=Areas(road.intersections.ids, copy(road.intersections.polygons)),
        drivable=Areas(road.drivable.ids, copy(road.drivable.polygons)),
    )


def _best_ms(work: Callable[[], object], rounds: int) -> float:
    """Shortest time of some rounds [ms]."""
    best = float("inf")
    for _ in range(rounds):
        begin = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - begin)
    return best * 1e3


def _parts(rollouts: list[Rollout]) -> dict[str, float]:
    """Milliseconds per drive of each part."""
    totals: dict[str, float] = {}
    for rollout in rollouts:
        for name, work in _work(rollout).items():
            totals[name] = totals.get(name, 0.0) + _best_ms(work, 3)
    return {name: total / len(rollouts) for name, total in totals.items()}


def _work(rollout: Rollout) -> dict[str, Callable[[], object]]:
    scenario, tracks = rollout.scenario, rollout.agents
    road, drive, expert = road_arrays(scenario.map), read_drive(rollout), box_centers(scenario.ego[scenario.start :])
    where = locate(drive, expert, road)
    route, expert_route = route_of(drive.center, where.center, road), route_of(expert, where.expert, road)
    has_lane, connected = corner_lanes(where.corners, road.graph)
    found = collisions(drive, connected, tracks.ids, tracks.type)
    return {
        "reading": lambda: read_drive(rollout),
        "locating": lambda: locate(drive, expert, road),
        "routes": lambda: (route_of(drive.center, where.center, road), route_of(expert, where.expert, road)),
        "corners": lambda: corner_lanes(where.corners, road.graph),
        "collisions": lambda: collisions(drive, connected, tracks.ids, tracks.type),
        "time_to_collision": lambda: time_to_collision(drive, connected, where.crossing, found),
        "drivable_area": lambda: drivable_area(drive, route, has_lane, road),
        "driving_direction": lambda: driving_direction(drive, route, road),
        "progress": lambda: progress(drive, expert, expert_route, road),
        "speed_limit": lambda: speed_limit(drive, route, road),
        "comfort": lambda: comfort(drive),
    }
