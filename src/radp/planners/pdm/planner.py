"""PDM-Closed: 15 proposals along the route are driven and scored in a forecast of the traffic; the best one is taken.

Dauner et al., Parting with Misconceptions about Learning-based Vehicle Motion Planning, CoRL 2023.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numba import njit

from radp.planners.corridor import blend_length, ego_on_line
from radp.planners.guides import GuideBook, stop_points
from radp.planners.pdm.comfort import filters
from radp.planners.pdm.drive import agents_in_sight, drive, forecast
from radp.planners.pdm.proposals import Start, Way, brake, find_leads, unroll
from radp.planners.pdm.score import HIT_TIME, TOTAL, Traffic, rate, total_scores
from radp.planners.pdm.settings import (
    BRAKE,
    DRIVER,
    FRACTIONS,
    HORIZON,
    OFFSETS,
    ROOM,
    SCORED,
    WEIGHTS,
    Brake,
    Driver,
    Room,
    Weights,
)
from radp.road.guide import GUIDE_SPACING, OVERRUN, RouteLine, Verge
from radp.scenario import DT, Ego, ObjectType
from radp.scenario.scenario import FIRST_STATIC_TYPE
from radp.sim.observation import Observation
from radp.sim.plan import Plan
from radp.sim.planner import plan_from_world

EGO_VX = int(Ego.VX)
PEOPLE = (int(ObjectType.PEDESTRIAN), int(ObjectType.BICYCLE))


@dataclass
class PDMClosedPlanner:
    """Plans of 81 poses, 8 s. The worlds of a batch are planned one after the other by one compiled kernel.

    `published_tracker`: proposals are driven by the tracker of the published program, which penalises accelerations
    where nuPlan's penalises jerk. `bends`: share of the usual speed at which bends are taken.
    """

    driver: Driver = DRIVER
    weights: Weights = WEIGHTS
    brake: Brake = BRAKE
    room: Room = ROOM
    fractions: tuple[float, ...] = FRACTIONS
    offsets: tuple[float, ...] = OFFSETS
    bends: float = 1.0
    deterministic: ClassVar[bool] = True
    published_tracker: bool = False
    name: str = "pdm_closed"
    guides: GuideBook = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.guides = GuideBook(self.bends)

    def plan(self, observation: Observation) -> Plan:
        """B worlds -> plans of 81 poses with their times; the first one is where the ego should be now."""
        poses = np.empty((len(observation), HORIZON + 1, 3))
        for b in range(len(observation)):
            self.plan_world(observation, b, poses[b])
        return plan_from_world(observation, poses, np.broadcast_to(np.arange(HORIZON + 1) * DT, poses.shape[:2]))

    def plan_world(self, observation: Observation, world: int, poses: np.ndarray) -> np.ndarray:
        """Plan for one world -> poses (81, 3) in the world frame, the first is now; returns the score table (N, 8)."""
        line = self.guides.line(observation, world)
        kinds = observation.agent_type[world]
        # The metric knows nothing of the time before the drive, and its filters treat the first sample as an edge.
        known = min(observation.step, observation.ego.shape[1] - 1)
        history = observation.ego[world, observation.ego.shape[1] - 1 - known : -1]
        goals = np.array(self.offsets)
        table = np.zeros((len(self.fractions) * len(goals), TOTAL + 1))
        plan_kernel(
            np.ascontiguousarray(observation.ego[world, -1]),
            np.ascontiguousarray(history),
            filters(known + SCORED + 1),
            np.ascontiguousarray(observation.agents[world, -1]),
            np.ascontiguousarray(observation.agent_valid[world, -1]),
            np.ascontiguousarray(observation.agent_size[world]),
            kinds >= FIRST_STATIC_TYPE,
            np.isin(kinds, PEOPLE),
            way_of(line, self.guides.guide(observation.briefings[world]).verge(line), observation, world),
            line.first_end + OVERRUN,
            np.array(self.fractions),
            goals,
            self.driver,
            self.weights,
            self.brake,
            self.room,
            self.published_tracker,
            table,
            poses,
        )
        return table


def careful_pdm() -> PDMClosedPlanner:
    """PDM-Closed that keeps 1.5 m more to leaders, half a metre more before everybody and a metre to people, follows at
    1.8 s, drives at 90 % of the limit and takes bends at 70 % of the usual speed, since the controller carries a fast
    car out of them: a teacher for learners that miss by as much."""
    driver = DRIVER._replace(min_gap=DRIVER.min_gap + 1.5, headway=1.8)
    room = ROOM._replace(ahead=ROOM.ahead + 0.5, people=1.0)
    fractions = tuple(0.9 * fraction for fraction in FRACTIONS)
    return PDMClosedPlanner(driver=driver, room=room, fractions=fractions, bends=0.7, name="pdm_careful")


def way_of(line: RouteLine, verge: Verge, observation: Observation, world: int) -> Way:
    """The line ahead with its lights as they are now."""
    stops, yellow = stop_points(line, observation, world)
    wall = line.first_end if line.must_change else (len(line.points) - 1) * GUIDE_SPACING
    return Way(line.points, line.headings, line.speeds, stops, yellow, wall, verge.margins, verge.crossing)


@njit(cache=True, nogil=True)
def plan_kernel(
    ego: np.ndarray,
    history: np.ndarray,
    comfort_filters: np.ndarray,
    agents: np.ndarray,
    valid: np.ndarray,
    size: np.ndarray,
    static: np.ndarray,
    people: np.ndarray,
    way: Way,
    until: float,
    fractions: np.ndarray,
    goals: np.ndarray,
    driver: Driver,
    weights: Weights,
    emergency: Brake,
    room: Room,
    published_tracker: bool,
    table: np.ndarray,
    out: np.ndarray,
) -> None:
    """One world: ego (11,), history (H, 11), agents (A, 5) ... -> table (N, 8) of scores, poses (81, 3)."""
    s, lateral, slope = ego_on_line(ego, way.points, way.headings, GUIDE_SPACING, until)
    start = Start(s, lateral, slope, max(0.0, ego[EGO_VX]))
    lengths = np.empty(goals.shape[0])
    for j in range(goals.shape[0]):
        lengths[j] = blend_length(start.speed, goals[j] - lateral)
    seen = agents_in_sight(ego, agents, valid, size)
    now = agents[seen].copy()
    for a in range(seen.shape[0]):
        if static[seen[a]]:
            now[a, 3:] = 0.0
    boxes = size[seen]
    for a in range(seen.shape[0]):
        if people[seen[a]]:
            boxes[a, :2] += 2.0 * room.people
    leads = find_leads(way, start, goals, lengths, now, boxes)
    samples = SCORED + 1
    state, speed = forecast(now, samples)
    everywhere = np.ones((seen.shape[0], samples), np.bool_)
    boxes[:, 0] += 2.0 * room.ahead
    traffic = Traffic(state, everywhere, speed, boxes, static[seen], static[seen])
    proposals = np.empty((table.shape[0], HORIZON + 1, 3))
    offsets, states, work = np.empty(table.shape[0]), np.empty((samples, 11)), np.empty((5, HORIZON + 1))
    for f in range(fractions.shape[0]):
        for j in range(goals.shape[0]):
            n = f * goals.shape[0] + j
            offsets[n] = goals[j]
            unroll(way, start, fractions[f], goals[j], lengths[j], leads.rear[j], leads, driver, proposals[n])
            drive(ego, proposals[n], published_tracker, work, states)
            rate(states, history, comfort_filters, traffic, way, start.s, table[n])
    total_scores(table, offsets, weights)
    best = int(np.argmax(table[:, TOTAL]))
    out[:] = proposals[best]
    if table[best, HIT_TIME] <= max(emergency.within, start.speed / emergency.decel + emergency.lag):
        j, row = best % goals.shape[0], np.zeros(table.shape[1])
        for tries in range(3):
            brake(way, start, goals[j], lengths[j], emergency.decel + tries * emergency.harder, out)
            drive(ego, out, published_tracker, work, states)
            rate(states, history, comfort_filters, traffic, way, start.s, row)
            if row[HIT_TIME] == np.inf:
                break
