"""The compiled agents against the plain one on shapely objects, and one batch against another."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest

from radp.scenario import Ego, ObjectType, Scenario
from radp.sim.agents import idm
from radp.sim.agents.idm import IdmAgents
from radp.sources.synthetic import make_scenario
from tests.made_roads import RoadMaker, arc, line, square
from tests.made_scenarios import GREEN, RED, car, still
from tests.sim.agents.reference_idm import ReferenceIdm


def compare(scenario: Scenario, ego: np.ndarray, dt: np.ndarray, tolerance: float) -> int:
    """Drive both along ego (S, 11) with steps dt (S - 1,); returns the samples in which both had agents."""
    model, world = IdmAgents([scenario]), ReferenceIdm(scenario)
    state, valid = model.reset(ego[:1])
    world.reset(scenario.ego[scenario.start])
    busy = 0
    for i in range(len(ego)):
        crew = valid[0, : int((model.type[0] == ObjectType.VEHICLE).sum())]
        assert [model.ids[0][k] for k in np.flatnonzero(crew)] == [agent.name for agent in world.agents]
        for k, agent in zip(np.flatnonzero(crew), world.agents):
            expected = (*agent.pose, agent.speed * np.cos(agent.pose[2]), agent.speed * np.sin(agent.pose[2]))
            np.testing.assert_allclose(state[0, k], expected, atol=tolerance, err_msg=f"{agent.name} at {i}")
        busy += len(world.agents) > 0
        if i < len(dt):
            state, valid = model.step(i, ego[i : i + 1], dt[i : i + 1])
            world.step(i, ego[i], dt[i])
    return busy


def wandering_ego(scenario: Scenario, samples: int, random: np.random.Generator) -> np.ndarray:
    """The logged ego, shaken."""
    ego = scenario.ego[scenario.start : scenario.start + samples].copy()
    ego[:, [Ego.X, Ego.Y]] += random.normal(0.0, 0.5, (samples, 2)).cumsum(axis=0) * 0.2
    ego[:, Ego.HEADING] += random.normal(0.0, 0.05, samples)
    return ego


@pytest.mark.parametrize("seed", range(4))
def test_random_drives_through_a_crossing(seed: int) -> None:
    scenario, random = make_scenario(seed, agents=12), np.random.default_rng(seed)
    ego = wandering_ego(scenario, 40, random)
    assert compare(scenario, ego, random.normal(0.1, 0.002, 39), 1e-7) == 40


def tangle(random: np.random.Generator) -> Scenario:
    """Bends of all radii that meet in one place, one of them signalled, with objects strewn about; rotated."""
    maker, turn = RoadMaker(), random.uniform(-np.pi, np.pi)
    far = random.uniform(-1, 1, 2) * (3e5, 4e6)
    c, s = np.cos(turn), np.sin(turn)
    objects: list[tuple] = []
    for k in range(5):
        heading = 2 * np.pi * k / 5
        start = -60.0 * np.array([np.cos(heading), np.sin(heading)])
        lane = line(*start, *(start * 0.3), spacing=random.uniform(0.7, 3.0))
        first = maker.add(lane, limit=float(random.uniform(6, 15)) if k else 0.0)
        bends = [
            arc(*(start * 0.3), heading, random.uniform(8, 90), sign * random.uniform(0.3, 1.2)) for sign in (-1, 1)
        ]
        for bend in bends[: 1 + k % 2]:
            stops = [square(*(start * 0.3 - 1), *(start * 0.3 + 1))] if k == 2 else []
            middle = maker.add(bend, after=[first], connector=True, stops=stops)
            way = bend[-1] - bend[-2]
            maker.add(line(*bend[-1], *(bend[-1] + 40 * way / np.linalg.norm(way)), spacing=2.0), after=[middle])
        for s0 in random.uniform(0.05, 0.95, 3):
            x, y = start * (1 - 0.7 * s0) + random.normal(0, 0.4, 2)
            objects.append(car(x, y, heading, random.uniform(0, 12), random.uniform(3, 9), random.uniform(1.6, 2.6)))
    for kind in (ObjectType.PEDESTRIAN, ObjectType.TRAFFIC_CONE, ObjectType.BARRIER):
        objects.append((kind, *random.uniform(-15, 15, 2), 0.4, 0.0, 0.8, 1.1))
    for lane in maker.lanes:
        lane["centre"] = lane["centre"] @ np.array([[c, s], [-s, c]]) + far
    maker.stops = [stop @ np.array([[c, s], [-s, c]]) + far for stop in maker.stops]
    moved = []
    for kind, x, y, heading, *rest in objects:
        place = np.array([x, y]) @ np.array([[c, s], [-s, c]]) + far
        moved.append((kind, *place, heading + turn, *rest))
    lights = np.where(np.arange(60) // 15 % 2, GREEN, RED)
    signalled = next(i for i, lane in enumerate(maker.lanes) if lane["stops"])
    return still(maker.build(), moved, ego=(*far, turn), lights={signalled: lights})


@pytest.mark.parametrize("seed", range(6))
def test_random_tangles(seed: int) -> None:
    random = np.random.default_rng(seed)
    scenario = tangle(random)
    ego = wandering_ego(scenario, 50, random)
    ego[:, Ego.X] += np.linspace(0, 20, 50)
    ego[:, Ego.VX] = 4.0
    assert compare(scenario, ego, np.full(49, 0.1), 1e-6) == 50


def roll(scenarios: list[Scenario], steps: int, threads: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Per world (steps + 1, own objects, 5) and (steps + 1, own objects), with the logged ego."""
    model = IdmAgents(scenarios, threads=threads)
    ego = np.stack([s.ego[s.start : s.start + steps + 1] for s in scenarios])
    out = [model.reset(ego[:, 0])]
    for i in range(steps):
        out.append(model.step(i, ego[:, i], np.full(len(scenarios), 0.1)))
    state, valid = np.stack([s for s, _ in out]), np.stack([v for _, v in out])
    own = [len(names) for names in model.ids]
    return [state[:, b, :n] for b, n in enumerate(own)], [valid[:, b, :n] for b, n in enumerate(own)]


