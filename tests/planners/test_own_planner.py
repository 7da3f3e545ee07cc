"""The example of the docs works as it stands there."""

from pathlib import Path

import numpy as np
import pytest

from radp.planners import load_planner
from radp.scenario import Ego
from radp.sim.replay import observe_logs
from tests.made_scenarios import made_scenario, thing
from tests.planners.driven import driven

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_planner.py"
DOCS = Path(__file__).parents[2] / "docs" / "planners.md"


@pytest.fixture
def careful():
    return load_planner(f"{EXAMPLE}:CarefulPlanner", brake=2.0)


def test_it_brakes_for_what_is_ahead(careful):
    rollout, score = driven(careful, made_scenario(things=(thing("car", 75.0),)))
    assert rollout.ego[-1, Ego.VX] < 0.5
    assert score.collisions == ()


def test_it_goes_on_where_the_road_is_free(careful):
    rollout, _ = driven(careful, made_scenario(things=(thing("beside", 60.0, lateral=6.0),)))
    assert rollout.ego[:, Ego.VX].min() > 7.5


def test_it_plans_for_a_batch(careful):
    worlds = [made_scenario(things=(thing("car", 40.0),)), made_scenario(speed=0.0), made_scenario()]
    plan = careful.plan(observe_logs(worlds))
    assert plan.trajectory.shape == (3, 80, 4)
    ends = plan.trajectory[:, -1, 0].numpy()
    np.testing.assert_allclose(ends, [8.0**2 / 4.0, 0.0, 64.0], atol=1e-9)


def test_the_docs_show_the_example_as_it_is():
    body = EXAMPLE.read_text().split("class CarefulPlanner:")[1].split('if __name__ == "__main__":')[0].rstrip()
    assert body in DOCS.read_text()
