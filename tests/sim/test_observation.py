"""What planners are given tells nothing of the future."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest

from radp.scenario import RoadMap, Scenario, Tracks, TrafficLights
from radp.sim.agents.replay import ReplayAgents
from radp.sim.observation import Observation
from radp.sim.replay import observe_logs
from radp.sim.world import World
from radp.sources.synthetic import make_scenario

STEP = 4


def with_another_future(scenario: Scenario, now: int) -> Scenario:
    """The same log up to frame `now`; after it everybody stands elsewhere and the lights differ."""
    ego, state = scenario.ego.copy(), scenario.tracks.state.copy()
    lights = scenario.lights.state.copy()
    ego[now + 1 :] += 7.0
    state[:, now + 1 :] += 5.0
    lights[now + 1 :] = (lights[now + 1 :] + 1) % 4
    return replace(
        scenario,
        kind="something else",
        ego=ego,
        tracks=replace(scenario.tracks, state=state),
        lights=TrafficLights(scenario.lights.lane, lights),
    )


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Everything that can be reached from an observation but for the map; arrays as the memory behind them."""
    assert not isinstance(value, Scenario | Tracks | TrafficLights), f"{name} is a {type(value).__name__}"
    if is_dataclass(value) and not isinstance(value, RoadMap):
        assert set(vars(value)) == {field.name for field in fields(value)}
        for field in fields(value):
            yield from leaves(getattr(value, field.name), f"{name}.{field.name}")
    elif isinstance(value, tuple):
        for i, part in enumerate(value):
            yield from leaves(part, f"{name}[{i}]")
    elif isinstance(value, np.ndarray):
        while isinstance(value.base, np.ndarray):
            value = value.base
        yield name, value
    else:
        yield name, value


def in_world(scenario: Scenario) -> Observation:
    return World([scenario], ReplayAgents).observe()


def in_log(scenario: Scenario) -> Observation:
    return observe_logs([scenario], STEP)


@pytest.mark.parametrize(("observe", "step"), [(in_world, 0), (in_log, STEP)])
def test_logs_that_differ_in_the_future_look_the_same(observe: Any, step: int) -> None:
    scenario = make_scenario(3, agents=6, frames=30)
    other = with_another_future(scenario, scenario.start + step)
    pairs = list(zip(leaves(observe(scenario)), leaves(observe(other)), strict=True))
    assert {".ego", ".agents", ".light_state[0]", ".briefings[0].pose"} <= {name for (name, _), _ in pairs}
    for (name, one), (_, another) in pairs:
        if isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, another, err_msg=name)
        else:
            assert one is another or one == another, name


def test_a_briefing_is_one_object_per_scenario() -> None:
    scenario = make_scenario(1, agents=2, frames=10)
    world = World([scenario], ReplayAgents)
    assert world.observe().briefings[0] is observe_logs([scenario]).briefings[0] is scenario.briefing
    np.testing.assert_array_equal(scenario.briefing.pose, scenario.ego[scenario.start, :3])


def test_lights_are_those_of_the_step() -> None:
    scenario = make_scenario(2, agents=2, frames=30)
    for step in (0, 10, 29):
        lanes, states = observe_logs([scenario], step).lights(0)
        np.testing.assert_array_equal(lanes, scenario.lights.lane)
        np.testing.assert_array_equal(states, scenario.lights.state[scenario.start + step])
