"""The planners on the shared closed-loop scenarios: PDM-Closed is the strongest of them."""

import numpy as np
import pytest

from radp.metrics.score import evaluate
from radp.planners import load_planner
from radp.scenario.neutral_json import load_json, scenario_from_json
from radp.sim.simulate import simulate
from tests.shared_data import shared_files


@pytest.mark.golden
@pytest.mark.parametrize("agents", ["reactive", "nonreactive"])
def test_pdm_is_clearly_better_than_constant_velocity(agents):
    files = shared_files("golden/nuplan/closed_loop/*.scenario.json.gz")
    if not files:
        pytest.skip("skipped: no shared data")
    worlds = [scenario_from_json(load_json(path), path.name) for path in files]
    mean = {}
    for name in ("constant_velocity", "pdm_closed"):
        rollouts = list(simulate(load_planner(name), worlds, agents=agents))
        assert [rollout.failure for rollout in rollouts] == [None] * len(worlds)
        mean[name] = np.mean([evaluate(rollout).score for rollout in rollouts])
    assert mean["pdm_closed"] > mean["constant_velocity"] + 0.2
