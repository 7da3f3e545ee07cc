"""Worlds in lock step: the memory of B closed-loop drives, what a planner sees of it, and one step forward."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from radp.scenario import Box, Ego, Scenario, Tracks
from radp.sim.controller import Trajectories, drive
from radp.sim.observation import HISTORY, Observation

PAST = HISTORY - 1  # samples before the start of a drive


class AgentModel(Protocol):
    """How the other road users of B worlds move; A = most objects of any world."""

    ids: tuple[tuple[str, ...], ...]
    type: np.ndarray  # (B, A) uint8
    size: np.ndarray  # (B, A, 3)

    def reset(self, ego: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """ego (B, 11) -> state (B, A, 5), valid (B, A) of sample 0."""
        ...

    def step(self, i: int, ego: np.ndarray, dt: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Ego (B, 11) at sample i, dt (B,) seconds to sample i + 1 -> state and valid of sample i + 1."""
        ...


class World:
    """B drives over S = most samples of any of them. Row PAST + i of the time axis is sample i.

    time_us (B, PAST + S), ego (B, PAST + S, 11), agents (B, PAST + S, A, 5) with their masks. The past comes from the
    log; masks are False where the log has none. An ego that nobody steers any more stands still.
    """

    def __init__(
        self,
        scenarios: Sequence[Scenario],
        agents: Callable[[Sequence[Scenario]], AgentModel],
        seed: int = 0,
        controller: str = "lqr",
    ) -> None:
        self.scenarios = tuple(scenarios)
        self.controller = controller
        self.samples = np.array([scenario.frames - 1 for scenario in scenarios])
        self.step = 0
        self._briefings = tuple(scenario.briefing for scenario in scenarios)
        self._lights, self._light_columns = _lights(scenarios, int(self.samples.max()))
        batch, total = len(scenarios), PAST + int(self.samples.max())
        self.time_us = np.stack([_times(scenario, total) for scenario in scenarios])
        self.ego = np.zeros((batch, total, len(Ego)))
        self.ego_valid = np.zeros((batch, total), dtype=bool)
        for b, scenario in enumerate(scenarios):
            known = min(PAST, scenario.start) + 1  # log frames up to the start of the drive
            rows = slice(PAST + 1 - known, PAST + 1)
            self.ego[b, rows] = scenario.ego[scenario.start + 1 - known : scenario.start + 1]
            self.ego_valid[b, rows] = True
        self.model = agents(self.scenarios)
        count = self.model.type.shape[1]
        self.agents = np.zeros((batch, total, count, len(Box)))
        self.agent_valid = np.zeros((batch, total, count), dtype=bool)
        for b, scenario in enumerate(scenarios):
            self._recall_agents(b, scenario)
        self.agents[:, PAST], self.agent_valid[:, PAST] = self.model.reset(self.ego[:, PAST])
        self._seeds = np.array([_world_seed(seed, scenario.token) for scenario in scenarios], dtype=np.uint64)

    def _recall_agents(self, b: int, scenario: Scenario) -> None:
        """The past of the agent model's objects, from the log."""
        position = {name: i for i, name in enumerate(scenario.tracks.ids)}
        tracks = [position[name] for name in self.model.ids[b]]
        known = min(PAST, scenario.start)
        past, log = slice(PAST - known, PAST), slice(scenario.start - known, scenario.start)
        self.agents[b, past, : len(tracks)] = scenario.tracks.state[tracks, log].swapaxes(0, 1)
        self.agent_valid[b, past, : len(tracks)] = scenario.tracks.valid[tracks, log].T

    def observe(self, rows: np.ndarray | slice = slice(None)) -> Observation:
        """What the worlds `rows` show now; a slice gives views of the world's memory, indices give copies."""
        window = slice(self.step, self.step + HISTORY)
        chosen = range(len(self.scenarios))[rows] if isinstance(rows, slice) else rows.tolist()
        lights = self._lights[self.step].copy()  # a view would lead to the lights of the future
        return Observation(
            briefings=tuple([self._briefings[i] for i in chosen]),
            step=self.step,
            time_us=self.time_us[rows, window],
            ego=self.ego[rows, window],
            ego_valid=self.ego_valid[rows, window],
            agents=self.agents[rows, window],
            agent_valid=self.agent_valid[rows, window],
            agent_type=self.model.type[rows],
            agent_size=self.model.size[rows],
            light_state=tuple([lights[self._light_columns[i]] for i in chosen]),
            seeds=_mix(self._seeds[rows] + np.uint64(self.step)),
        )

    def steer(self, rows: np.ndarray, trajectories: Trajectories) -> np.ndarray:
        """Move the egos of the worlds `rows` along their trajectories -> their states (R, 11) at the next sample."""
        now = PAST + self.step
        reached = drive(self.ego[rows, now], trajectories, self._dt()[rows], self.controller)
        self.ego[rows, now + 1], self.ego_valid[rows, now + 1] = reached, True
        return reached

    def halt(self, b: int) -> None:
        """Leave the ego of a world where it is: what it was steered to is no state."""
        now = PAST + self.step
        self.ego[b, now + 1] = self.ego[b, now]

    def tick(self) -> None:
        """Move the agents of all worlds to the next sample, which becomes the present."""
        now = PAST + self.step
        self.agents[:, now + 1], self.agent_valid[:, now + 1] = self.model.step(self.step, self.ego[:, now], self._dt())
        resting = ~self.ego_valid[:, now + 1]
        self.ego[resting, now + 1] = self.ego[resting, now]
        self.step += 1

    def _dt(self) -> np.ndarray:
        """(B,) seconds from this sample to the next."""
        now = PAST + self.step
        return (self.time_us[:, now + 1] - self.time_us[:, now]) * 1e-6

    def drive_of(self, b: int, samples: int) -> tuple[np.ndarray, np.ndarray, Tracks]:
        """World b: time_us (S,), ego (S, 11) and agents over its first `samples` samples, as copies."""
        rows, ids = slice(PAST, PAST + samples), self.model.ids[b]
        count = len(ids)
        valid = self.agent_valid[b, rows, :count].T.copy()
        state = np.where(valid[..., None], self.agents[b, rows, :count].swapaxes(0, 1), 0.0)
        tracks = Tracks(ids, self.model.type[b, :count].copy(), self.model.size[b, :count].copy(), state, valid)
        return self.time_us[b, rows].copy(), self.ego[b, rows].copy(), tracks


