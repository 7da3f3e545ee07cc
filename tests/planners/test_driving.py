"""How the planners drive: each road asks one question, and the answer is in the rollout."""

import numpy as np
import pytest

from radp.metrics.score import evaluate
from radp.planners import load_planner
from radp.scenario import Ego
from radp.scenario.vehicle import PACIFICA
from radp.sim.replay import observe_logs
from radp.sim.simulate import simulate
from radp.sources.synthetic import make_scenario
from tests.made_scenarios import LANE, SPLIT, made_scenario, street, thing
from tests.planners.driven import driven

DRIVERS = ("idm", "pdm_closed")


@pytest.fixture(params=DRIVERS)
def planner(request):
    return load_planner(request.param)


def front(rollout):
    """(S,) distance of the front bumper on a straight street."""
    return rollout.ego[:, Ego.X] + PACIFICA.front_length


@pytest.mark.parametrize("radius", [25.0, 60.0])
def test_follows_the_curve(planner, radius):
    rollout, score = driven(planner, made_scenario(speed=5.0, radius=radius))
    line = street(np.linspace(0.0, 300.0, 6001), 0.0, radius)
    off = [np.hypot(*(line - point).T).min() for point in rollout.ego[:, :2]]
    assert max(off) < (0.5 if planner.name == "pdm_closed" else 1.2)  # the controller cuts in where the bend begins
    assert rollout.ego[-1, Ego.HEADING] != pytest.approx(0.0, abs=0.5)
    if planner.name == "pdm_closed":
        assert score.score > 0.95


def test_stops_behind_a_standing_car(planner):
    rollout, score = driven(planner, made_scenario(things=(thing("car", 90.0),)))
    gap = 90.0 - 2.3 - front(rollout)[-1]
    assert 0.3 < gap < 4.0
    assert abs(rollout.ego[-1, Ego.VX]) < 0.1
    assert score.collisions == ()


def test_follows_a_slow_car_without_hitting_it(planner):
    rollout, score = driven(planner, made_scenario(things=(thing("car", 55.0, speed=4.0),)))
    assert rollout.ego[-1, Ego.VX] == pytest.approx(4.0, abs=0.4)
    assert score.collisions == ()


def test_stops_at_red_and_goes_at_green(planner):
    rollout, _ = driven(planner, made_scenario(start=40.0, lights=("RED",) * 9 + ("GREEN",)))
    waiting, gone = front(rollout)[:90], front(rollout)[-1]
    assert SPLIT[0] - 4.0 < waiting[-1] < SPLIT[0] + 0.5
    assert gone > SPLIT[0] + 5.0


def test_passes_green_at_speed(planner):
    rollout, _ = driven(planner, made_scenario(start=40.0, lights=("GREEN",)))
    assert rollout.ego[:, Ego.VX].min() > 7.5


def test_yellow_stops_only_who_can_still_stop(planner):
    far, _ = driven(planner, made_scenario(start=40.0, lights=("YELLOW",)))
    near, _ = driven(planner, made_scenario(start=SPLIT[0] - 12.0, lights=("YELLOW",)))
    assert front(far)[-1] < SPLIT[0] + 0.5
    assert front(near)[-1] > SPLIT[1]


def test_changes_to_the_lane_that_the_route_needs(planner):
    rollout, score = driven(planner, made_scenario(second_lane=True, only_left_leads_on=True))
    assert rollout.ego[-1, Ego.Y] == pytest.approx(LANE, abs=0.3)
    assert front(rollout)[-1] > SPLIT[1]
    assert score.metrics["drivable_area_compliance"].value == 1.0


def test_waits_with_the_lane_change_for_who_is_beside(planner):
    beside = thing("beside", 18.0, lateral=LANE, speed=8.0)
    rollout, score = driven(planner, made_scenario(second_lane=True, only_left_leads_on=True, things=(beside,)))
    assert rollout.ego[15, Ego.Y] < 0.5
    assert [c for c in score.collisions if c.at_fault] == []


def test_stays_in_its_lane_when_both_lead_on(planner):
    rollout, _ = driven(planner, made_scenario(second_lane=True))
    assert np.abs(rollout.ego[:, Ego.Y]).max() < 0.3