def test_the_batch_and_the_threads_change_nothing() -> None:
    scenarios = [make_scenario(seed, agents=count) for seed, count in enumerate((6, 14, 0, 9))]
    scenarios.append(tangle(np.random.default_rng(0)))
    alone = [roll([scenario], 30, 1) for scenario in scenarios]
    for order in ([0, 1, 2, 3, 4], [4, 2, 1, 0, 3]):
        for threads in (1, 3):
            state, valid = roll([scenarios[k] for k in order], 30, threads)
            for b, k in enumerate(order):
                np.testing.assert_array_equal(state[b], alone[k][0][0])
                np.testing.assert_array_equal(valid[b], alone[k][1][0])


def test_little_room_grows_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    scenarios = [make_scenario(0, agents=8), tangle(np.random.default_rng(1))]
    roomy = roll(scenarios, 30, 1)
    monkeypatch.setattr(idm, "SWEEP_ROOM", 2)
    monkeypatch.setattr(idm, "RING_ROOM", 4)
    tight = roll(scenarios, 30, 1)
    for b in range(2):
        np.testing.assert_array_equal(tight[0][b], roomy[0][b])


def test_arrays_that_cannot_be_written_will_do() -> None:
    """Scenarios read from a store may be memory-mapped."""
    scenario = make_scenario(1, agents=6)
    frozen = deepcopy(scenario)
    tracks, road = frozen.tracks, frozen.map
    for array in (frozen.ego, tracks.state, tracks.size, tracks.valid, frozen.lights.state, road.centerlines.values,
                  road.lane_polygons.rings.values, road.successors.values, road.speed_limit):  # fmt: skip
        array.setflags(write=False)
    np.testing.assert_array_equal(roll([frozen], 5, 1)[0][0], roll([scenario], 5, 1)[0][0])


def test_a_second_reset_starts_over() -> None:
    scenario = make_scenario(3, agents=10)
    model = IdmAgents([scenario])
    ego = scenario.ego[scenario.start :]
    runs = []
    for _ in range(2):
        states = [model.reset(ego[:1])[0]]
        states += [model.step(i, ego[i : i + 1], np.array([0.1]))[0] for i in range(10)]
        runs.append(np.stack(states))
    np.testing.assert_array_equal(runs[0], runs[1])
