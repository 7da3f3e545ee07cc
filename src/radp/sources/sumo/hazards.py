"""Hazards at controlled rates: some are staged while the traffic runs, all are named from the log afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from radp.scenario import DT, Box, LightState
from radp.sources.sumo.programs import sumo_module
from radp.sources.sumo.recording import Act, RoadUserTrace
from radp.sources.sumo.road import SumoRoad

if TYPE_CHECKING:
    from radp.sources.sumo.traffic_log import TrafficLog

FIRST_ACT = 200  # frames before anything is staged: the network fills up
DEFAULT_SPEED_MODE, NO_BRAKE_LIMIT = 31, 27
DEFAULT_LANE_CHANGE, OBEY = 1621, 0


@dataclass(frozen=True)
class Concern:
    """When a hazard concerns an ego: who makes it is within `reach` metres, in the ego's half-plane ahead if `ahead`,
    no further than `aside` metres to a side, and drives the same way if `aligned`."""

    reach: float
    aside: float
    ahead: bool = False
    aligned: bool = False


CONCERNS = {
    "red_light_runner": Concern(40.0, 40.0, ahead=True),
    "right_of_way_ignored": Concern(40.0, 40.0, ahead=True),
    "sudden_braking": Concern(40.0, 6.0, ahead=True, aligned=True),
    "close_cut_in": Concern(30.0, 8.0, ahead=True, aligned=True),
    "jaywalker": Concern(40.0, 10.0, ahead=True),
    "stalled_vehicle": Concern(60.0, 8.0, ahead=True, aligned=True),
}
ALIGNED = 0.7  # [rad]


def concerns(kind: str, actor: np.ndarray, ego: np.ndarray) -> np.ndarray:
    """Box states (n, 5) of who makes a hazard, poses (n, 3) of an ego in the same frames -> (n,) bool."""
    rule, offset = CONCERNS[kind], actor[:, :2] - ego[:, :2]
    cos, sin = np.cos(ego[:, 2]), np.sin(ego[:, 2])
    ahead, aside = offset[:, 0] * cos + offset[:, 1] * sin, offset[:, 1] * cos - offset[:, 0] * sin
    fits = (np.hypot(ahead, aside) < rule.reach) & (np.abs(aside) < rule.aside)
    if rule.ahead:
        fits &= ahead > 0.0
    if rule.aligned:
        fits &= np.cos(actor[:, Box.HEADING] - ego[:, 2]) > np.cos(ALIGNED)
    return fits


GIVE_UP = 0.05  # chance per half second that an act without an actor is forgotten
CUT_IN_GAP = (0.5, 8.0)  # [m] ahead of the vehicle that is cut off
CONFLICT = 15.0  # [m] to a moving vehicle from another side, for an ignored right of way
CONFLICT_FRAMES = 30


@dataclass
class HazardDirector:
    """Makes cars brake hard, cut in or break down: on average one act every `every` seconds."""

    road: SumoRoad
    rng: np.random.Generator
    every: float = 6.0
    acts: list[Act] = field(default_factory=list)
    _waiting: list[int] = field(default_factory=list)  # acts for which no actor was found yet
    _pending: dict[str, tuple[int, str]] = field(default_factory=dict)  # actor -> frame at which it is let go, what

    def step(self, frame: int, vehicles: dict[str, RoadUserTrace]) -> None:
        """One frame: undo acts that are over, perhaps start a new one."""
        sim = sumo_module("libsumo")
        present = sim.vehicle.getIDList()
        for actor in [a for a, (until, _) in self._pending.items() if until <= frame or a not in present]:
            self._release(sim, actor, actor in present)
        if frame >= FIRST_ACT and self.rng.random() < DT / self.every:
            self._waiting.append(int(self.rng.integers(3)))
        if self._waiting and frame % 5 == 0:
            play = (self._brake, self._cut_in, self._stall)[self._waiting[0]]
            actors = self.rng.permutation(sorted(a for a in present if self._may_act(sim, a)))
            if any(play(sim, str(actor), frame) for actor in actors) or self.rng.random() < GIVE_UP:
                self._waiting.pop(0)

    def _may_act(self, sim: Any, name: str) -> bool:
        """Cars that drive freely on a lane of the map."""
        if name in self._pending or sim.vehicle.getTypeID(name).rstrip("0123456789") not in ("car", "suv", "van"):
            return False
        lane = self.road.map.lane_index.get(sim.vehicle.getLaneID(name), len(self.road.map))
        return lane < self.road.first_connector and sim.vehicle.getSpeed(name) > 5.0

    def _release(self, sim: Any, actor: str, present: bool) -> None:
        _, what = self._pending.pop(actor)
        if present and what == "sudden_braking":
            sim.vehicle.setSpeed(actor, -1)
            sim.vehicle.setSpeedMode(actor, DEFAULT_SPEED_MODE)
        elif present and what == "close_cut_in":
            sim.vehicle.setLaneChangeMode(actor, DEFAULT_LANE_CHANGE)
            sim.vehicle.setMaxSpeedLat(actor, 1.0)

    def _note(self, kind: str, actor: str, frame: int, seconds: float) -> bool:
        last = frame + round(seconds / DT)
        self.acts.append(Act(kind, actor, frame, last))
        self._pending[actor] = (last, kind)
        return True

    def _brake(self, sim: Any, actor: str, frame: int) -> bool:
        """A leader brakes with 5 m/s^2 for no visible reason."""
        follower, gap = sim.vehicle.getFollower(actor, 30.0)
        speed = sim.vehicle.getSpeed(actor)
        if not follower or not 0 < gap < 25.0 or speed < 7.0:
            return False
        sim.vehicle.setSpeedMode(actor, NO_BRAKE_LIMIT)
        sim.vehicle.slowDown(actor, 0.15 * speed, 0.85 * speed / 5.0)
        return self._note("sudden_braking", actor, frame, 0.85 * speed / 5.0 + 1.0)

    def _cut_in(self, sim: Any, actor: str, frame: int) -> bool:
        """A car moves over right in front of one in the next lane."""
        lane = self.road.map.lane_index[sim.vehicle.getLaneID(actor)]
        edge_left = self.road.edge_length[self.road.map.roadblocks.ids[self.road.map.roadblock[lane]]]
        if edge_left - sim.vehicle.getLanePosition(actor) < 60.0:
            return False
        sides = ((0, 1, self.road.map.left_neighbor[lane]), (1, -1, self.road.map.right_neighbor[lane]))
        for mode, direction, beside in sides:
            behind = sim.vehicle.getNeighbors(actor, mode) if beside >= 0 else ()
            if any(CUT_IN_GAP[0] < gap < CUT_IN_GAP[1] for _, gap in behind):
                sim.vehicle.setLaneChangeMode(actor, OBEY)
                sim.vehicle.setMaxSpeedLat(actor, 1.8)
                sim.vehicle.changeLaneRelative(actor, direction, 5.0)
                return self._note("close_cut_in", actor, frame, 5.0)
        return False

    def _stall(self, sim: Any, actor: str, frame: int) -> bool:
        """A car breaks down on a road with more than one lane."""
        name = sim.vehicle.getLaneID(actor)
        edge, index = name.rsplit("_", 1)
        place = sim.vehicle.getLanePosition(actor)
        stop = place + sim.vehicle.getSpeed(actor) ** 2 / 4.0 + 10.0
        if self.road.lane_count(edge) < 2 or stop > self.road.edge_length[edge] - 40.0:
            return False
        seconds = float(self.rng.uniform(20, 35))
        try:
            sim.vehicle.setStop(actor, edge, stop, int(index), seconds)
        except sim.TraCIException:
            return False
        return self._note("stalled_vehicle", actor, frame, seconds + 8.0)


def name_hazards(staged: tuple[Act, ...], log: TrafficLog, road: SumoRoad) -> tuple[Act, ...]:
    """Hazards as the log shows them: staged acts that took effect, red lights run, right of way ignored, jaywalkers."""
    acts = [act for act in staged if _took_effect(act, log)]
    acts += [*_red_runs(log, road), *_ignored(log, road), *_jaywalks(log)]
    return tuple(sorted(acts, key=lambda act: (act.first, act.kind, act.actor)))


def _took_effect(act: Act, log: TrafficLog) -> bool:
    if act.actor not in log.row_of:
        return False
    row, span = log.row_of[act.actor], slice(act.first, act.last + 1)
    if act.kind == "close_cut_in":
        lanes = log.lane[row, span]
        return bool((lanes[1:] != lanes[:-1]).any())
    return bool((np.hypot(*log.state[row, span, Box.VX :].T) < 3.0).any())


def _entries(log: TrafficLog, road: SumoRoad) -> Iterator[tuple[int, int, int]]:
    """(row, frame, connector) of every vehicle's first frame on a connector."""
    lane = log.lane
    rows, frames = np.nonzero(
        (lane[:, 1:] >= road.first_connector) & (lane[:, 1:] != lane[:, :-1]) & (lane[:, :-1] >= 0)
    )
    for row, frame in zip(rows.tolist(), (frames + 1).tolist()):
        yield row, frame, int(lane[row, frame])


