"""Traffic that reacts: vehicles on rails that follow, brake and stop by the Intelligent Driver Model of nuPlan."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from radp.road.rails import join_rails, rails
from radp.scenario import Box, ObjectType, Scenario
from radp.sim.agents.idm_create import OPEN_LOOP_TYPES, Crew, create_crew
from radp.sim.agents.idm_fleet import MAX_STOPS, Claims, Fleet, Stage, double_room, empty_claims, empty_fleet
from radp.sim.agents.idm_step import DONE, NO_ROOM, TIE_FOUND, place_crew, step_worlds, write_state
from radp.sim.agents.idm_ties import break_tie

SWEEP_ROOM, RING_ROOM = 64, 128  # points at first; doubled when a map needs more


class IdmAgents:
    """B worlds, A = most objects of any world: reactive vehicles in creation order, then the replayed objects.

    Pedestrians, barriers, signs, cones and generic objects follow the log, in the order of their first appearance (then
    by type); bicycles and vehicles that the log brings in later are absent. Worlds are independent: the result of one
    does not depend on the batch or on `threads` (None: as many as torch may use. Numba is not asked: its answer starts
    a pool that sets torch's number of threads as well).
    """

    def __init__(self, scenarios: Sequence[Scenario], threads: int | None = None) -> None:
        if not scenarios:
            raise ValueError("IdmAgents needs at least one scenario")
        self._crews = [create_crew(scenario) for scenario in scenarios]
        replayed = [_replayed_tracks(scenario) for scenario in scenarios]
        tracks = [np.concatenate([crew.track, objects]) for crew, objects in zip(self._crews, replayed)]
        self.ids = tuple(tuple(s.tracks.ids[i] for i in rows) for s, rows in zip(scenarios, tracks))
        shape = (len(scenarios), max((len(rows) for rows in tracks), default=0))
        self.type, self.size = np.zeros(shape, dtype=np.uint8), np.zeros((*shape, 3))
        for b, (scenario, rows) in enumerate(zip(scenarios, tracks)):
            self.type[b, : len(rows)], self.size[b, : len(rows)] = (
                scenario.tracks.type[rows],
                scenario.tracks.size[rows],
            )
        maps = {id(scenario.map): scenario.map for scenario in scenarios}
        self._rails, first_lane = join_rails([rails(road_map) for road_map in maps.values()])
        place = dict(zip(maps, first_lane))
        self._stage = _build_stage(scenarios, replayed, np.array([place[id(s.map)] for s in scenarios], dtype=np.int64))
        self._rank = [_insertion_rank(scenario, rows) for scenario, rows in zip(scenarios, replayed)]
        self._crew_size = np.array([len(crew.track) for crew in self._crews], dtype=np.int64)
        self._threads = max(1, min(threads or torch.get_num_threads(), len(scenarios)))
        self._pool = ThreadPoolExecutor(self._threads) if self._threads > 1 else None
        self._fleet: Fleet = empty_fleet(0, 0, 0)
        self._claims: Claims = empty_claims(0, 0)
        self.ties = np.zeros(len(scenarios), dtype=np.int64)  # choices since reset that fell to the tree's order

    def reset(self, ego: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """ego (B, 11), not used: creation looks at the logged ego -> state (B, A, 5), valid (B, A) of sample 0."""
        agents, objects = int(self._crew_size.max(initial=0)), self._stage.object_valid.shape[2]
        longest = int(np.diff(self._rails.vertex_offsets).max(initial=2))
        self._fleet = empty_fleet(len(self._crews) * agents, 2 * longest, SWEEP_ROOM)
        self._claims = empty_claims(len(self._crews) * (agents + 1 + objects + MAX_STOPS), RING_ROOM)
        for b, crew in enumerate(self._crews):
            self._place(b, crew, b * agents)
        self.ties[:] = 0
        return self._state(0)

    def step(self, i: int, ego: np.ndarray, dt: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sample index i, ego (B, 11) at sample i, dt (B,) s -> state (B, A, 5), valid (B, A) of sample i + 1."""
        ego, dt = np.array(ego, dtype=np.float64, order="C"), np.array(dt, dtype=np.float64)
        worlds = np.arange(len(self._crews))
        cursor, forced = np.zeros(len(worlds), dtype=np.int64), np.full(len(worlds), -1, dtype=np.int64)
        status = np.zeros(len(worlds), dtype=np.int64)
        while len(worlds):
            self._run(worlds, i, ego, dt, cursor, forced, status)
            worlds = worlds[status[worlds] != DONE]
            for b in worlds[status[worlds] == TIE_FOUND]:
                forced[b] = break_tie(
                    int(b), int(cursor[b]), len(self._crews), self._fleet, self._claims, self._rank[b]
                )
                self.ties[b] += 1
            if (status[worlds] == NO_ROOM).any():
                self._grow()
        return self._state(i + 1)

    def _run(self, worlds: np.ndarray, i: int, ego: np.ndarray, dt: np.ndarray, *progress: np.ndarray) -> None:
        def run(share: np.ndarray) -> None:
            step_worlds(share, i, ego, dt, self._rails, self._stage, self._fleet, self._claims, *progress)

        if self._pool is None or len(worlds) == 1:
            run(worlds)
        else:
            list(self._pool.map(run, [worlds[k :: self._threads].copy() for k in range(self._threads)]))

    def _place(self, b: int, crew: Crew, first: int) -> None:
        """Set the rows of one world's agents, from row `first` of the fleet on."""
        rows = slice(first, first + len(crew.track))
        slot = b * (len(self._claims.present) // len(self._crews))
        self._fleet.target[rows], self._fleet.progress[rows] = crew.target, crew.progress
        self._fleet.length[rows], self._fleet.width[rows] = self.size[b, : len(crew.track), :2].T
        lane = crew.lane + self._stage.first_lane[b]
        place_crew(first, slot, lane, crew.pose, crew.speed, self._rails, self._fleet, self._claims)

    def _grow(self) -> None:
        """Twice the room for paths, sweep lines and rings."""
        fleet, claims = self._fleet, self._claims
        sweep = double_room(fleet.sweep, len(fleet.x)).reshape(len(fleet.x), -1, 2)
        self._fleet = fleet._replace(path=double_room(fleet.path, len(fleet.x)), sweep=sweep)
        self._claims = claims._replace(point=double_room(claims.point, 2 * len(claims.present)))

    def _state(self, sample: int) -> tuple[np.ndarray, np.ndarray]:
        state, valid = np.zeros((*self.type.shape, len(Box))), np.zeros(self.type.shape, dtype=bool)
        write_state(sample, self._crew_size, self._fleet, self._claims, self._stage, state, valid)
        return state, valid


def _replayed_tracks(scenario: Scenario) -> np.ndarray:
    """Tracks that follow the log, in the order of first appearance in the drive, then of type, then of detection."""
    tracks = scenario.tracks
    valid = tracks.valid[:, scenario.start :]
    rows = np.flatnonzero(np.isin(tracks.type, OPEN_LOOP_TYPES) & valid.any(axis=1))
    first = valid[rows].argmax(axis=1)
    return rows[np.lexsort((rows, _type_rank(tracks.type[rows]), first))]


def _insertion_rank(scenario: Scenario, rows: np.ndarray) -> np.ndarray:
    """(O,) place of each replayed object in a frame's list: by type, then by detection."""
    return _type_rank(scenario.tracks.type[rows]) * len(scenario.tracks) + rows


def _type_rank(types: np.ndarray) -> np.ndarray:
    return np.array([OPEN_LOOP_TYPES.index(ObjectType(kind)) for kind in types], dtype=np.int64)


def _build_stage(scenarios: Sequence[Scenario], replayed: Sequence[np.ndarray], first_lane: np.ndarray) -> Stage:
    worlds, frames = len(scenarios), max((s.frames for s in scenarios), default=1)
    objects = max((len(rows) for rows in replayed), default=0)
    columns = max((len(s.lights.lane) for s in scenarios), default=0)
    stage = Stage(
        first_lane=first_lane,
        last_frame=np.array([s.frames - 1 for s in scenarios], dtype=np.int64),
        light_column=np.full((worlds, max((len(s.map) for s in scenarios), default=0)), -1, dtype=np.int64),
        light_state=np.zeros((worlds, frames, columns), dtype=np.uint8),
        object_state=np.zeros((worlds, frames, objects, len(Box))),
        object_valid=np.zeros((worlds, frames, objects), dtype=bool),
        object_size=np.zeros((worlds, objects, 2)),
    )
    for b, (scenario, rows) in enumerate(zip(scenarios, replayed)):
        lights, tracks, drive = scenario.lights, scenario.tracks, slice(scenario.start, None)
        stage.light_column[b, lights.lane] = np.arange(len(lights.lane))
        stage.light_state[b, : scenario.frames, : len(lights.lane)] = lights.state[drive]
        stage.object_state[b, : scenario.frames, : len(rows)] = tracks.state[rows, drive].swapaxes(0, 1)
        stage.object_valid[b, : scenario.frames, : len(rows)] = tracks.valid[rows, drive].T
        stage.object_size[b, : len(rows)] = tracks.size[rows, :2]
    return stage
