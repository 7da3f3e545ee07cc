"""Traffic that reacts: vehicles on rails that follow, brake and stop by the Intelligent Driver Model of nuPlan."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np

from radp.scenario import Box, ObjectType, Scenario
from radp.sim.agents.idm_create import OPEN_LOOP_TYPES, Crew, create_crew
from radp.sim.agents.idm_fleet import Fleet, Stage, empty_fleet, grown_fleet
from radp.sim.agents.idm_roads import join_roads, prepare_map
from radp.sim.agents.idm_step import (
    DONE,
    NO_ROOM,
    TIE_FOUND,
    place_agent,
    red_stops,
    step_worlds,
    surroundings,
    write_state,
)
from radp.sim.agents.idm_ties import break_tie

SWEEP_ROOM, RING_ROOM = 64, 128  # points at first; doubled when a map needs more


class IdmAgents:
    """B worlds, A = most objects of any world: reactive vehicles in creation order, then the replayed objects.

    Pedestrians, barriers, signs, cones and generic objects follow the log, in the order of their first appearance (then
    by type); bicycles and vehicles that the log brings in later are absent. Worlds are independent: the result of one
    does not depend on the batch or on `threads` (None: as many as numba is set to use).
    """

    def __init__(self, scenarios: Sequence[Scenario], threads: int | None = None) -> None:
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
        self._roads, first_lane = join_roads([prepare_map(road_map)[0] for road_map in maps.values()])
        place = dict(zip(maps, first_lane))
        self._stage = _build_stage(scenarios, replayed, np.array([place[id(s.map)] for s in scenarios], dtype=np.int64))
        self._rank = [_insertion_rank(scenario, rows) for scenario, rows in zip(scenarios, replayed)]
        self._agents = np.array([len(crew.track) for crew in self._crews], dtype=np.int64)
        self._threads = max(1, min(threads or numba.get_num_threads(), len(scenarios)))
        self._pool = ThreadPoolExecutor(self._threads) if self._threads > 1 else None
        self._fleet: Fleet | None = None
        self.ties = np.zeros(len(scenarios), dtype=np.int64)  # choices since reset that fell to the tree's order

    def reset(self, ego: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """ego (B, 11), not used: creation looks at the logged ego -> state (B, A, 5), valid (B, A) of sample 0."""
        longest = int(np.diff(self._roads.vertex_offsets).max(initial=2))
        fleet = empty_fleet(len(self._crews), int(self._agents.max(initial=0)), 2 * longest, SWEEP_ROOM, RING_ROOM)
        for b, crew in enumerate(self._crews):
            self._place(b, crew, fleet)
        self._fleet = fleet
        self.ties[:] = 0
        return self._state(0)

    def step(self, i: int, ego: np.ndarray, dt: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sample index i, ego (B, 11) at sample i, dt (B,) s -> state (B, A, 5), valid (B, A) of sample i + 1."""
        if self._fleet is None:
            raise RuntimeError("IdmAgents.step was called before reset")
        ego, dt = np.ascontiguousarray(ego, dtype=np.float64), np.ascontiguousarray(dt, dtype=np.float64)
        worlds = np.arange(len(self._crews))
        cursor, forced = np.zeros(len(worlds), dtype=np.int64), np.full(len(worlds), -1, dtype=np.int64)
        status = np.zeros(len(worlds), dtype=np.int64)
        while len(worlds):
            self._run(worlds, i, ego, dt, cursor, forced, status)
            worlds = worlds[status[worlds] != DONE]
            if (status[worlds] == NO_ROOM).any():
                self._fleet = grown_fleet(self._fleet)
            for b in worlds[status[worlds] == TIE_FOUND]:
                forced[b] = self._break_tie(int(b), int(cursor[b]), i, ego[b])
                self.ties[b] += 1
        return self._state(i + 1)

    def _run(self, worlds: np.ndarray, i: int, ego: np.ndarray, dt: np.ndarray, *progress: np.ndarray) -> None:
        fixed = (i, ego, dt, self._roads, self._stage, self._fleet, *progress)
        if self._pool is None or len(worlds) == 1:
            step_worlds(worlds, *fixed)
            return
        shares = [worlds[k :: self._threads].copy() for k in range(self._threads)]
        for future in [self._pool.submit(step_worlds, share, *fixed) for share in shares]:
            future.result()

    def _place(self, b: int, crew: Crew, fleet: Fleet) -> None:
        count = len(crew.track)
        fleet.pose[b, :count], fleet.speed[b, :count], fleet.target[b, :count] = crew.pose, crew.speed, crew.target
        fleet.progress[b, :count], fleet.size[b, :count] = crew.progress, self.size[b, :count, :2]
        for a, lane in enumerate(crew.lane):
            place_agent(b, a, int(lane + self._stage.first_lane[b]), self._roads, fleet)

    def _break_tie(self, b: int, a: int, i: int, ego: np.ndarray) -> int:
        frame = min(i + 1, int(self._stage.last_frame[b]))
        stop = red_stops(b, a, frame, self._roads, self._stage, self._fleet)
        obstacles = surroundings(b, frame, ego, self._stage)._replace(stop=stop)
        present = self._stage.object_valid[b, frame, : len(self._rank[b])]
        return break_tie(b, a, self._fleet, self._roads, obstacles, self._rank[b][present])

    def _state(self, sample: int) -> tuple[np.ndarray, np.ndarray]:
        state, valid = np.zeros((*self.type.shape, len(Box))), np.zeros(self.type.shape, dtype=bool)
        write_state(sample, self._agents, self._fleet, self._stage, state, valid)
        return state, valid


def _replayed_tracks(scenario: Scenario) -> np.ndarray:
    """Tracks that follow the log, in the order of first appearance in the drive, then of type, then of detection."""
    tracks = scenario.tracks
    valid = tracks.valid[:, scenario.start :]
    rows = np.flatnonzero(np.isin(tracks.type, OPEN_LOOP_TYPES) & valid.any(axis=1))
    first = valid[rows].argmax(axis=1)
    kind = [OPEN_LOOP_TYPES.index(ObjectType(t)) for t in tracks.type[rows]]
    return rows[np.lexsort((rows, kind, first))]


def _insertion_rank(scenario: Scenario, rows: np.ndarray) -> np.ndarray:
    """(O,) place of each replayed object in a frame's list: by type, then by detection."""
    kind = np.array([OPEN_LOOP_TYPES.index(ObjectType(t)) for t in scenario.tracks.type[rows]], dtype=np.int64)
    return kind * len(scenario.tracks) + rows


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
