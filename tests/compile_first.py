"""A plugin for the whole suite on a fresh clone: two workers compile half of the kernels each, not each of them all.

    pytest -p tests.compile_first -n 2

Compiled kernels are kept on disk, so that each worker finds what the other one made. The halves take about as long as
each other. A kernel that is in neither half is compiled by the first test that needs it.
"""

from __future__ import annotations

from dataclasses import replace

import pytest  # nothing else up here: tests/conftest.py, which comes later, limits the threads of numpy and torch


def pytest_collection_finish(session: pytest.Session) -> None:
    worker = getattr(session.config, "workerinput", {}).get("workerid")
    if worker in HALVES and session.items:
        HALVES[worker]()


def drive_and_look() -> None:
    """Vehicle and controller, score, scenes with what rules look at."""
    from radp.metrics.score import evaluate
    from radp.model.config import ModelConfig
    from radp.planners import load_planner
    from radp.planners.diffusion import scene_config
    from radp.scene.builder import PUBLISHED, build_scenes, scenes_from_log
    from radp.sim.replay import observe_logs
    from radp.sim.simulate import simulate
    from radp.sources.synthetic import make_scenario

    scenario = make_scenario(0)
    for rollout in simulate(load_planner("constant_velocity"), [make_scenario(0, frames=31)], agents="nonreactive"):
        evaluate(rollout)
    for config in (PUBLISHED, replace(scene_config(ModelConfig.preset("mini")), rules=True)):
        scenes_from_log(scenario, [scenario.start], config)
        build_scenes(observe_logs([scenario], 0), config)


def plan_and_react() -> None:
    """Reactive agents, and the planners that are compiled."""
    import numpy as np

    from radp.planners import load_planner
    from radp.sim.agents.idm import IdmAgents
    from radp.sim.planner import start_planner
    from radp.sim.replay import observe_logs
    from radp.sources.synthetic import make_scenario

    scenario = make_scenario(0)
    agents, ego = IdmAgents([scenario]), scenario.ego[scenario.start][None]
    agents.reset(ego)
    agents.step(0, ego, np.array([0.1]))
    for name in ("idm", "pdm_closed"):
        planner = load_planner(name)
        start_planner(planner, [scenario])
        planner.plan(observe_logs([scenario], 0))


HALVES = {"gw0": drive_and_look, "gw1": plan_and_react}
