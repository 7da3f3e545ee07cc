"""Closed loop: drive scenarios with a planner, many at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from radp.geometry.limits import states_fault
from radp.runs.errors import one_line, own_line
from radp.runs.progress import tell
from radp.scenario import Scenario
from radp.sim.agents.replay import ReplayAgents
from radp.sim.controller import PlanError, Trajectories, followed_trajectories, states_on_grid, trajectories_from_plan
from radp.sim.observation import Observation
from radp.sim.plan import Plan
from radp.sim.planner import Planner, start_planner
from radp.sim.rollout import Rollout, logged_agents
from radp.sim.settings import Agents, Controller, DriveOptions
from radp.sim.world import AgentModel, World

if TYPE_CHECKING:
    from radp.scenario.splits import Split

FORECAST_STEP = 5  # steps of a plan between the points that are kept of a neighbour's forecast


def agent_model(mode: str) -> Callable[[Sequence[Scenario]], AgentModel]:
    """The agents of a mode."""
    if mode == "nonreactive":
        return ReplayAgents
    from radp.sim.agents.idm import IdmAgents  # compiles kernels that replay does not need

    return IdmAgents


def simulate(
    planner: Planner,
    scenarios: Sequence[Scenario] | Split,
    agents: Agents = "reactive",
    batch: int = 64,
    seed: int = 0,
    controller: Controller = "lqr",
    keep_plans: bool = False,
) -> Iterator[Rollout]:
    """Drive every scenario and yield its rollout, in the order given.

    The planner is asked once per step for all worlds of a batch. A world whose planner fails ends there, with the
    reason in `failure`; the others go on. The result does not depend on the batch size.

    >>> planner, split = radp.load_planner("constant_velocity"), radp.open_split("sumo14-val")[:2]
    >>> [rollout.failure for rollout in radp.simulate(planner, split, agents="nonreactive")]
    [None, None]
    """
    options = DriveOptions(agents, seed, controller, keep_plans)
    if batch < 1:
        raise ValueError(f"batch is {batch}, expected at least 1")
    return _simulate(planner, scenarios, batch, options)


def _simulate(
    planner: Planner, scenarios: Sequence[Scenario] | Split, batch: int, options: DriveOptions
) -> Iterator[Rollout]:
    for first in range(0, len(scenarios), batch):
        group = [scenarios[i] for i in range(first, min(first + batch, len(scenarios)))]
        yield from drive_batch(planner, group, options)


def drive_batch(planner: Planner, scenarios: Sequence[Scenario], options: DriveOptions) -> list[Rollout]:
    """Drive scenarios in lock step. What fails outside the planner is traced to its scenario by driving each alone."""
    # Longest first: the worlds still under way are then always a prefix, which a planner sees without copying.
    order = sorted(range(len(scenarios)), key=lambda i: -scenarios[i].frames)
    try:
        driven = _Batch(planner, [scenarios[i] for i in order], options).run()
    except Exception as error:
        if len(scenarios) == 1:
            return [undriven(scenarios[0], planner.name, options, f"the simulation failed: {_reason(error)}")]
        return [rollout for scenario in scenarios for rollout in drive_batch(planner, [scenario], options)]
    rollouts = dict(zip(order, driven))
    return [rollouts[i] for i in range(len(scenarios))]


def first_sample(planner: Planner, scenario: Scenario, options: DriveOptions) -> Rollout:
    """The drive's first sample alone: the plan from there and all that comes with it, as the whole drive begins."""
    batch = _Batch(planner, [scenario], options)
    batch.records[0].samples = 1
    return batch.run()[0]


def planner_error(planner: Planner, scenario: Scenario, options: DriveOptions) -> Exception | None:
    """What a planner raises when it drives a scenario, with its traceback; None where it raises nothing."""
    batch = _Batch(planner, [scenario], options)
    batch.run()
    return batch.records[0].error


@dataclass
class _Record:
    """What is kept of one world beside its states."""

    samples: int  # of the whole drive; fewer when it fails
    failure: str | None = None
    plans: list[np.ndarray] = field(default_factory=list)  # (H, 4) float32, one per sample
    error: Exception | None = None  # what the planner raised, if that is why it failed
    extras: dict[str, list[np.ndarray]] = field(default_factory=dict)  # what else plans hold, one array per sample
    rules: tuple[str, ...] = ()  # of the pressures among it


@dataclass(frozen=True)
class _Answer:
    """A planner's answer for some worlds: rows (R,), their trajectories, what else it reports, each (R, ...)."""

    rows: np.ndarray
    trajectories: Trajectories
    followed: Trajectories  # by the controller
    extras: dict[str, np.ndarray]
    rules: tuple[str, ...]