def test_pdm_passes_what_blocks_a_part_of_the_lane_and_idm_waits():
    # The obstacle's edge is 0.6 m right of the centre line: no room in the middle, room for who moves over to the left.
    obstacle = thing("box", 90.0, lateral=-1.4, type="GENERIC_OBJECT", width=1.6)
    scenario = made_scenario(second_lane=True, things=(obstacle,))
    passed, score = driven(load_planner("pdm_closed"), scenario)
    assert front(passed)[-1] > 110.0
    assert 0.5 < passed.ego[:, Ego.Y].max() < 1.6
    assert score.collisions == ()
    waited, _ = driven(load_planner("idm"), scenario)
    assert front(waited)[-1] < 88.5


def test_pdm_brakes_hard_when_somebody_steps_out():
    scenario = made_scenario(things=(thing("jumper", 47.0, type="PEDESTRIAN", length=0.7, width=0.7, first=10),))
    rollout, score = driven(load_planner("pdm_closed"), scenario)
    assert rollout.ego[:, Ego.AX].min() < -3.0
    assert score.collisions == ()
    assert front(rollout)[-1] < 47.0


@pytest.mark.parametrize(("gap", "decel"), [(12.5, 4.0), (10.2, 6.5), (3.0, 9.0)])
def test_emergency_brake_is_as_hard_as_it_must_be(gap, decel):
    wall = thing("wall", 20.0 + PACIFICA.front_length + 2.3 + gap)
    plan = load_planner("pdm_closed").plan(observe_logs([made_scenario(things=(wall,))]))
    speed = np.diff(plan.trajectory[0, :, 0].numpy()) / 0.1
    np.testing.assert_allclose(speed[:8], np.maximum(0.0, 8.0 - 0.1 * decel * np.arange(8)), atol=0.02)
    assert speed[25:].max() < 1e-6


def test_pdm_ignores_what_it_already_touches():
    touching = thing("touching", 20.0 + PACIFICA.rear_axle_to_center + 4.0, length=4.6)
    rollout, _ = driven(load_planner("pdm_closed"), made_scenario(things=(touching,)))
    assert front(rollout)[-1] > 60.0


def test_a_follower_from_behind_is_no_lead():
    fast = thing("fast", -10.0, speed=12.0)
    plan = load_planner("pdm_closed").plan(observe_logs([made_scenario(things=(fast,))]))
    assert plan.trajectory[0, 40, 0] > 31.0


@pytest.mark.parametrize("name", DRIVERS)
def test_the_batch_does_not_change_a_plan(name):
    worlds = [made_scenario(things=(thing("car", 60.0),)), made_scenario(radius=40.0), made_scenario(lights=("RED",))]
    worlds += [make_scenario(seed, agents=12) for seed in range(3)]
    together = load_planner(name).plan(observe_logs(worlds)).trajectory
    again = load_planner(name).plan(observe_logs(worlds[::-1])).trajectory.flip(0)
    alone = [load_planner(name).plan(observe_logs([world])).trajectory[0] for world in worlds]
    for b in range(len(worlds)):
        assert (together[b] == alone[b]).all()
        assert (together[b] == again[b]).all()


@pytest.mark.parametrize(("name", "poses"), [("idm", 17), ("pdm_closed", 81)])
def test_plans_cover_eight_seconds(name, poses):
    plan = load_planner(name).plan(observe_logs([made_scenario()]))
    assert plan.trajectory.shape == (1, poses, 4)
    assert plan.time_grid()[0, -1] == pytest.approx(8.0)
    np.testing.assert_allclose(np.hypot(*plan.trajectory[0, :, 2:].numpy().T), 1.0, atol=1e-12)


def test_a_world_without_route_or_agents_is_driven():
    scenario = made_scenario()
    bare = type(scenario)(**{**vars(scenario), "route": ()})
    for name in DRIVERS:
        rollout, _ = driven(load_planner(name), bare)
        assert front(rollout)[-1] > 100.0


@pytest.mark.slow
@pytest.mark.parametrize("agents", ["reactive", "nonreactive"])
def test_pdm_beats_the_others_in_made_traffic(agents):
    worlds = [make_scenario(seed) for seed in range(9)]
    mean = {
        name: np.mean([evaluate(r).score for r in simulate(load_planner(name), worlds, agents=agents)])
        for name in ("constant_velocity", "idm", "pdm_closed")
    }
    assert mean["pdm_closed"] > 0.95
    assert mean["pdm_closed"] > mean["idm"] + 0.1
    assert mean["pdm_closed"] > mean["constant_velocity"] + 0.3