def _red_runs(log: TrafficLog, road: SumoRoad) -> Iterator[Act]:
    column = {light.connector: i for i, light in enumerate(road.lights)}
    for row, frame, connector in _entries(log, road):
        if connector in column and log.lights[frame - 1, column[connector]] == LightState.RED:
            yield Act("red_light_runner", log.ids[row], frame - 20, frame + 40)


def _ignored(log: TrafficLog, road: SumoRoad) -> Iterator[Act]:
    """A driver without manners enters where it has to yield, and somebody from another side is close."""
    for row, frame, connector in _entries(log, road):
        way = road.connector(connector)
        if log.manners[row] == "ignorer" and way is not None and way.minor:
            span = slice(frame, frame + CONFLICT_FRAMES)
            mine = log.state[row, span]
            gap = np.hypot(*np.moveaxis(log.state[:, span, :2] - mine[None, :, :2], -1, 0))
            aside = np.abs(np.sin(log.state[:, span, Box.HEADING] - mine[None, :, Box.HEADING])) > 0.5
            moving = np.hypot(log.state[:, span, Box.VX], log.state[:, span, Box.VY]) > 2.0
            if (log.valid[:, span] & (gap < CONFLICT) & aside & moving).any():
                yield Act("right_of_way_ignored", log.ids[row], frame - 20, frame + 40)


def _jaywalks(log: TrafficLog) -> Iterator[Act]:
    for row in np.flatnonzero((log.crossing == JAY).any(axis=1)):
        there = np.flatnonzero(log.crossing[row] == JAY)
        yield Act("jaywalker", log.ids[row], int(there[0]), int(there[-1]))


JAY = 2  # value of TrafficLog.crossing on a crossing that the map does not show
