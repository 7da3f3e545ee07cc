"""The cheap geometry without torch is the compiled one."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from radp.model.geometry import cheap_geometry
from radp.runtime import geometry
from radp.scenario.vehicle import PACIFICA
from radp.scene.builder import SceneConfig, build_scenes
from radp.scene.scene import INPUT_FIELDS, Scene, map_tensors
from radp.sim.replay import observe_logs
from radp.sources.synthetic import make_scenario
from tests.rules.hand_made import curved_plan, scene, straight_plan, straight_route

BODY = geometry.Body(PACIFICA.length, PACIFICA.width, PACIFICA.rear_axle_to_center)
STANDS = (14.0, -1.0, 0.8, 0.6, 1.0, 3.0, 0, 1.0, 0, 0)  # a barrier beside the path


def single(given: Scene) -> Scene:
    """In float32, as planners see it."""
    return map_tensors(given, lambda value: value.float() if value.is_floating_point() else value)


def arrays(given: Scene) -> dict[str, np.ndarray]:
    return {name: getattr(given, name).numpy() for name in INPUT_FIELDS}


def crossings() -> object:
    return observe_logs([make_scenario(seed, agents=12, turn=turn) for seed, turn in enumerate(("left", "right"))], 20)


def wandering(given: Scene, agents: int) -> torch.Tensor:
    """Forecasts (B, K, 80, 4) of nobody in particular, with headings of any length."""
    draw = torch.Generator().manual_seed(0)
    forecast = given.neighbor_agents_past[:, :agents, -1:, :4].repeat(1, 1, 80, 1)
    forecast[..., :2] += (0.2 * torch.randn(*forecast.shape[:3], 2, generator=draw)).cumsum(2)
    return forecast * torch.tensor([1.0, 1.0, 2.0, 2.0])


def compared(plans: torch.Tensor, given: Scene, predictions: torch.Tensor | None = None) -> np.ndarray:
    """The geometry in numpy, after it was found to be the compiled one."""
    plans, given = plans.float(), single(given)
    expected = cheap_geometry(plans, given, predictions)
    none = np.zeros((len(plans), 0, 80, 4), np.float32)
    found = geometry.cheap_geometry(
        plans.numpy(), arrays(given), none if predictions is None else predictions.numpy(), BODY
    )
    assert found.shape == (len(plans), 131) and found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    return found


@pytest.mark.parametrize("known", [0, 5, 32])
def test_geometry_of_crossings(known):
    given = build_scenes(crossings(), SceneConfig(ego_dynamics=True, lane_length=50.0))
    plans = torch.cat((curved_plan(7.0, 0.02), curved_plan(6.0, -0.03)))
    found = compared(plans, given, wandering(given, known) if known else None)
    assert (found.std(0) > 0).mean() > 0.6  # most values say something


def test_geometry_of_scenes_made_by_hand():
    red, barrier = straight_route(pieces=5, lanes=2), scene(straight_route(lanes=2), limit=8.0)
    red[2, :, 8:] = torch.tensor([0.0, 0, 1, 0], dtype=torch.float64)
    barrier.static_objects[0, 0] = torch.tensor(STANDS)
    point = scene(straight_route(pieces=1, length=0.0), agents=[(0.0, 0.0, 0.0, 0.0, 4.5)], limit=None)
    cases = (
        (straight_plan(speed=10.0, y=0.4), scene(red, agents=[(30.0, 0.3, 0.1, 2.0, 4.5)])),
        (curved_plan(8.0, 0.01), barrier),
        (straight_plan(speed=9.0), scene(agents=[(61.461, 0.0, 0.0, 0.0, 4.5)])),  # no lanes
        (curved_plan(5.0, -0.02), scene(straight_route(), limit=None)),  # nobody
        (torch.zeros(1, 80, 4), scene(speed=0.0)),  # nothing, and a plan without headings
        (straight_plan(speed=0.0), point),
    )
    alone = [compared(plan, given) for plan, given in cases]
    together = compared(torch.cat([plan for plan, _ in cases]), Scene.cat([given for _, given in cases]))
    np.testing.assert_array_equal(together, np.concatenate(alone))
    assert alone[0][0, -2] < 1.0 and alone[1][0, 64:80].min() < 0.5 and not alone[2][0, :64].any()


def test_forecasts_without_an_agent_are_left_out():
    """A model may forecast more neighbours than the scene has rows; static objects stay where they are."""
    given = scene(straight_route(), agents=[(20.0, 0.0, 0.0, 0.0, 4.5)], slots=1)
    given.static_objects[0, 0] = torch.tensor(STANDS)
    compared(straight_plan(speed=6.0), given, torch.full((1, 3, 80, 4), 9.0))
    nobody = replace(
        single(given), neighbor_agents_past=torch.zeros(1, 0, 21, 11), static_objects=torch.zeros(1, 0, 10)
    )
    compared(straight_plan(speed=6.0), replace(nobody, route_lanes=torch.zeros(1, 0, 20, 12)))


def test_a_plan_that_is_not_finite_has_no_warning(recwarn):
    found = geometry.cheap_geometry(
        np.full((1, 80, 4), np.nan, np.float32), arrays(single(scene(straight_route()))), np.zeros((1, 0, 80, 4)), BODY
    )
    assert np.isnan(found).any() and not recwarn
