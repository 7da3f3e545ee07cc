"""How fast worlds go: steps per second with the controller and 30 agents near the ego, without a planner."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from radp.scenario import Scenario, Tracks
from radp.sim.controller import trajectories_from_plan
from radp.sim.plan import Plan
from radp.sim.simulate import agent_model
from radp.sim.world import PAST, World
from radp.sources.synthetic import make_scenario

AGENTS = 30
NEAR = 100.0  # m from the ego
SECONDS = 3.0  # of measuring, per figure
BATCHES = (1, 64)


def bench_sim() -> dict[str, Any]:
    """reactive_steps_per_s and nonreactive_steps_per_s, each by batch size; and how many agents were near the ego."""
    pool = [make_scenario(seed, agents=AGENTS + 15, pedestrians=0, cones=0) for seed in range(max(BATCHES))]
    crowded = [_keep_nearest(scenario) for scenario in pool]
    out: dict[str, Any] = {}
    for mode in ("reactive", "nonreactive"):
        figures, near = {}, 0.0
        for batch in BATCHES:
            figures[str(batch)], near = _steps_per_second(crowded, mode, batch)
        out[f"{mode}_steps_per_s"] = figures
        out[f"{mode}_agents_near_ego"] = near
    return out


def _keep_nearest(scenario: Scenario) -> Scenario:
    """The same scenario with the 30 vehicles only that are nearest to the ego over the drive."""
    tracks, drive = scenario.tracks, slice(scenario.start, None)
    away = np.hypot(*(tracks.state[:, drive, :2] - scenario.ego[None, drive, :2]).transpose(2, 0, 1))
    distance = np.where(tracks.valid[:, drive], away, 2 * NEAR).mean(1)
    kept = np.sort(np.argsort(distance, kind="stable")[:AGENTS])
    ids = tuple(tracks.ids[i] for i in kept)
    chosen = Tracks(ids, tracks.type[kept], tracks.size[kept], tracks.state[kept], tracks.valid[kept])
    return replace(scenario, tracks=chosen)


def _steps_per_second(scenarios: Sequence[Scenario], mode: str, batch: int) -> tuple[float, float]:
    """World steps per second, and the mean number of agents within 100 m of the ego."""
    _drive(scenarios[:1], mode, 3)  # compiles
    steps, spent, near, turn = 0, 0.0, [], 0
    while spent < SECONDS:
        first = (turn * batch) % (len(scenarios) - batch + 1)
        chosen = scenarios[first : first + batch]
        begin = time.perf_counter()
        world = _drive(chosen, mode, chosen[0].frames - 2)
        spent += time.perf_counter() - begin
        steps, turn = steps + world.step * batch, turn + 1
        near.append(_agents_near(world))
    return steps / spent, float(np.mean(near))


def _drive(scenarios: Sequence[Scenario], mode: str, steps: int) -> World:
    """Worlds whose egos keep their first speed: observation, plan, controller, agents; building the worlds counts."""
    world = World(scenarios, agent_model(mode))
    rows = np.arange(len(scenarios))
    speed = torch.from_numpy(world.ego[:, PAST, 3].copy())
    trajectory = torch.zeros(len(scenarios), 80, 4)
    trajectory[..., 0] = speed[:, None] * 0.1 * torch.arange(1, 81)
    trajectory[..., 2] = 1.0
    plan = Plan(trajectory)
    for _ in range(steps):
        world.observe(slice(0, len(scenarios)))
        world.steer(rows, trajectories_from_plan(plan, len(scenarios)))
        world.tick()
    return world


def _agents_near(world: World) -> float:
    rows = slice(PAST, PAST + world.step)
    gap = world.agents[:, rows, :, :2] - world.ego[:, rows, None, :2]
    return float(((np.hypot(gap[..., 0], gap[..., 1]) < NEAR) & world.agent_valid[:, rows]).sum(-1).mean())
