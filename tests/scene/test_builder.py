"""Agents, static objects, ego state and futures of a scene, on hand-made logs."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from radp.scenario import Ego, ObjectType
from radp.scene.builder import SceneConfig, build_scenes, future_steps, scenes_from_log
from radp.scene.scene import AGENT_TYPE, AgentColumn, Scene, StaticColumn, present
from radp.sim.replay import observe_logs
from radp.sources.synthetic import make_scenario
from tests.made_roads import lane, road
from tests.made_scenarios import log

NOW = 20


def car(x: float, y: float = 0.0, **more) -> dict:
    return {"state": (x, y, 0.0, 0.0, 0.0), **more}


def assert_same(a: Scene, b: Scene) -> None:
    assert [name for name, _ in a.items()] == [name for name, _ in b.items()]
    for (name, x), (_, y) in zip(a.items(), b.items()):
        assert x.dtype == y.dtype and torch.equal(x, y), name


def test_agents_come_by_distance_and_keep_their_columns():
    turned = {"state": (10.0, 25.0, math.pi, 0.0, -3.0), "type": ObjectType.BICYCLE, "size": (1.8, 0.6)}
    far = car(10.0, 60.0, type=ObjectType.PEDESTRIAN)
    scene = scenes_from_log(log(objects=[far, turned, car(10.0, 8.0)], ego=(10.0, 5.0, math.pi / 2)), [NOW])
    past = scene.neighbor_agents_past[0]
    assert present(past[:, -1]).sum() == 3
    assert past[:3, -1, AGENT_TYPE].tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0]]
    # Ahead of an ego that looks north at (10, 5): 20 m forward, heading west = +90 degrees, driving south = backwards.
    expected = [20.0, 0.0, 0.0, 1.0, -3.0, 0.0, 0.6, 1.8, 0.0, 0.0, 1.0]
    torch.testing.assert_close(past[1, -1], torch.tensor(expected), atol=1e-6, rtol=0)


def test_absent_now_means_absent_and_gaps_are_filled_from_later_frames():
    path = np.zeros((101, 5))
    path[:, 0] = np.arange(101)
    valid = np.ones(101, dtype=bool)
    valid[:5] = False
    valid[8:11] = False
    gone = np.ones(101, dtype=bool)
    gone[NOW] = False
    scene = scenes_from_log(log(objects=[{"state": path, "valid": valid}, car(1.0, valid=gone)]), [NOW])
    past = scene.neighbor_agents_past[0]
    assert present(past[:, -1]).sum() == 1
    assert past[0, :, AgentColumn.X].tolist() == [5.0] * 6 + [6.0, 7.0] + [11.0] * 4 + list(range(12, 21))
    assert (past[0, :, AgentColumn.IS_VEHICLE] == 1).all()


def test_frames_before_the_log_repeat_its_first():
    path = np.zeros((101, 5))
    path[:, 0] = 1.0 + np.arange(101)
    past = scenes_from_log(log(objects=[{"state": path}]), [3]).neighbor_agents_past[0, 0]
    assert past[:, AgentColumn.X].tolist() == [1.0] * 18 + [2.0, 3.0, 4.0]


@pytest.mark.parametrize(
    ("vehicles", "walkers", "kept_vehicles", "kept_walkers"),
    [(20, 12, 20, 12), (25, 20, 22, 10), (10, 40, 10, 22), (40, 0, 32, 0), (0, 40, 0, 32), (30, 5, 27, 5)],
)
def test_more_than_32_agents(vehicles: int, walkers: int, kept_vehicles: int, kept_walkers: int):
    """Walkers stand nearer than all vehicles: without the rule they would push vehicles out."""
    objects = [car(100.0 + i) for i in range(vehicles)]
    objects += [car(5.0 + i, type=ObjectType(1 + i % 2)) for i in range(walkers)]
    past = scenes_from_log(log(objects=objects), [NOW]).neighbor_agents_past[0]
    kinds = past[:, -1, AGENT_TYPE].sum(0)
    assert (int(kinds[0]), int(kinds[1:].sum())) == (kept_vehicles, kept_walkers)
    x = past[present(past[:, -1]), -1, AgentColumn.X]
    assert x.tolist() == [5.0 + i for i in range(kept_walkers)] + [100.0 + i for i in range(kept_vehicles)]


def test_five_nearest_static_objects():
    kinds = [ObjectType.GENERIC_OBJECT, ObjectType.TRAFFIC_CONE, ObjectType.BARRIER, ObjectType.CZONE_SIGN]
    objects = [car(20.0 - i, type=kinds[i % 4], size=(3.0, 1.0)) for i in range(7)]
    static = scenes_from_log(log(objects=objects), [NOW]).static_objects[0]
    assert static[:, StaticColumn.X].tolist() == [14.0, 15.0, 16.0, 17.0, 18.0]
    columns = static[:, StaticColumn.IS_SIGN :].argmax(-1).tolist()
    assert columns == [1, 2, 3, 0, 1]  # barrier, cone, generic, sign, barrier
    assert static[0, 4:6].tolist() == [1.0, 3.0]
    assert not present(scenes_from_log(log(objects=objects), [NOW]).neighbor_agents_past).any()


def test_ego_state_for_training():
    states = np.zeros((101, len(Ego)))
    states[:, Ego.VX], states[:, Ego.VY], states[:, Ego.AX], states[:, Ego.AY] = 5.0, 0.1, 1.0, -0.5
    states[:, Ego.HEADING] = math.pi - 0.02 + 0.03 * np.arange(101)  # passes the seam at pi
    states[:, Ego.HEADING] = (states[:, Ego.HEADING] + math.pi) % (2 * math.pi) - math.pi
    state = scenes_from_log(log(ego=states), [1]).ego_current_state[0]
    expected = [0, 0, 1, 0, 5.0, 0.1, 1.0, -0.5, math.atan(0.3 * 3.089 / 5.0), 0.3]
    torch.testing.assert_close(state, torch.tensor(expected), atol=1e-5, rtol=0)
    states[:, Ego.VX] = 0.19
    assert scenes_from_log(log(ego=states), [1]).ego_current_state[0, 8:].tolist() == [0.0, 0.0]
    states[:, Ego.VX], states[:, Ego.HEADING] = -2.0, 0.2 * np.arange(101)
    state = scenes_from_log(log(ego=states), [1]).ego_current_state[0]
    assert state[9] == pytest.approx(0.95) and state[8] == pytest.approx(math.atan(0.95 * 3.089 / 2.0))


def test_planner_sees_itself_at_the_origin_by_default():
    scenario = make_scenario(0)
    constant = build_scenes(observe_logs([scenario])).ego_current_state[0]
    assert constant.tolist() == [0, 0, 1, 0, 0, 0, 0, 0, 0, 0]
    states = build_scenes(observe_logs([scenario]), SceneConfig(ego_dynamics=True)).ego_current_state
    assert torch.equal(states, scenes_from_log(scenario, [scenario.start]).ego_current_state)
    assert states[0, 4] != 0


def test_futures_are_in_the_ego_frame_and_zero_where_not_tracked():
    states = np.zeros((101, len(Ego)))
    states[:, Ego.Y], states[:, Ego.HEADING] = np.arange(101), math.pi / 2
    path = np.zeros((101, 5))
    path[:, 1], path[:, 2] = 3.0 + np.arange(101), -math.pi / 2
    valid = np.ones(101, dtype=bool)
    valid[NOW + 2] = valid[NOW + 50 :] = False
    scene = scenes_from_log(log(objects=[{"state": path, "valid": valid}], ego=states), [NOW])
    assert scene.ego_agent_future[0, :, 0].tolist() == list(range(1, 81))
    torch.testing.assert_close(scene.ego_agent_future[0, :, 1:], torch.zeros(80, 2), atol=1e-6, rtol=0)
    future = scene.neighbor_agents_future[0, 0]
    assert present(future).nonzero().flatten().tolist() == [0, *range(2, 49)]
    torch.testing.assert_close(future[2], torch.tensor([6.0, 0.0, -math.pi]), atol=1e-5, rtol=0)
    assert scene.neighbor_agents_future.shape == (1, 32, 80, 3)
    ten = scenes_from_log(log(objects=[car(3.0)] * 12), [NOW], SceneConfig(neighbor_futures=10))
    assert ten.neighbor_agents_future.shape == (1, 10, 80, 3)


def test_short_futures_are_refused_or_zero():
    scenario = log(ego=np.tile([0.0, 0.0, 0.0, 5.0], (101, 1)) + np.arange(101)[:, None] * [[0.5, 0, 0, 0]])
    assert future_steps(scenario, [0, 20, 21, 100]).tolist() == [80, 80, 79, 0]
    with pytest.raises(ValueError, match="fewer than 80 frames"):
        scenes_from_log(scenario, [20, 21])
    scene = scenes_from_log(scenario, [90], short_future="zeros")
    assert scene.ego_agent_future[0, :, 0].tolist() == [0.5 * (i + 1) for i in range(10)] + [0.0] * 70
    with pytest.raises(ValueError, match="no frame 101"):
        scenes_from_log(scenario, [101], with_future=False)


def test_logs_of_another_rate_are_refused():
    scenario = log()
    object.__setattr__(scenario, "time_us", scenario.time_us * 5)
    with pytest.raises(ValueError, match=r"0\.500 s apart"):
        scenes_from_log(scenario, [0])


def test_empty_world():
    scene = scenes_from_log(log(), [NOW]).validate()
    for name, value in scene.items():
        assert name == "ego_current_state" or not value.any(), name
    seen = build_scenes(observe_logs([log()]), SceneConfig(route_order="driving")).validate()
    assert seen.ego_agent_future is None and not seen.lanes.any() and not seen.route_lanes.any()


def test_lanes_without_route_and_route_without_lanes():
    one = road(lane("1", [(0, 0), (50, 0)], "a"))
    for order in ("lanes", "driving"):
        config = SceneConfig(route_order=order)
        assert not scenes_from_log(log(one), [NOW], config).route_lanes.any()
        assert not scenes_from_log(log(one, route=("unknown",)), [NOW], config).route_lanes.any()
        assert scenes_from_log(log(one, route=("a",)), [NOW], config).route_lanes.any()


@pytest.fixture(scope="module")
def crossings():
    return [make_scenario(seed, agents=10 + 5 * (seed % 7)) for seed in range(16)]


@pytest.mark.parametrize("order", ["lanes", "driving"])
def test_batch_does_not_matter(crossings, order):
    scenarios = crossings * 4
    config = SceneConfig(route_order=order)
    together = build_scenes(observe_logs(scenarios, 30), config)
    alone = Scene.cat([build_scenes(observe_logs([scenario], 30), config) for scenario in scenarios])
    assert len(together) == 64
    assert_same(together, alone)


def test_world_and_log_give_the_same_scene():
    scenario = make_scenario(5)
    seen = build_scenes(observe_logs([scenario], 25), SceneConfig(ego_dynamics=True))
    logged = scenes_from_log(scenario, [scenario.start + 25], with_future=False)
    assert_same(seen, logged)
