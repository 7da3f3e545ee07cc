"""Small scenarios and planners that the simulator's tests share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from radp.scenario import Scenario, Tracks, TrafficLights
from radp.sim.observation import Observation
from radp.sim.plan import Plan
from radp.sim.rollout import Rollout
from radp.sources.synthetic import make_scenario


def short_scenarios(count: int = 5, agents: int = 6) -> list[Scenario]:
    """Scenarios of different length (21 to 33 frames), traffic and history."""
    return [
        make_scenario(
            seed, agents + seed % 3, turn=("left", "straight", "right")[seed % 3], frames=21 + 3 * seed,
            history=(20, 0, 7, 30, 20)[seed % 5],
        )
        for seed in range(count)
    ]  # fmt: skip


def empty_of_agents(scenario: Scenario) -> Scenario:
    """The same scenario without anybody else."""
    frames = len(scenario.time_us)
    nobody = Tracks((), np.zeros(0, np.uint8), np.zeros((0, 3)), np.zeros((0, frames, 5)), np.zeros((0, frames), bool))
    return replace(scenario, token=f"{scenario.token}_empty", tracks=nobody)


def without_lights(scenario: Scenario) -> Scenario:
    """The same scenario with no light known."""
    lights = TrafficLights(np.zeros(0, np.int64), np.zeros((len(scenario.time_us), 0), np.uint8))
    return replace(scenario, token=f"{scenario.token}_dark", lights=lights)


class RandomPlanner:
    """Wanders with the randomness that each world is given: any mix-up of worlds, steps or seeds shows."""

    name = "random"

    def __init__(self, dtype: torch.dtype = torch.float32) -> None:
        self.dtype = dtype

    def plan(self, observation: Observation) -> Plan:
        rows = []
        for b in range(len(observation)):
            random = np.random.default_rng(int(observation.seeds[b]))
            speed = max(0.0, observation.ego[b, -1, 3] + random.normal(0.2, 0.3))
            heading = np.cumsum(np.full(80, random.normal(0.0, 0.003)))
            x, y = np.cumsum(0.1 * speed * np.cos(heading)), np.cumsum(0.1 * speed * np.sin(heading))
            rows.append(np.stack((x, y, np.cos(heading), np.sin(heading)), 1))
        pressure = torch.from_numpy(observation.ego[:, -1, :2] % 1.0)
        return Plan(torch.from_numpy(np.stack(rows)).to(self.dtype), pressure=pressure)


class FaultyPlanner(RandomPlanner):
    """Plans well but for the scenarios in `faults` (token -> what to do with the plan) from step 3 on."""

    name = "faulty"

    def __init__(self, faults: dict[str, Callable[[Plan, int], Plan]]) -> None:
        super().__init__()
        self.faults = faults

    def plan(self, observation: Observation) -> Plan:
        plan = super().plan(observation)
        for b, briefing in enumerate(observation.briefings):
            if observation.step >= 3 and briefing.token in self.faults:
                plan = self.faults[briefing.token](plan, b)
        return plan


def assert_same(a: Rollout, b: Rollout) -> None:
    """Bit for bit."""
    assert a.scenario.token == b.scenario.token
    assert (a.agent_mode, a.planner, a.seed, a.failure) == (b.agent_mode, b.planner, b.seed, b.failure)
    assert a.agents.ids == b.agents.ids and a.rules == b.rules
    pairs = [(a.time_us, b.time_us), (a.ego, b.ego), (a.plans, b.plans), (a.pressures, b.pressures)]
    pairs += [(a.exact_pressures, b.exact_pressures), (a.agent_shares, b.agent_shares), (a.rule_costs, b.rule_costs)]
    pairs += [(a.share_tracks, b.share_tracks), (a.predicted_tracks, b.predicted_tracks)]
    pairs += [(getattr(a.agents, name), getattr(b.agents, name)) for name in ("type", "size", "state", "valid")]
    for one, other in pairs:
        if one is None or other is None:
            assert one is other
        else:
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)
