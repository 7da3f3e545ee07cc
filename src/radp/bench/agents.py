"""What the agents cost: microseconds per world and step."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from radp.scenario import ObjectType, Scenario
from radp.sim.agents.idm import IdmAgents
from radp.sim.agents.replay import ReplayAgents
from radp.sources.synthetic import make_scenario

SAMPLES = 100  # steps of a measured drive


def bench_agents(batch: int = 64, agents: int = 30, threads: int | None = None, repeats: int = 3) -> dict[str, Any]:
    """Fastest of `repeats` drives of `batch` worlds beside the logged ego, with `agents` vehicles each at the start.

    idm_us and replay_us per world and step; idm_vehicles: how many vehicles were there on average; create_ms per world.
    """
    scenarios = [make_scenario(seed, agents=agents) for seed in range(batch)]
    _drive(IdmAgents(scenarios[:1], threads=1), scenarios[:1], 3)  # compiles
    out: dict[str, Any] = {"batch": batch}
    begin = time.perf_counter()
    reactive = IdmAgents(scenarios, threads=threads)
    out["create_ms"] = (time.perf_counter() - begin) / batch * 1e3
    for name, model in (("idm", reactive), ("replay", ReplayAgents(scenarios))):
        runs = [_drive(model, scenarios, SAMPLES) for _ in range(repeats)]
        out[f"{name}_us"] = min(seconds for seconds, _ in runs) / (batch * SAMPLES) * 1e6
        out[f"{name}_vehicles"] = runs[0][1]
    return out


def _drive(model: IdmAgents | ReplayAgents, scenarios: Sequence[Scenario], steps: int) -> tuple[float, float]:
    """Seconds that the steps took, and vehicles per world and sample."""
    ego = np.stack([s.ego[s.start : s.start + steps + 1] for s in scenarios])
    dt, vehicles, spent = np.full(len(scenarios), 0.1), 0, 0.0
    model.reset(ego[:, 0])
    is_vehicle = model.type == ObjectType.VEHICLE
    for i in range(steps):
        begin = time.perf_counter()
        _, valid = model.step(i, ego[:, i], dt)
        spent += time.perf_counter() - begin
        vehicles += int((valid & is_vehicle).sum())
    return spent, vehicles / (len(scenarios) * steps)


if __name__ == "__main__":
    for size in (1, 64):
        print({key: round(value, 2) for key, value in bench_agents(size).items()})
