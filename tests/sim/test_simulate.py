"""The closed loop: determinism, failing planners, what a rollout holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

from radp.scenario import Scenario
from radp.sim.observation import Observation
from radp.sim.plan import Plan
from radp.sim.rollout import Rollout
from radp.sim.settings import AGENT_MODES
from radp.sim.simulate import simulate
from radp.sources.synthetic import make_scenario
from tests.sim.made_worlds import (
    FaultyPlanner,
    RandomPlanner,
    assert_same,
    empty_of_agents,
    short_scenarios,
    without_lights,
)


def drive(planner: RandomPlanner, scenarios: Sequence[Scenario], **options: object) -> list[Rollout]:
    return list(simulate(planner, scenarios, **{"agents": "nonreactive", **options}))  # type: ignore[arg-type]


@pytest.mark.parametrize("agents", AGENT_MODES)
def test_result_depends_on_neither_batch_size_nor_order(agents: str) -> None:
    scenarios = short_scenarios(5)
    scenarios += [empty_of_agents(scenarios[0]), without_lights(scenarios[3])]

    def driven(some: Sequence[Scenario], batch: int) -> list[Rollout]:
        return drive(RandomPlanner(), some, agents=agents, batch=batch, keep_plans=True)

    reference = driven(scenarios, 1)
    assert [rollout.failure for rollout in reference] == [None] * len(scenarios)
    for other in (driven(scenarios, 3), driven(scenarios, 64), driven(scenarios[::-1], 64)[::-1]):
        for one, two in zip(reference, other, strict=True):
            assert_same(one, two)


def test_another_seed_gives_another_drive() -> None:
    scenarios = short_scenarios(1)
    ours, theirs = (drive(RandomPlanner(), scenarios, seed=seed)[0] for seed in (0, 1))
    assert np.abs(ours.ego[-1, :2] - theirs.ego[-1, :2]).max() > 1e-3
    assert (ours.seed, theirs.seed) == (0, 1)


def test_rollout_holds_every_sample() -> None:
    scenarios = short_scenarios(4)
    for scenario, rollout in zip(scenarios, drive(RandomPlanner(), scenarios, keep_plans=True)):
        samples = scenario.frames - 1
        window = slice(scenario.start, scenario.start + samples)
        assert rollout.scenario is scenario
        assert rollout.failure is None
        np.testing.assert_array_equal(rollout.time_us, scenario.time_us[window])
        np.testing.assert_array_equal(rollout.ego[0], scenario.ego[scenario.start])
        np.testing.assert_array_equal(rollout.agents.state, scenario.tracks.state[:, window])
        np.testing.assert_array_equal(rollout.agents.valid, scenario.tracks.valid[:, window])
        assert rollout.plans is not None
        assert rollout.plans.shape == (samples, 80, 4)
        assert rollout.plans.dtype == np.float32
        assert rollout.pressures is not None
        np.testing.assert_allclose(rollout.pressures, rollout.ego[:, :2] % 1.0, rtol=1e-6)
    assert drive(RandomPlanner(), scenarios)[0].plans is None


def test_finished_worlds_leave_the_batch_of_the_planner() -> None:
    seen: dict[int, int] = {}

    class Counting(RandomPlanner):
        def plan(self, observation: Observation) -> Plan:
            seen[observation.step] = len(observation)
            assert all(observation.step < samples[briefing.token] for briefing in observation.briefings)
            return super().plan(observation)

    scenarios = short_scenarios(3)  # 20, 23 and 26 samples
    samples = {scenario.token: scenario.frames - 1 for scenario in scenarios}
    drive(Counting(), scenarios)
    assert seen == {step: 3 if step < 20 else 2 if step < 23 else 1 for step in range(26)}


def raising(plan: Plan, b: int) -> Plan:
    raise RuntimeError("no way\n out")


def with_nan(plan: Plan, b: int) -> Plan:
    plan.trajectory[b, 4, 0] = torch.nan
    return plan


def with_infinity(plan: Plan, b: int) -> Plan:
    plan.trajectory[b, 79, 3] = torch.inf
    return plan


def too_wide(plan: Plan, b: int) -> Plan:
    return replace(plan, trajectory=plan.trajectory.repeat(1, 1, 2))


def one_world_short(plan: Plan, b: int) -> Plan:
    return replace(plan, trajectory=plan.trajectory[1:])


def no_plan(plan: Plan, b: int) -> Plan:
    return None  # type: ignore[return-value]


def out_of_this_world(plan: Plan, b: int) -> Plan:
    trajectory = plan.trajectory.double()
    trajectory[b, :, 0] = 1e308 * torch.linspace(-1, 1, 80, dtype=torch.float64)
    return replace(plan, trajectory=trajectory)


FAULTS = {
    raising: "step 3: RuntimeError: no way out",
    with_nan: "step 3: the plan holds a value that is not finite at state 4",
    with_infinity: "step 3: the plan holds a value that is not finite at state 79",
    too_wide: "step 3: the plan's trajectory has shape (1, 80, 8), expected (1, H, 4)",
    one_world_short: "step 3: the plan's trajectory has shape (0, 80, 4), expected (1, H, 4)",
    no_plan: "step 3: the planner returned NoneType, expected a Plan",
    out_of_this_world: "step 3: the plan goes further than 1e+08 m at state 0",
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("batch", (1, 64))
def test_planner_that_fails_in_one_world_spoils_no_other(fault: object, batch: int) -> None:
    scenarios = short_scenarios(4)
    planner = FaultyPlanner({scenarios[2].token: fault})  # type: ignore[dict-item]
    rollouts = drive(planner, scenarios, batch=batch)
    assert [rollout.failure for rollout in rollouts] == [None, None, FAULTS[fault], None]  # type: ignore[index]
    assert len(rollouts[2].ego) == len(rollouts[2].time_us) == rollouts[2].agents.state.shape[1] == 4
    assert np.isfinite(rollouts[2].ego).all()
    for good, rollout in zip(drive(FaultyPlanner({}), scenarios), rollouts):
        if rollout.failure is None:
            assert_same(good, rollout)


def test_every_fault_at_once() -> None:
    scenarios = [replace(make_scenario(seed, 3, frames=12), token=f"s{seed}") for seed in range(len(FAULTS) + 1)]
    planner = FaultyPlanner({f"s{i}": fault for i, fault in enumerate(FAULTS)})
    assert [rollout.failure for rollout in drive(planner, scenarios)] == [*FAULTS.values(), None]


def test_planner_that_fails_everywhere() -> None:
    scenarios = short_scenarios(3)
    planner = FaultyPlanner({scenario.token: raising for scenario in scenarios})
    assert [rollout.failure for rollout in drive(planner, scenarios)] == [FAULTS[raising]] * 3


def test_planner_gets_the_batch_and_may_refuse_a_scenario() -> None:
    class Starting(RandomPlanner):
        started: tuple[str, ...] = ()

        def start(self, scenarios: Sequence[Scenario]) -> None:
            self.started = tuple(scenario.token for scenario in scenarios)
            if "synthetic_000001" in self.started:
                raise ValueError("no route")

    planner, scenarios = Starting(), short_scenarios(3)
    rollouts = drive(planner, scenarios)
    assert [rollout.failure for rollout in rollouts] == [None, "step 0: ValueError: no route", None]
    assert sorted(planner.started) == ["synthetic_000000", "synthetic_000002"]
    assert len(rollouts[1].ego) == 1


def test_scenario_that_cannot_be_simulated_is_a_failure_of_its_own() -> None:
    scenarios = short_scenarios(3)
    scenarios[1] = replace(scenarios[1], ego=scenarios[1].ego[:, :4])
    rollouts = drive(RandomPlanner(), scenarios)
    assert [rollout.failure is None for rollout in rollouts] == [True, False, True]
    assert rollouts[1].failure is not None
    assert rollouts[1].failure.startswith("the simulation failed: ValueError")


@pytest.mark.parametrize("options", ({"agents": "angry"}, {"controller": "pid"}, {"batch": 0}))
def test_unknown_options_are_refused_at_once(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        simulate(RandomPlanner(), short_scenarios(1), **options)  # type: ignore[arg-type]


def test_perfect_tracking_follows_the_log_closely() -> None:
    from radp.planners import load_planner

    scenario = make_scenario(2, 3, frames=80)
    rollout = drive(load_planner("log_replay"), [scenario], controller="perfect")[0]  # type: ignore[arg-type]
    gap = rollout.ego[:, :2] - scenario.ego[scenario.start : -1, :2]
    assert np.abs(gap).max() < 1e-6


def test_reactive_agents_leave_the_number_of_threads_alone() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        drive(RandomPlanner(), short_scenarios(2), agents="reactive")
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)