class _Batch:
    """One batch of worlds from start to end."""

    def __init__(self, planner: Planner, scenarios: Sequence[Scenario], options: DriveOptions) -> None:
        self.planner, self.options = planner, options
        self.world = World(scenarios, agent_model(options.agents), options.seed, options.controller)
        self.records = [_Record(int(samples)) for samples in self.world.samples]

    def run(self) -> list[Rollout]:
        self._start(np.arange(len(self.records)))
        steps = int(self.world.samples.max())
        for step in range(steps):
            tell(f"step {step + 1} of {steps} of {len(self.records)} together")
            rows = np.array([b for b, r in enumerate(self.records) if r.failure is None and r.samples > step], int)
            if not len(rows):
                break
            for answer in self._ask(rows):
                self._follow(answer)
            if step + 1 < self.world.samples.max():
                self.world.tick()
        return [self._rollout(b) for b in range(len(self.records))]

    def _fail(self, b: int, reason: str, error: Exception | None = None) -> None:
        step = self.world.step
        self.records[b].error = error
        self.records[b].failure, self.records[b].samples = f"step {step}: {reason}", step + 1

    def _start(self, rows: np.ndarray) -> None:
        """Announce to the planner which scenarios come; scenarios that it cannot start with fail."""
        if not len(rows):
            return
        try:
            start_planner(self.planner, tuple(self.world.scenarios[b] for b in rows))
        except Exception as error:
            if len(rows) == 1:
                self._fail(int(rows[0]), _reason(error), error)
                return
            for b in rows:
                self._start(rows[rows == b])
            # Each scenario was started alone; now all that can be started are, together.
            able = np.array([b for b in rows if self.records[b].failure is None], int)
            if 0 < len(able) < len(rows):
                self._start(able)

    def _ask(self, rows: np.ndarray) -> list[_Answer]:
        """The planner's answers; if it fails for all worlds together, those of each world alone."""
        is_prefix = rows[-1] == len(rows) - 1
        try:
            return [self._answer(rows, self.world.observe(slice(0, len(rows)) if is_prefix else rows))]
        except Exception as error:
            if len(rows) == 1:
                self._fail(int(rows[0]), _reason(error), error)
                return []
        return [answer for b in rows for answer in self._ask(np.array([b]))]

    def _answer(self, rows: np.ndarray, observation: Observation) -> _Answer:
        plan = self.planner.plan(observation)
        trajectories = trajectories_from_plan(plan, len(rows))
        bent = plan.reference is not None and self.options.controller == "lqr"
        followed = followed_trajectories(plan, len(rows)) if bent else trajectories
        return _Answer(rows, trajectories, followed, _extras(plan) if self.options.keep_plans else {}, plan.rules)

    def _follow(self, answer: _Answer) -> None:
        """Note plans and failures, and steer the worlds that have a next sample."""
        for i, b in enumerate(answer.rows):
            failure = answer.trajectories.failures[i] or answer.followed.failures[i]
            if failure is not None:
                self._fail(int(b), failure)
            elif self.options.keep_plans:
                self.records[b].plans.append(states_on_grid(answer.trajectories, i))
                self.records[b].rules = answer.rules
                for name, values in answer.extras.items():
                    self.records[b].extras.setdefault(name, []).append(values[i])
        goes_on = [self.records[b].samples > self.world.step + 1 for b in answer.rows]
        going = np.flatnonzero(goes_on)
        if not len(going):
            return
        whole = len(going) == len(answer.rows)
        rows = answer.rows if whole else answer.rows[going]
        reached = self.world.steer(rows, answer.followed if whole else answer.followed.select(going))
        if states_fault(reached):
            for b, state in zip(rows, reached):
                if fault := states_fault(state):
                    self.world.halt(int(b))
                    self._fail(int(b), f"the plan leads the ego to a state that {fault}")

    def _rollout(self, b: int) -> Rollout:
        record, options = self.records[b], self.options
        time_us, ego, agents = self.world.drive_of(b, record.samples)
        rollout = Rollout(
            scenario=self.world.scenarios[b],
            time_us=time_us,
            ego=ego,
            agents=agents,
            agent_mode=options.agents,
            planner=self.planner.name,
            seed=options.seed,
            plans=_stack(record.plans),
            rules=record.rules,
            failure=record.failure,
            **{name: _stack(arrays) for name, arrays in record.extras.items()},
        )
        try:
            rollout.validate()
        except ValueError as error:  # nobody could read it again: what was kept beside the drive is given up
            bare: dict[str, Any] = dict.fromkeys(("plans", *record.extras))
            return replace(rollout, failure=record.failure or f"it cannot be kept: {error}", rules=(), **bare)
        return rollout


def _extras(plan: Plan) -> dict[str, np.ndarray]:
    """Fields of a Rollout -> values (R, ...) of the plan, float32 or int32; forecasts only at every fifth step."""
    forecasts = None if plan.predictions is None else plan.predictions[:, :, FORECAST_STEP - 1 :: FORECAST_STEP, :2]
    extras = {
        "pressures": plan.pressure,
        "exact_pressures": plan.exact_pressure,
        "rule_costs": plan.rule_cost,
        "predictions": forecasts,
        "agent_shares": plan.agent_share,
        "predicted_tracks": plan.predicted_tracks,
        "share_tracks": plan.share_tracks,
        "seam_shares": plan.seam_share,
    }
    return {name: _stored(tensor) for name, tensor in extras.items() if tensor is not None}


def _stored(tensor: torch.Tensor) -> np.ndarray:
    wanted = torch.float32 if tensor.is_floating_point() else torch.int32
    return tensor.detach().cpu().to(wanted).numpy()


def _stack(arrays: list[np.ndarray]) -> np.ndarray | None:
    """(S, H, ...), cut to the shortest."""
    if not arrays:
        return None
    length = min(len(array) for array in arrays)
    return np.stack([array[:length] for array in arrays])


def _reason(error: Exception) -> str:
    """One line that says what went wrong."""
    if isinstance(error, PlanError):
        return str(error)
    text, line = one_line(error), own_line(error)
    what = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return f"{what} ({line})" if line else what


def undriven(scenario: Scenario, planner: str, options: DriveOptions, reason: str) -> Rollout:
    """The rollout of a scenario that could not even start: its first sample, as the log has it."""
    first, seen = slice(scenario.start, scenario.start + 1), logged_agents(scenario, 1)
    time_us, ego = scenario.time_us[first], scenario.ego[first]
    return Rollout(scenario, time_us, ego, seen, options.agents, planner, options.seed, failure=reason)
