"""Drives that no planner would make: the ego wanders over a crossing, on and off the road, among random objects."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from radp.scenario import Ego, ObjectType, RoadMap, Scenario, Tracks, TrafficLights
from radp.scenario.vehicle import PACIFICA
from radp.sim.rollout import Rollout
from radp.sources.synthetic import make_scenario
from tests.made_roads import patchwork


def wander(random: np.random.Generator, start: np.ndarray, samples: int, step: float) -> np.ndarray:
    """(S, 11) ego states of a random walk in speed (at times backwards) and yaw rate from a pose (3,)."""
    ego = np.zeros((samples, len(Ego)))
    ego[0, :3] = start
    speed = random.choice([0.0, 2.0, 6.0, 12.0]) + random.normal(0.0, 0.5)
    turn = random.normal(0.0, 0.1)
    for i in range(samples):
        if i:
            heading = ego[i - 1, Ego.HEADING]
            ego[i, Ego.X] = ego[i - 1, Ego.X] + speed * step * np.cos(heading)
            ego[i, Ego.Y] = ego[i - 1, Ego.Y] + speed * step * np.sin(heading)
            ego[i, Ego.HEADING] = (heading + turn * step + np.pi) % (2.0 * np.pi) - np.pi
        ego[i, Ego.VX], ego[i, Ego.VY] = speed, random.normal(0.0, 0.01)
        ego[i, Ego.AX : Ego.STEERING] = random.normal(0.0, [1.0, 0.5, 0.2, 0.3])
        speed += random.normal(0.0, 0.6)
        turn += random.normal(0.0, 0.05)
    return ego


def random_tracks(random: np.random.Generator, center: np.ndarray, samples: int, count: int, step: float) -> Tracks:
    """`count` objects of all types that move straight on from places within 30 m, each during a part of the drive."""
    state, valid = np.zeros((count, samples, 5)), np.zeros((count, samples), dtype=bool)
    for a in range(count):
        heading, speed = random.uniform(-np.pi, np.pi), max(0.0, random.normal(3.0, 4.0))
        velocity = speed * np.array([np.cos(heading), np.sin(heading)]) + random.normal(0.0, 0.3, 2)
        way = center + random.normal(0.0, 12.0, 2) + np.arange(samples)[:, None] * step * velocity
        first, last = np.sort(random.integers(0, samples + 1, 2))
        valid[a, first:last] = True
        state[a, first:last] = np.concatenate(
            [way, np.full((samples, 1), heading), np.tile(velocity, (samples, 1))], axis=1
        )[first:last]
    kinds = random.integers(0, len(ObjectType), count).astype(np.uint8)
    size = np.stack([random.uniform(0.3, 9.0, count), random.uniform(0.3, 2.5, count), np.full(count, 1.6)], axis=1)
    return Tracks(tuple(f"t{a}" for a in range(count)), kinds, size, state, valid)


def wandering_rollout(seed: int, samples: int = 60, objects: int = 12) -> Rollout:
    """A drive over the made crossing with jittered steps; some lanes have lost their speed limit."""
    random = np.random.default_rng((seed, 77))
    scenario = make_scenario(seed % 12, agents=4, frames=samples + 1, history=0)
    time_us = scenario.time_us + random.integers(-4000, 4000, samples + 1)
    place = scenario.ego[random.integers(0, samples), :3]
    start = place + random.normal(0.0, [6.0, 6.0, 0.6])
    expert = scenario.ego
    if seed % 3 == 0:  # an expert that wanders as well
        expert = wander(random, place + random.normal(0.0, [4.0, 4.0, 0.4]), samples + 1, 0.1)
    road = scenario.map
    known = road.has_speed_limit & (random.random(len(road)) < 0.8)
    road = replace(road, has_speed_limit=known, speed_limit=np.where(known, road.speed_limit, 0.0))
    ego = wander(random, start, samples, 0.1)
    tracks = random_tracks(random, ego[samples // 2, :2], samples, objects, 0.1)
    scenario = replace(scenario, map=road, time_us=time_us, ego=expert)
    return Rollout(scenario, time_us[:samples], ego, tracks, planner="wander", seed=seed)


def patchwork_rollout(seed: int, samples: int = 60, objects: int = 8) -> Rollout:
    """A drive, and an expert, that wander over a random patchwork of lanes, connectors and gaps."""
    random = np.random.default_rng((seed, 78))
    time_us = 1_600_000_000_000_000 + np.cumsum(random.integers(80_000, 120_000, samples + 1))
    start = np.array([*random.uniform(10.0, 50.0, 2), random.uniform(-np.pi, np.pi)])
    expert = wander(random, start + random.normal(0.0, [2.0, 2.0, 0.3]), samples + 1, 0.1)
    ego = wander(random, start, samples, 0.1)
    tracks = random_tracks(random, ego[samples // 2, :2], samples, objects, 0.1)
    log = random_tracks(random, ego[0, :2], samples + 1, 0, 0.1)
    scenario = Scenario(
        token=f"patchwork_{seed}", kind="made", source="made", map=patchwork(seed), time_us=time_us, ego=expert,
        tracks=log, lights=TrafficLights(np.zeros(0, np.int64), np.zeros((samples + 1, 0), np.uint8)), route=(),
    )  # fmt: skip
    return Rollout(scenario, time_us[:samples], ego, tracks, planner="wander", seed=seed)


def drive_on(
    road: RoadMap,
    poses: np.ndarray,
    expert: np.ndarray | None = None,
    speed: float | np.ndarray = 1.0,
    tracks: Tracks | None = None,
    step_us: int = 100_000,
) -> Rollout:
    """A drive whose BOX CENTRE takes the poses (S, 3); the expert's (N, 3) are the same and one more if not given."""
    poses = np.asarray(poses, dtype=np.float64).reshape(-1, 3)
    expert = np.concatenate([poses, poses[-1:]]) if expert is None else np.asarray(expert, dtype=np.float64)
    time_us = 1_600_000_000_000_000 + np.arange(len(expert), dtype=np.int64) * step_us
    frames = len(expert)
    nothing = Tracks((), np.zeros(0, np.uint8), np.zeros((0, 3)), np.zeros((0, frames, 5)), np.zeros((0, frames), bool))
    lights = TrafficLights(np.zeros(0, np.int64), np.zeros((frames, 0), np.uint8))
    scenario = Scenario("made", "made", "made", road, time_us, _from_centers(expert), nothing, lights, route=())
    ego = _from_centers(poses)
    ego[:, Ego.VX] = speed
    seen = tracks or Tracks(
        (), nothing.type, nothing.size, nothing.state[:, : len(poses)], nothing.valid[:, : len(poses)]
    )
    return Rollout(scenario, time_us[: len(poses)], ego, seen)


def _from_centers(poses: np.ndarray) -> np.ndarray:
    ego = np.zeros((len(poses), len(Ego)))
    ego[:, : Ego.VX] = poses
    ego[:, Ego.X] -= PACIFICA.rear_axle_to_center * np.cos(poses[:, 2])
    ego[:, Ego.Y] -= PACIFICA.rear_axle_to_center * np.sin(poses[:, 2])
    return ego


def boxes(*rows: tuple[ObjectType, float, float, np.ndarray], samples: int) -> Tracks:
    """Objects of (type, length, width, states (5,) or (S, 5)), present all the time, named t0, t1, ..."""
    state = np.stack([np.broadcast_to(row[3], (samples, 5)) for row in rows]).astype(np.float64)
    size = np.array([(row[1], row[2], 1.6) for row in rows])
    kinds = np.array([row[0] for row in rows], dtype=np.uint8)
    return Tracks(tuple(f"t{i}" for i in range(len(rows))), kinds, size, state, np.ones(state.shape[:2], bool))
