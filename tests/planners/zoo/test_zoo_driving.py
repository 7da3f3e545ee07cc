"""Published planners in the closed loop: every kind drives, and a plan does not depend on the rest of the batch."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from radp.planners.zoo.kinds import KINDS
from radp.planners.zoo.planner import make_planner
from radp.scenario import Ego
from radp.sim.replay import observe_logs
from radp.sim.simulate import simulate
from tests.made_scenarios import made_scenario, thing

SHORT = 6  # frames of a drive


@pytest.fixture(scope="module", params=KINDS)
def planner(request):
    torch.manual_seed(1)
    kind = KINDS[request.param]
    return make_planner(kind.name, kind.network(kind.published))


def short(scenario):
    last = scenario.start + SHORT
    tracks, lights = scenario.tracks, scenario.lights
    return replace(
        scenario, time_us=scenario.time_us[:last], ego=scenario.ego[:last],
        tracks=replace(tracks, state=tracks.state[:, :last], valid=tracks.valid[:, :last]),
        lights=replace(lights, state=lights.state[:last]),
    )  # fmt: skip


def roads():
    cone = thing("cone", 60.0, type="TRAFFIC_CONE")
    busy = made_scenario(things=(thing("car", 55.0, speed=4.0), cone), lights=("RED",))
    return [short(made_scenario(speed=0.0)), short(busy)]


def test_drives_and_does_not_look_at_its_neighbours(planner):
    together = list(simulate(planner, roads(), agents="nonreactive"))
    alone = [next(iter(simulate(planner, [road], agents="nonreactive"))) for road in roads()]
    for one, other in zip(together, alone):
        assert one.failure is None and other.failure is None
        np.testing.assert_allclose(one.ego[:, :3], other.ego[:, :3], atol=1e-3)  # sums of a batch round differently


def test_plans_reach_8_seconds_ahead(planner):
    plan = planner.plan(observe_logs(roads()[1:]))
    assert float(plan.time_grid()[0, -1]) == pytest.approx(8.0)
    assert bool(torch.isfinite(plan.trajectory).all())
    np.testing.assert_allclose(plan.trajectory[..., 2:].norm(dim=-1), 1.0, atol=1e-5)
    assert observe_logs(roads()[1:]).ego[0, -1, Ego.VX] > 0
