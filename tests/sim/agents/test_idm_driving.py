"""How reactive agents drive: free, behind others, towards lights and ends of paths."""

from __future__ import annotations

import numpy as np
import pytest

from radp.scenario import Ego, ObjectType, Scenario
from radp.sim.agents.idm import IdmAgents
from radp.sim.agents.idm_lead import acceleration
from tests.made_roads import RoadMaker, arc, line, square
from tests.made_scenarios import GREEN, RED, YELLOW, car, still

DT = 0.1


def drive(scenario: Scenario, steps: int, ego: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """(steps + 1, A, 5) and (steps + 1, A); ego (steps, 11), by default as in the log."""
    model = IdmAgents([scenario])
    out = [model.reset(scenario.ego[:1])]
    for i in range(steps):
        now = scenario.ego[min(i, len(scenario.ego) - 1)] if ego is None else ego[i]
        out.append(model.step(i, now[None], np.array([DT])))
    return np.stack([s[0] for s, _ in out]), np.stack([v[0] for _, v in out])


def ego_at(x: float, y: float = 0.0, heading: float = 0.0, speed: float = 0.0) -> np.ndarray:
    ego = np.zeros(len(Ego))
    ego[[Ego.X, Ego.Y, Ego.HEADING, Ego.VX]] = x, y, heading, speed
    return ego


def straight(length: float = 90.0, limit: float = 10.0) -> RoadMaker:
    maker = RoadMaker()
    maker.add(line(0, 0, length, 0), limit=limit)
    return maker


def test_the_formula() -> None:
    # v = 8, v0 = 10, gap = 20, lead 5: s* = 1 + 12 + 24 / (2 sqrt 2) = 21.485; 1 - 0.4096 - 1.1540 = -0.5636
    assert acceleration(8.0, 10.0, 20.0, 5.0) == pytest.approx(1 - 0.8**4 - ((13 + 24 / (2 * 2**0.5)) / 20) ** 2)
    assert acceleration(8.0, 10.0, 20.0, 5.0) == pytest.approx(-0.5636, abs=1e-4)
    assert acceleration(8.0, 10.0, 0.2, 5.0) == -2.0  # brakes no harder; gaps below 1 m count as 1 m
    assert acceleration(0.0, 10.0, 1e9, 0.0) == pytest.approx(1.0)
    assert acceleration(2.0, 10.0, 0.3, 9.0) == acceleration(2.0, 10.0, 1.0, 9.0)


def test_free_road_speeds_up_with_the_old_speed_moving_the_box() -> None:
    maker = straight(400.0)
    state, _ = drive(still(maker.build(), [car(10.0, speed=4.0)], ego=(20, 20, 0)), 2)
    gap = 399.0 - 10.0 - 2.0  # the path ends at the last but one vertex
    accel = 1 - 0.4**4 - ((1 + 6 + 16 / (2 * 2**0.5)) / gap) ** 2
    np.testing.assert_allclose(state[1, 0], [10.4, 0, 0, 4 + DT * accel, 0], atol=1e-12)
    np.testing.assert_allclose(state[2, 0, 0], 10.4 + DT * (4 + DT * accel), atol=1e-12)


def test_an_agent_stops_before_the_end_of_its_path() -> None:
    state, _ = drive(still(straight(60.0).build(), [car(5.0, speed=8.0)], ego=(20, 20, 0)), 250)
    assert state[-1, 0, 3] < 0.05
    assert 59.0 - 2.0 - 2.0 < state[-1, 0, 0] < 59.0 - 2.0  # about the minimum gap before the standing point
    assert (np.diff(state[:, 0, 0]) >= 0).all()


def test_a_follower_keeps_behind_a_standing_vehicle_and_behind_the_ego() -> None:
    road = straight(300.0).build()
    wall = (ObjectType.BARRIER, 80.0, 0.0, 0.0, 0.0, 1.0, 3.0)
    state, _ = drive(still(road, [car(30.0, speed=9.0), wall], ego=(20, 20, 0)), 300)
    assert state[-1, 0, 3] < 0.05 and 79.5 - 2.5 < state[-1, 0, 0] + 2.0 < 79.5
    state, _ = drive(still(road, [car(30.0, speed=9.0)], ego=(70, 0, 0)), 300)
    assert state[-1, 0, 3] < 0.05 and 70 - 1.127 - 2.5 < state[-1, 0, 0] + 2.0 < 70 - 1.127


def test_a_moving_ego_ahead_is_followed_with_its_speed_along_the_lane() -> None:
    road = straight(300.0).build()
    v = 8.0
    c, s = np.cos(0.05), np.sin(0.05)
    corner = np.array([60 - 1.127 * c - 1.1485 * s, 1.1485 * c - 1.127 * s])  # rear left of the turned ego
    turned = np.hypot(*(corner - (32.0, 1.0)))
    for heading, ahead, gap in ((0.0, 5.0, 60.0 - 1.127 - 32.0), (0.05, 5.0 * c, turned)):
        ego = ego_at(60.0, heading=heading, speed=5.0)
        state, _ = drive(still(road, [car(30.0, speed=v)], ego=(200, 0, 0)), 1, ego[None])
        wish = 1 + 1.5 * v + v * (v - ahead) / (2 * 2**0.5)
        expected = v + DT * (1 - 0.8**4 - (wish / gap) ** 2)
        assert state[1, 0, 3] == pytest.approx(expected, abs=1e-9)


def test_the_gap_is_measured_from_the_sweep_of_the_last_move() -> None:
    road = straight(300.0).build()
    state, _ = drive(still(road, [car(30.0, speed=6.0), car(60.0)], ego=(20, 20, 0)), 2)
    v0, v1 = 6.0, state[1, 0, 3]
    first = 60.0 - 2.0 - 32.0  # box to box
    assert v1 == pytest.approx(v0 + DT * (1 - 0.6**4 - ((1 + 9 + 36 / (2 * 2**0.5)) / first) ** 2), abs=1e-12)
    rear = min(58.0, state[1, 1, 0] - 2.0)
    second = rear - (state[1, 0, 0] + 2.0 + 1.5 * v1)
    wish = 1 + 1.5 * v1 + v1 * (v1 - state[1, 1, 3]) / (2 * 2**0.5)
    assert state[2, 0, 3] == pytest.approx(v1 + DT * (1 - (v1 / 10) ** 4 - (wish / second) ** 2), abs=1e-9)


def test_the_order_of_the_agents_matters() -> None:
    road = straight(300.0).build()
    leader, follower = car(50.0, speed=5.0), car(30.0, speed=6.0)
    ahead_first, _ = drive(still(road, [leader, follower], ego=(20, 20, 0)), 20)
    behind_first, _ = drive(still(road, [follower, leader], ego=(20, 20, 0)), 20)
    assert abs(ahead_first[20, 1, 0] - behind_first[20, 0, 0]) > 1e-3


def test_agents_beyond_100_m_leave_for_good() -> None:
    road = straight(300.0).build()
    scenario = still(road, [car(10.0), car(50.0)], ego=(20, 20, 0))
    ego = np.stack([ego_at(x) for x in (100.0, 112.0, 20.0, 20.0)])
    _, valid = drive(scenario, 4, ego)
    assert valid[:, 0].tolist() == [True, True, False, False, False]
    assert valid[:, 1].all()


def signalled(limit: float = 10.0) -> RoadMaker:
    """A lane, a connector with a light and a stop line at x = 50, and a lane behind it."""
    maker = straight(50.0, limit)
    maker.add(line(50, 0, 70, 0), after=[0], connector=True, stops=[square(49.5, -2, 50.5, 2)])
    maker.add(line(70, 0, 300, 0), after=[1], limit=limit)
    return maker


@pytest.mark.parametrize(("light", "passes"), [(GREEN, True), (RED, False), (YELLOW, False), (0, False)])
def test_only_green_opens_a_signalled_connector(light: int, passes: bool) -> None:
    scenario = still(signalled().build(), [car(10.0, speed=8.0)], ego=(40, 20, 0), lights={1: light})
    state, _ = drive(scenario, 200)
    assert (state[:, 0, 0].max() > 70.0) == passes
    if not passes:
        assert state[-1, 0, 3] < 0.05 and 44.0 < state[-1, 0, 0] + 2.0 < 49.0


def test_a_connector_without_lights_is_open_unless_red() -> None:
    maker = straight(50.0)
    maker.add(line(50, 0, 70, 0), after=[0], connector=True)
    maker.add(line(70, 0, 300, 0), after=[1])
    road = maker.build()
    for light, passes in ((RED, False), (YELLOW, True), (0, True)):
        state, _ = drive(still(road, [car(10.0, speed=8.0)], ego=(40, 20, 0), lights={1: light}), 150)
        assert (state[:, 0, 0].max() > 70.0) == passes


def test_a_light_that_turns_red_stops_agents_at_the_line_on_their_route() -> None:
    lights = np.where(np.arange(200) < 5, GREEN, RED)
    scenario = still(signalled().build(), [car(10.0, speed=8.0)], ego=(40, 20, 0), frames=200, lights={1: lights})
    state, _ = drive(scenario, 190)
    assert state[-1, 0, 3] < 0.05 and 46.0 < state[-1, 0, 0] + 2.0 < 49.5


def test_the_light_of_the_new_sample_counts() -> None:
    """At sample 0 the path is too short; green at sample 1 prolongs it in the very first step."""
    lights = np.where(np.arange(60) == 0, RED, GREEN)
    agent = [car(30.0, speed=8.0)]
    early, _ = drive(still(signalled().build(), agent, ego=(40, 20, 0), lights={1: lights}), 1)
    green, _ = drive(still(signalled().build(), agent, ego=(40, 20, 0), lights={1: GREEN}), 1)
    red, _ = drive(still(signalled().build(), agent, ego=(40, 20, 0), lights={1: RED}), 1)
    assert early[1, 0, 3] == green[1, 0, 3] > red[1, 0, 3]


def test_the_straightest_way_is_taken() -> None:
    maker = straight(50.0)
    maker.add(arc(50, 0, 0.0, 15.0, np.pi / 2), after=[0], connector=True)
    maker.add(line(50, 0, 70, 0), after=[0], connector=True)
    maker.add(line(70, 0, 200, 0), after=[2])
    state, _ = drive(still(maker.build(), [car(30.0, speed=8.0)], ego=(40, 20, 0)), 100)
    assert state[-1, 0, 0] > 70.0 and abs(state[-1, 0, 1]) < 1e-9


def test_waiting_at_the_end_of_the_path_costs_a_jump_back_of_one_vertex() -> None:
    maker = RoadMaker()
    maker.add(line(0, 0, 50, 0, spacing=5.0), limit=10.0)
    maker.add(line(50, 0, 70, 0), after=[0], connector=True, stops=[square(200, -2, 201, 2)])
    maker.add(line(70, 0, 300, 0), after=[1], limit=10.0)
    lights = np.where(np.arange(60) < 20, YELLOW, GREEN)
    # 8 m/s are too fast to stop before the path's end at x = 45: the box waits there, its progress runs on
    state, _ = drive(still(maker.build(), [car(44.0, speed=8.0)], ego=(40, 20, 0), lights={1: lights}), 25)
    np.testing.assert_allclose(state[2:19, 0, 0], 45.0, atol=1e-9)
    assert state[20, 0, 0] == pytest.approx(40.0 + DT * state[19, 0, 3], abs=1e-9)


def test_the_speed_limit_of_the_last_segment_of_the_route_counts() -> None:
    maker = straight(60.0, limit=5.0)
    maker.add(line(60, 0, 80, 0), after=[0], connector=True)
    maker.add(line(80, 0, 400, 0), after=[1], limit=15.0)
    state, _ = drive(still(maker.build(), [car(5.0, speed=5.0)], ego=(40, 20, 0)), 120)
    assert 4.5 < state[20, 0, 3] < 5.0
    assert state[-1, 0, 3] > 6.0


def test_bicycles_and_late_vehicles_are_absent_and_pedestrians_follow_the_log() -> None:
    objects = [
        car(30.0),
        (ObjectType.BICYCLE, 50.0, 0.0, 0.0, 3.0),
        (ObjectType.PEDESTRIAN, 60.0, 6.0, 0.0, 1.0),
        car(70.0),
    ]
    scenario = still(straight().build(), objects, ego=(40, 20, 0), frames=10)
    scenario.tracks.valid[3, :2] = False
    scenario.tracks.state[2, :, 0] += 0.1 * np.arange(10)
    model = IdmAgents([scenario])
    model.reset(scenario.ego[:1])
    assert model.ids == (("vehicle00", "pedestrian02"),)
    state, valid = drive(scenario, 12)
    np.testing.assert_array_equal(state[:10, 1], scenario.tracks.state[2])
    np.testing.assert_array_equal(state[10:, 1], np.repeat(scenario.tracks.state[2, -1:], 3, axis=0))  # held at the end
    assert valid[:, 1].all()


def test_worlds_without_agents_or_objects_go_on() -> None:
    road = straight().build()
    for objects in ([], [(ObjectType.TRAFFIC_CONE, 30.0, 0.0, 0.0, 0.0)]):
        state, valid = drive(still(road, objects), 3)
        assert state.shape == (4, len(objects), 5) and valid.all()


def test_lanes_without_length_do_no_harm() -> None:
    maker = straight(40.0)
    point = maker.add(np.array([(40.0, 0.0), (40.0, 0.0)]) + 1e-12 * np.arange(2)[:, None], after=[0], connector=True)
    maker.lanes[point]["after"].append(point)  # it follows itself
    state, _ = drive(still(maker.build(), [car(10.0, speed=5.0)], ego=(40, 20, 0)), 100)
    assert state[-1, 0, 3] < 0.05 and 34.0 < state[-1, 0, 0] < 40.0


def test_a_lane_of_two_points_keeps_its_last_vertex() -> None:
    maker = RoadMaker()
    maker.add(np.array([(0.0, 0.0), (200.0, 0.0)]), limit=10.0)
    state, _ = drive(still(maker.build(), [car(30.0, speed=5.0)], ego=(40, 20, 0)), 10)
    assert state[-1, 0, 0] == pytest.approx(30.0 + DT * state[:10, 0, 3].sum(), abs=1e-9)
