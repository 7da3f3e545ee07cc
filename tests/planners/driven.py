"""A planner on one scenario, to its end and with its score."""

from __future__ import annotations

from radp.metrics.score import ScenarioScore, evaluate
from radp.scenario import Scenario
from radp.sim.planner import Planner
from radp.sim.rollout import Rollout
from radp.sim.simulate import simulate


def driven(planner: Planner, scenario: Scenario, agents: str = "nonreactive") -> tuple[Rollout, ScenarioScore]:
    """Drive one scenario to its end and score it."""
    rollout = next(iter(simulate(planner, [scenario], agents=agents, keep_plans=True)))
    assert rollout.failure is None, rollout.failure
    return rollout, evaluate(rollout)