def _times(scenario: Scenario, total: int) -> np.ndarray:
    """(total,) stamps: the log's own, and nominal steps where it has none (before its first and after its last)."""
    nominal = round(scenario.dt * 1e6)
    frame = scenario.start - PAST + np.arange(total)
    inside = np.clip(frame, 0, len(scenario.time_us) - 1)
    return scenario.time_us[inside] + (frame - inside) * nominal


def _lights(scenarios: Sequence[Scenario], samples: int) -> tuple[np.ndarray, list[slice]]:
    """LightState (S, all C) of all worlds side by side, and the columns of each world; see `lights_at`."""
    states = [scenario.lights.state for scenario in scenarios]
    frames = [np.minimum(s.start + np.arange(samples), len(state) - 1) for s, state in zip(scenarios, states)]
    ends = np.cumsum([0, *(state.shape[1] for state in states)]).tolist()
    side_by_side = np.concatenate([state[frame] for state, frame in zip(states, frames)], axis=1)
    return side_by_side, [slice(*ends[i : i + 2]) for i in range(len(states))]


def _world_seed(seed: int, token: str) -> int:
    """A number that only this seed and this scenario share."""
    return int.from_bytes(hashlib.blake2b(f"{seed}:{token}".encode(), digest_size=8).digest(), "little")


def _mix(values: np.ndarray) -> np.ndarray:
    """(B,) uint64 -> (B,) uint64 without visible relation between neighbours (the finaliser of splitmix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
